"""Stage `coverage`: whether a run that found nothing has looked everywhere it promised to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.config import Thresholds
from conformance.events import JsonValue
from conformance.registry import system_name
from conformance.stages.context import Context, Workbench, stage
from conformance.verdict import Verdict


def coverage(
    context: Context,
    benches: Sequence[Workbench],
    replayed: Sequence[Mapping[str, int]],
    covered: Mapping[str, Mapping[str, tuple[int, int]]],
    *,
    chosen: bool = False,
    distant: bool = False,
    stopped: Sequence[bool] = (),
) -> None:
    """Hold a system's replays and traces against the thresholds; one event per system.

    `replayed` are the steps by action name of each bench's replay; `covered` by system the
    covered and all of `states` and `transitions` in recorded traces, summed over its models. An
    action of the spec that no model of the run ever takes makes a pass vacuous; where models were
    `chosen`, by name or by what a system can take, only an action of one of their graphs: others
    are told.
    A `distant` system is asked for no action that is beyond its reach; each is told, with why.
    `stopped` says which replays ended early at a divergence, and left things out because of it:
    the actions that are missing then are a consequence of it.
    """
    early = {workbench.factory for workbench, ended in zip(benches, stopped, strict=False) if ended}
    systems: dict[str, _ReplayedSteps] = {}
    for bench, steps in zip(benches, replayed, strict=True):
        driven = systems.setdefault(bench.factory, _ReplayedSteps())
        driven.add(bench, steps, chosen=chosen, distant=distant)
    for system, driven in systems.items():
        with stage(context, "coverage", system_name(system)) as outcome:
            actions = driven.actions()
            shares = {"actions": actions.share, **covered.get(system, {})}
            short = _below(shares, context.settings.thresholds)
            outcome.verdict = Verdict.INCONCLUSIVE if short else Verdict.PASS
            outcome.consequence = system in early and short == ["actions"]
            outcome.summary = "; ".join(
                [_summary(shares, short), *actions.summary(stopped_early=system in early)]
            )
            outcome.figures = {
                "actions": dict(driven.steps),
                **actions.figures(),
                **{f"covered_{what}": part for what, (part, _) in shares.items()},
                **{f"all_{what}": whole for what, (_, whole) in shares.items()},
            }


@dataclass(slots=True)
class _ReplayedSteps:
    """What the replays of one system have taken, and what its models have."""

    steps: Counter[str] = field(default_factory=Counter)
    names: dict[str, None] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)
    """Actions of the models' graphs; nothing where every action of the spec is asked for."""
    beyond: dict[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def add(
        self, bench: Workbench, steps: Mapping[str, int], *, chosen: bool, distant: bool
    ) -> None:
        """Count one more replay."""
        self.steps.update(steps)
        self.names.update(dict.fromkeys(bench.prepared.spec.all_kinds))
        self.elsewhere = bench.taken_elsewhere
        if distant:
            self.beyond.update(bench.beyond_reach)
        if chosen:
            self.promised.update(action.name for action in bench.graph.actions)

    def actions(self) -> _Actions:
        """The actions by what came of them."""
        asked = self.promised or {*self.names}
        undriven = {name: why for name, why in self.beyond.items() if name in asked}
        elsewhere = {name: of for name, of in self.elsewhere.items() if not self.steps[name]}
        left_out = undriven.keys() | elsewhere.keys()
        within = asked - left_out
        return _Actions(
            len(within),
            tuple(name for name in self.names if name in within and not self.steps[name]),
            tuple(name for name in self.names if name not in within and name not in left_out),
            undriven,
            elsewhere,
        )


@dataclass(frozen=True, slots=True)
class _Actions:
    """A system's actions by what came of them."""

    asked: int
    """How many the replays have to take."""
    never: tuple[str, ...]
    """Of these, the ones that no replay took."""
    in_no_suite: tuple[str, ...]
    undriven: Mapping[str, str]
    """Beyond a distant system's reach, with why."""
    elsewhere: Mapping[str, str]
    """Left to the suites of another specification, with its name."""

    @property
    def share(self) -> tuple[int, int]:
        """How many were taken, of how many."""
        return self.asked - len(self.never), self.asked

    def summary(self, *, stopped_early: bool) -> Iterator[str]:
        """What the summary says of those that were not taken."""
        if stopped_early:
            yield "a replay stopped at a divergence, and left the rest"
        elif self.never:
            yield f"never taken in a replay: {', '.join(self.never)}"
        if self.in_no_suite:
            yield f"in no suite of this run: {', '.join(self.in_no_suite)}"
        for name, whose in self.elsewhere.items():
            yield f"{name} is left to the suites of {whose}"
        for name, why in self.undriven.items():
            yield f"{name} cannot be driven: {why}"

    def figures(self) -> dict[str, JsonValue]:
        """The same for the JSON report."""
        return {
            **({"beyond_reach": dict(self.undriven)} if self.undriven else {}),
            **({"taken_elsewhere": dict(self.elsewhere)} if self.elsewhere else {}),
            "never_taken": list(self.never),
            **({"in_no_suite": list(self.in_no_suite)} if self.in_no_suite else {}),
        }


def _summary(shares: Mapping[str, tuple[int, int]], short: Sequence[str]) -> str:
    text = ", ".join(f"{part:,} of {whole:,} {what}" for what, (part, whole) in shares.items())
    return text + (f"; below the threshold: {', '.join(short)}" if short else "")


def _below(shares: Mapping[str, tuple[int, int]], thresholds: Thresholds) -> list[str]:
    wanted = {
        "actions": thresholds.actions,
        "states": thresholds.states,
        "transitions": thresholds.transitions,
    }
    return [what for what, (part, whole) in shares.items() if whole and part / whole < wanted[what]]
