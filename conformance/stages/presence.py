"""What a system does on the saved paths of the deviations in its table.

The table says of the releases that were run which deviations they have. A release that it does not
name is driven along the paths first, and is judged by what they show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from conformance.deviations.table import Deviating, Deviation, Free, overriding
from conformance.errors import DataError
from conformance.registry import load_factory
from conformance.replay.engine import (
    Divergence,
    Driver,
    PathResult,
    close,
    run_until_believed,
)
from conformance.replay.oracle import Oracle, oracle_of
from conformance.replay.saved import SavedDivergence, load, wrapped
from conformance.systems.capabilities import FactoryCapabilities
from conformance.tla import Action, State

if TYPE_CHECKING:
    from conformance.stages.context import Workbench


class Presence(StrEnum):
    """What a version does on the path of a deviation."""

    SEEN = "seen"
    GONE = "gone"
    OTHERWISE = "diverges otherwise"
    UNREACHABLE = "not reachable"
    """Its path needs another deviation, which this version does not have."""
    HIDDEN = "not to be seen"
    """What the system shows along its path is the same with and without it."""
    NOT_DRIVEN = "not driven"
    """The system cannot be driven along its path; nothing is known then."""


UNKNOWN = (Presence.NOT_DRIVEN, Presence.HIDDEN)
"""Nothing is known of the system then."""


@dataclass(frozen=True, slots=True)
class DeviationResult:
    """What replaying a deviation's path on one system showed."""

    deviation: Deviation
    presence: Presence
    expected: bool | None
    """What the table says of this version; None if it does not name it."""
    consequence: str = ""
    """The formula to whose violation the system follows the counterexample, if it does."""
    reason: str = ""
    """Why its path cannot be driven."""
    judged_with: tuple[Deviation, ...] = ()
    """Other deviations that the system has, by which the path was judged."""
    divergence: Divergence | None = None
    """How the path ended, where it is seen or ends in another way."""

    @property
    def as_expected(self) -> bool:
        """Whether the table says the same, or nothing was found out.

        Of a release that the table does not name it is news where a deviation is seen, and where it
        is gone; a path that ends in another way is a departure that nobody knows.
        """
        if self.presence in UNKNOWN:
            return True
        if self.expected is None:
            return self.presence is not Presence.OTHERWISE
        if self.expected:
            return self.presence is Presence.SEEN
        return self.presence in (Presence.GONE, Presence.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class BenchMaker:
    """Makes what a system is judged by along a path."""

    bench: Callable[[SavedDivergence, Sequence[Deviation]], Workbench]
    """The path's model, without its graph, as these deviations override it."""
    reason_against: Callable[[SavedDivergence], str]
    """Why the system cannot take the path's model; empty if it can."""


FollowPath = Callable[[Deviation, SavedDivergence], PathResult]
"""Drives a fresh system along the path of a choice, judged by the specification with the choice."""


@dataclass(frozen=True, slots=True)
class PresenceRecord:
    """What this run has seen of the deviations of each system; each path is replayed once."""

    _results: dict[tuple[str, str], DeviationResult] = field(default_factory=dict)
    _made: dict[tuple[str, str], bool] = field(default_factory=dict)
    _asked: set[tuple[str, str]] = field(default_factory=set)

    def asks(self, path: str, deviation: Deviation) -> bool:
        """Whether the path of a deviation is being replayed."""
        return (path, deviation.id) in self._asked

    def result(
        self, path: str, known: Deviating, deviation: Deviation, maker: BenchMaker
    ) -> DeviationResult:
        """Of the path of a deviation, on the system of the factory at `path`."""
        key = (path, deviation.id)
        if key not in self._results:
            self._asked.add(key)
            try:
                self._results[key] = _Paths(self, path, known, maker).show(deviation)
            finally:
                self._asked.discard(key)
        return self._results[key]

    def makes(self, path: str, free: Free, choice: Deviation, follow_path: FollowPath) -> bool:
        """Whether the system of the factory at `path` makes a choice: it agrees with its path."""
        key = (path, choice.id)
        if key not in self._made:
            result = follow_path(choice, load(free.file(choice.path)))
            ended = result.divergence or result.disabled or result.not_driven or result.late
            self._made[key] = not ended
        return self._made[key]

    def standing(
        self, path: str, known: Deviating, specification: str, maker: BenchMaker
    ) -> tuple[Deviation, ...]:
        """The deviations that override a specification's models: as the table says, or as seen."""
        paths = _Paths(self, path, known, maker)
        return tuple(
            deviation
            for deviation in overriding(known.deviations(), specification)
            if paths.stands(deviation)
        )


def _unreachable(shown: DeviationResult) -> DeviationResult:
    """Another deviation, which this system does not have, would lead to it."""
    expected = None if shown.expected is None else False
    return replace(shown, presence=Presence.UNREACHABLE, expected=expected)


def follow(bench: Workbench, initial: State, actions: Sequence[Action]) -> PathResult:
    """Drive a fresh system along a path, judged by the bench's specification."""
    oracle: Oracle = oracle_of(bench.prepared.spec)
    driven = bench.make_system()
    try:
        driven, oracle = wrapped(actions, driven, oracle)
        result, _ = run_until_believed(Driver(driven, oracle), initial, actions)
    finally:
        close(driven)
    return result


@dataclass(frozen=True, slots=True)
class _Paths:
    """The saved paths of one system's table."""

    record: PresenceRecord
    path: str
    known: Deviating
    maker: BenchMaker

    def stands(self, deviation: Deviation) -> bool:
        """Whether this system has it: as the table says, else as its path shows."""
        word = self._word(deviation)
        if word is not None:
            return word
        # Where each of two paths needs the other's deviation, neither can tell first.
        if deviation.path and not self.record.asks(self.path, deviation):
            result = self.record.result(self.path, self.known, deviation, self.maker)
            if result.presence not in UNKNOWN:
                return result.presence is Presence.SEEN
        return self._assumed(deviation)

    def _word(self, deviation: Deviation) -> bool | None:
        return deviation.stands_in(self.known.version_of(deviation.part))

    def _assumed(self, deviation: Deviation) -> bool:
        """What no path of this system's can tell is taken from the release before."""
        return deviation.nearest_to(self.known.version_of(deviation.part))

    def show(self, deviation: Deviation) -> DeviationResult:
        """Replay its path; where it is seen, its consequence too."""
        saved = load(self.known.file(deviation.path))
        shown = DeviationResult(deviation, Presence.NOT_DRIVEN, self._word(deviation))
        if reason := self._against(saved):
            return replace(shown, reason=reason)
        table = {item.id: item for item in self.known.deviations()}
        needed = [table.get(name) for name in saved.deviations]
        context = [item for item in needed if item is not None and self.stands(item)]
        lacking = len(context) < len(needed)
        result, context = self._followed(deviation, saved, context)
        shown = replace(shown, judged_with=tuple(context))
        divergence, reason = result.divergence, result.not_driven or result.late
        if reason:
            return replace(shown, reason=reason)
        if result.disabled and lacking:
            return _unreachable(shown)
        if result.disabled:
            raise DataError(
                f"The specification does not allow {result.disabled} as step {result.steps + 1} of "
                "a path of the table: it was made for another version of the specification. Make "
                "the paths again."
            )
        if divergence is None:
            asked = lacking or shown.expected is not False
            if asked and self._allowed_with(deviation, saved, context):
                hidden = replace(shown, presence=Presence.HIDDEN)
                return _unreachable(shown) if lacking else hidden
            return replace(shown, presence=Presence.GONE)
        shown = replace(shown, divergence=divergence)
        if divergence.step != len(saved.actions):
            return replace(shown, presence=Presence.OTHERWISE)
        return replace(
            shown, presence=Presence.SEEN, consequence=self._consequence(deviation, context)
        )

    def _followed(
        self, deviation: Deviation, saved: SavedDivergence, needed: Sequence[Deviation]
    ) -> tuple[PathResult, list[Deviation]]:
        """Drive the path, and by which deviations it was judged.

        What another part of the system does otherwise is not what the path is about. Of a release
        that no table names it is taken from the release before; where the path then ends early, one
        of those may be gone.
        """
        others = [
            item for item in self.known.deviations() if self._of_another_part(item, deviation)
        ]
        doubted = [item for item in others if self._word(item) is None]
        first: tuple[PathResult, list[Deviation]] | None = None
        for gone in (None, *doubted):
            context = [*needed, *(item for item in others if item is not gone)]
            result = self._follow(saved, context)
            if result.divergence is None or result.divergence.step == len(saved.actions):
                return result, context
            first = first or (result, context)
        assert first is not None, "one context was tried"
        return first

    def _of_another_part(self, item: Deviation, deviation: Deviation) -> bool:
        if item.part == deviation.part:
            return False
        return item.stands_for(self.known.version_of(item.part))

    def _consequence(self, deviation: Deviation, context: Sequence[Deviation]) -> str:
        """The formula that the system violates at the end of the counterexample, if it does."""
        if not deviation.consequence:
            return ""
        counterexample = load(self.known.file(deviation.consequence))
        result = self._follow(counterexample, [*context, deviation])
        return deviation.violated if result.divergence is None else ""

    def _allowed_with(
        self, deviation: Deviation, saved: SavedDivergence, context: Sequence[Deviation]
    ) -> bool:
        """Whether the deviation leaves what is seen along its path as it is."""
        if not deviation.overrides:
            return False
        result = self._follow(saved, [*context, deviation])
        return result.divergence is None and not result.disabled

    def _follow(self, saved: SavedDivergence, deviations: Sequence[Deviation]) -> PathResult:
        """Drive the path, judged by the specification with these deviations."""
        return follow(self.maker.bench(saved, deviations), saved.initial, saved.actions)

    def _against(self, saved: SavedDivergence) -> str:
        """Why the system cannot be driven along a path at all; empty if it can."""
        if reason := self.maker.reason_against(saved):
            return reason
        reasons = FactoryCapabilities(load_factory(self.path)).beyond_reach
        return next(
            (
                f"{action.name}: {reasons[action.name]}"
                for action in saved.actions
                if action.name in reasons
            ),
            "",
        )
