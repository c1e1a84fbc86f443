"""Stage `explore`: Hypothesis against the spec's evaluator, not bounded by any state graph."""

from __future__ import annotations

from pathlib import Path

from conformance.events import JsonValue
from conformance.modelcheck.branches import BranchCounts
from conformance.modelcheck.check import known_graph
from conformance.printable import counted
from conformance.replay.explore import ExploreResult
from conformance.replay.explore import explore as run_machine
from conformance.replay.machine import Exploration
from conformance.replay.oracle import GraphOracle
from conformance.replay.profile import Profile
from conformance.replay.weights import calibrate, copies
from conformance.stages.context import Context, Workbench, stage
from conformance.stages.replay import spec_oracle, tell
from conformance.verdict import Verdict


def explore(
    context: Context,
    bench: Workbench,
    *,
    profile: Profile | None,
    examples: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
) -> ExploreResult:
    """Explore under a profile, or without one under the active settings of Hypothesis.

    `seed` defaults to the context's; without a profile, to what Hypothesis's options say.
    Hypothesis's example database lies in the output folder; without a profile, where its settings
    say. As Hypothesis users know it, `ci` has none: it finds what it finds without a memory.
    """
    name = bench.model.name
    spec = bench.prepared.spec
    with stage(context, "explore", name, examples) as outcome:
        oracle = spec_oracle(bench)
        exploration = Exploration(
            oracle,
            bench.make_system,
            {name: spec.state_formula(name) for name in bench.model.check.invariants},
            copies(calibrate(oracle, walks=50, length=30, seed=context.seed)),
        )
        counts = BranchCounts(spec)
        exploration.watch = counts.count
        graph = bench.known_graph or known_graph(bench.model, context.check)
        result = run_machine(
            exploration,
            tuple(dict.fromkeys(action.name for action in spec.actions)),
            profile=profile,
            examples=examples,
            steps=steps,
            seed=context.seed if seed is None and profile is not None else seed,
            database=_database(context, name) if profile in _REMEMBER else None,
            map_oracle=None if graph is None else GraphOracle(graph),
        )
        if result.divergence is not None:
            tell(context, bench, oracle, result.divergence, "explore")
        outcome.verdict = _verdict(result, profile)
        outcome.summary = _summary(result)
        outcome.figures = {**_figures(name, result), "branches": {**counts.by_place()}}
    return result


_REMEMBER = (Profile.DEV, Profile.NIGHTLY)


def _database(context: Context, model: str) -> Path:
    """A folder per model, as Hypothesis cannot tell one machine that we build from another."""
    return Path(context.settings.output) / "hypothesis" / model.replace("/", "-")


def _verdict(result: ExploreResult, profile: Profile | None) -> Verdict:
    """An action that should have been taken and was not: nobody knows what it would have shown."""
    if result.verdict is not Verdict.PASS or not result.never_taken:
        return result.verdict
    # `dev` looks for seconds only: what it did not reach is told, not held against it.
    if profile is Profile.DEV:
        return Verdict.PASS
    met = any(result.frequencies.enabled.get(name) for name in result.never_taken)
    return Verdict.FAIL if met else Verdict.INCONCLUSIVE


_NAMED = 3
"""So many actions are named in the summary; the JSON report has all."""


def _summary(result: ExploreResult) -> str:
    parts = [
        f"{counted(result.examples, 'example')}, {counted(result.steps, 'step')}, "
        f"{result.distinct_transitions:,} distinct transitions"
    ]
    if result.guided:
        parts.append(f"led to {', '.join(result.guided)}")
    if result.disabled:
        several = len(result.disabled) > _NAMED
        named = f"{len(result.disabled)} actions" if several else ", ".join(result.disabled)
        parts.append(f"nowhere enabled in this model: {named}")
    if result.never_taken and result.divergence is None:
        parts.append(f"never taken: {', '.join(result.never_taken)}")
    if result.note:
        parts.append(result.note)
    return "; ".join(parts)


def _figures(name: str, result: ExploreResult) -> dict[str, JsonValue]:
    return {
        "model": name,
        "examples": result.examples,
        "steps": result.steps,
        "distinct_transitions": result.distinct_transitions,
        "enabled": dict(result.frequencies.enabled),
        "actions": dict(result.frequencies.taken),
        "guided": dict(result.guided),
        "disabled": list(result.disabled),
        "never_taken": list(result.never_taken),
        "seconds": round(result.seconds, 3),
    }
