"""Stage `deviations`: is each deviation of a system's table where the table says it is?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviating, Deviation, concerning, expects
from conformance.errors import DataError
from conformance.registry import factory_path, load_factory
from conformance.replay.engine import Driver, PathResult, close, run_until_believed
from conformance.replay.oracle import Oracle
from conformance.replay.saved import SavedDivergence, load, wrapped
from conformance.stages.context import Context, Workbench, one_model, stage, with_constants
from conformance.stages.context import workbench as make_workbench
from conformance.stages.replay import spec_oracle
from conformance.stages.selection import reason_against_model
from conformance.systems.capabilities import FactoryCapabilities
from conformance.verdict import Verdict

STAGE = "deviations"


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


@dataclass(frozen=True, slots=True)
class DeviationResult:
    """What replaying a deviation's path on one system showed."""

    deviation: Deviation
    presence: Presence
    expected: bool
    consequence: str = ""
    """The formula to whose violation the system follows the counterexample, if it does."""
    reason: str = ""
    """Why its path cannot be driven."""

    @property
    def as_expected(self) -> bool:
        """Whether the table says the same, or nothing was found out."""
        if self.presence in (Presence.NOT_DRIVEN, Presence.HIDDEN):
            return True
        if self.expected:
            return self.presence is Presence.SEEN
        return self.presence in (Presence.GONE, Presence.UNREACHABLE)


def deviations(
    context: Context, system: str, specifications: Collection[str] = ()
) -> list[DeviationResult]:
    """Replay the path of every deviation in the system's table; PASS if the table is right.

    With root modules given: of those that concern one of them. Where a deviation is seen, its
    consequence, if it has one, is replayed too: a counterexample of the model that it overrides.
    """
    known = deviating(factory_path(system, context.settings.systems))
    if known is not None and not any(deviation.path for deviation in known.deviations()):
        return []  # a table of the maker's own, without a path that could be replayed
    with stage(context, STAGE, system) as outcome:
        table = () if known is None else known.deviations()
        concerned = concerning(table, specifications) if specifications else table
        chosen = [deviation for deviation in concerned if deviation.path]
        paths = [] if known is None else [load(known.file(deviation.path)) for deviation in chosen]
        context.check.parser.announce(
            with_constants(one_model(path.model), path.constants) for path in paths
        )
        shown = (
            []
            if known is None
            else [_show(context, known, deviation, system) for deviation in chosen]
        )
        wrong = [result for result in shown if not result.as_expected]
        outcome.verdict = Verdict.FAIL if wrong else Verdict.PASS
        outcome.summary = "; ".join(map(_line, shown)) or "no deviation is known of this system"
        outcome.figures = {
            "system": system,
            "deviations": {result.deviation.id: str(result.presence) for result in shown},
            "unexpected": [result.deviation.id for result in wrong],
        }
    return shown


def _line(shown: DeviationResult) -> str:
    text = f"{shown.deviation.id} {shown.presence}"
    if shown.consequence:
        text += f", down to the violation of {shown.consequence}"
    if shown.reason:
        text += f" ({shown.reason})"
    if not shown.as_expected:
        text += f" (the table says {'seen' if shown.expected else 'gone'})"
    return text


def _show(context: Context, known: Deviating, deviation: Deviation, system: str) -> DeviationResult:
    expected = expects(known, deviation)
    here = {
        deviation.id: deviation for deviation in known.deviations() if expects(known, deviation)
    }
    saved = load(known.file(deviation.path))
    if reason := _against(context, saved, system):
        return DeviationResult(deviation, Presence.NOT_DRIVEN, expected, reason=reason)
    if not {*saved.deviations} <= here.keys():
        return DeviationResult(deviation, Presence.UNREACHABLE, expected=False)
    # What another part of the system does otherwise is not what this path is about.
    others = [item.id for item in here.values() if item.part != deviation.part]
    ids = (*saved.deviations, *others)
    _, result = _follow(context, saved, system, ids)
    divergence, reason = result.divergence, result.not_driven or result.late
    if reason:
        return DeviationResult(deviation, Presence.NOT_DRIVEN, expected, reason=reason)
    if result.disabled:
        raise DataError(
            f"The specification does not allow {result.disabled} as step {result.steps + 1} of a "
            "path of the table: it was made for another version of the specification. Make the "
            "paths again."
        )
    if divergence is None:
        hidden = expected and _allowed_with(context, deviation, saved, system, ids)
        return DeviationResult(deviation, Presence.HIDDEN if hidden else Presence.GONE, expected)
    if divergence.step != len(saved.actions):
        return DeviationResult(deviation, Presence.OTHERWISE, expected)
    if not deviation.consequence:
        return DeviationResult(deviation, Presence.SEEN, expected)
    counterexample = load(known.file(deviation.consequence))
    bench, result = _follow(context, counterexample, system, (*ids, deviation.id))
    reached = result.divergence is None and deviation.id in bench.deviations
    return DeviationResult(
        deviation, Presence.SEEN, expected, deviation.violated if reached else ""
    )


def _follow(
    context: Context, saved: SavedDivergence, system: str, ids: Sequence[str]
) -> tuple[Workbench, PathResult]:
    """Drive the path, judged by the specification with these deviations."""
    model = with_constants(one_model(saved.model), saved.constants)
    bench = make_workbench(context, model, system, with_graph=False, deviations=ids)
    oracle: Oracle = spec_oracle(bench)
    driven = bench.make_system()
    try:
        driven, oracle = wrapped(saved.actions, driven, oracle)
        result, _ = run_until_believed(Driver(driven, oracle), saved.initial, saved.actions)
    finally:
        close(driven)
    return bench, result


def _allowed_with(
    context: Context, deviation: Deviation, saved: SavedDivergence, system: str, ids: Sequence[str]
) -> bool:
    """Whether a deviation that is expected leaves what is seen along its path as it is."""
    if not deviation.overrides:
        return False
    _, result = _follow(context, saved, system, (*ids, deviation.id))
    return result.divergence is None and not result.disabled


def _against(context: Context, saved: SavedDivergence, system: str) -> str:
    """Why the system cannot be driven along a path at all; empty if it can."""
    path = factory_path(system, context.settings.systems)
    model = with_constants(one_model(saved.model), saved.constants)
    if reason := reason_against_model(context, path, model):
        return reason
    reasons = FactoryCapabilities(load_factory(path)).beyond_reach
    return next(
        (
            f"{action.name}: {reasons[action.name]}"
            for action in saved.actions
            if action.name in reasons
        ),
        "",
    )
