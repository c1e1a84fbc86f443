"""Stage `coverage`: whether a run that found nothing has looked everywhere it promised to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from conformance.config import Thresholds
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
    `chosen` by what a system can take, only an action of one of their graphs: others are told.
    A `distant` system is asked for no action that is beyond its reach; each is told, with why.
    `stopped` says which replays ended early at a divergence, and left things out because of it.
    """
    early = {one.factory for one, ended in zip(benches, stopped, strict=False) if ended}
    by_system: dict[str, Counter[str]] = {}
    names: dict[str, dict[str, None]] = {}
    promised: dict[str, set[str]] = {}
    beyond: dict[str, dict[str, str]] = {}
    left: dict[str, Mapping[str, str]] = {}
    for bench, steps in zip(benches, replayed, strict=True):
        by_system.setdefault(bench.factory, Counter()).update(steps)
        known = names.setdefault(bench.factory, {})
        known.update(dict.fromkeys(action.name for action in bench.prepared.spec.actions))
        left[bench.factory] = bench.taken_elsewhere
        if distant:
            beyond.setdefault(bench.factory, {}).update(bench.beyond_reach)
        if chosen:
            within = promised.setdefault(bench.factory, set())
            within.update(action.name for action in bench.graph.actions)
    for system, steps in by_system.items():
        with stage(context, "coverage", system) as outcome:
            far = beyond.get(system, {})
            within = promised.get(system) or {*names[system]}
            undriven = {name: why for name, why in far.items() if name in within}
            elsewhere = {name: whose for name, whose in left[system].items() if not steps[name]}
            within = within - undriven.keys() - elsewhere.keys()
            never = [name for name in names[system] if not steps[name] and name in within]
            outside = [
                name
                for name in names[system]
                if name not in within and name not in undriven and name not in elsewhere
            ]
            shares = {
                "actions": (len(within) - len(never), len(within)),
                **covered.get(system, {}),
            }
            short = _below(shares, context.settings.thresholds)
            outcome.verdict = Verdict.INCONCLUSIVE if short else Verdict.PASS
            outcome.summary = ", ".join(
                f"{part:,} of {whole:,} {what}" for what, (part, whole) in shares.items()
            ) + (f"; below the threshold: {', '.join(short)}" if short else "")
            if system in early:
                outcome.summary += "; a replay stopped at a divergence, and left the rest"
            elif never:
                outcome.summary += f"; never taken in a replay: {', '.join(never)}"
            if outside:
                outcome.summary += f"; in no suite that it can take: {', '.join(outside)}"
            for name, whose in elsewhere.items():
                outcome.summary += f"; {name} is left to the suites of {whose}"
            for name, why in undriven.items():
                outcome.summary += f"; {name} cannot be driven: {why}"
            outcome.figures = {
                "actions": dict(steps),
                **({"beyond_reach": dict(undriven)} if undriven else {}),
                **({"taken_elsewhere": dict(elsewhere)} if elsewhere else {}),
                "never_taken": list(never),
                **({"in_no_suite": list(outside)} if outside else {}),
                **{f"covered_{what}": part for what, (part, _) in shares.items()},
                **{f"all_{what}": whole for what, (_, whole) in shares.items()},
            }


def _below(shares: Mapping[str, tuple[int, int]], thresholds: Thresholds) -> list[str]:
    wanted = {
        "actions": thresholds.actions,
        "states": thresholds.states,
        "transitions": thresholds.transitions,
    }
    return [what for what, (part, whole) in shares.items() if whole and part / whole < wanted[what]]
