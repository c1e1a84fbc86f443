"""Stage `replay`: a suite against the system, with step equality after every action."""

from __future__ import annotations

import re
from pathlib import Path

from conformance.events import JsonValue
from conformance.modelcheck.manifest import reference
from conformance.replay.engine import Divergence
from conformance.replay.explore import ExploreResult, Profile
from conformance.replay.explore import explore as run_machine
from conformance.replay.machine import Exploration
from conformance.replay.oracle import GraphOracle, Oracle, SpecOracle
from conformance.replay.saved import Again, SavedDivergence, replay_again, save
from conformance.replay.suite import Locate, ReplayResult, finding, replay_suite
from conformance.replay.weights import calibrate, copies
from conformance.stages.context import Context, Workbench, stage
from conformance.suites.suite import Suite
from conformance.tla.values import Action, State
from conformance.verdict import Verdict


def replay(
    context: Context, bench: Workbench, suite: Suite, *, stop_after: int = 1
) -> ReplayResult:
    """Drive the suite; every divergence is shortened and reported once per cause."""
    name = bench.model.name
    with stage(context, "replay", name, len(suite)) as outcome:
        oracle = GraphOracle(bench.graph)
        result = replay_suite(
            bench.graph,
            suite,
            bench.make_system,
            oracle=oracle,
            emit=context.emit,
            stop_after=stop_after,
        )
        for divergence in result.divergences:
            tell(context, bench, oracle, divergence, "replay")
        outcome.verdict = result.verdict
        rate = result.steps / max(result.seconds, 1e-9)
        outcome.summary = (
            f"{result.passed:,} tests passed, {result.failed} failed, {result.inconclusive} "
            f"inconclusive; {result.steps:,} steps, {rate:,.0f}/s"
        )
        outcome.figures = {
            "model": name,
            "system": bench.factory,
            "suite": suite.kind,
            "tests": {
                "in": len(suite),
                "pass": result.passed,
                "fail": result.failed,
                "inconclusive": result.inconclusive,
            },
            "steps": result.steps,
            "seconds": round(result.seconds, 3),
            "actions": dict(result.actions),
            "notes": list(result.notes),
        }
    return result


def locator(bench: Workbench) -> Locate:
    """Finds the place of an action's definition, as `file:line:column`."""
    module = bench.prepared.module

    def locate(action: Action) -> str:
        definition = module.operator(action.name)
        return "" if definition is None else str(definition.location)

    return locate


def tell(
    context: Context, bench: Workbench, oracle: Oracle, divergence: Divergence, name: str
) -> None:
    """Keep the divergence as an ITF file and report it with the command that replays that."""
    key = finding(oracle, divergence).key
    stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{bench.model.name}-{key}").strip("-")
    path = Path(context.settings.output) / "divergences" / f"{stem}.itf.json"
    save(path, oracle, divergence, model=reference(bench.model), system=bench.factory)
    context.emit(
        finding(
            oracle,
            divergence,
            stage=name,
            locate=locator(bench),
            reproduce=f"kconform replay {path}",
        )
    )


def replay_saved(
    context: Context, bench: Workbench, saved: SavedDivergence
) -> tuple[Again, Divergence | None]:
    """Replay one saved path: as before, differently, or fixed."""
    with stage(context, "replay", bench.model.name) as outcome:
        oracle = spec_oracle(bench)
        again, divergence = replay_again(saved, oracle, bench.make_system)
        if divergence is not None:
            context.emit(finding(oracle, divergence, locate=locator(bench)))
        outcome.verdict = Verdict.PASS if again is Again.FIXED else Verdict.FAIL
        outcome.summary = f"{again} ({len(saved.actions)} steps)"
        outcome.figures = {"model": bench.model.name, "again": str(again)}
    return again, divergence


def explore(
    context: Context,
    bench: Workbench,
    *,
    profile: Profile,
    examples: int | None = None,
    steps: int | None = None,
) -> ExploreResult:
    """Hypothesis against the spec's evaluator: not bounded by any state graph."""
    name = bench.model.name
    spec = bench.prepared.spec
    with stage(context, "explore", name, examples) as outcome:
        oracle = spec_oracle(bench)
        frequencies = calibrate(oracle, walks=50, length=30, seed=context.seed)
        exploration = Exploration(
            oracle,
            bench.make_system,
            {name: spec.state_formula(name) for name in bench.model.check.invariants},
            copies(frequencies),
        )
        names = tuple(dict.fromkeys(action.name for action in spec.actions))
        result = run_machine(
            exploration, names, profile=profile, examples=examples, steps=steps, seed=context.seed
        )
        if result.divergence is not None:
            tell(context, bench, oracle, result.divergence, "explore")
        never = tuple(n for n in frequencies.enabled if not result.frequencies.taken.get(n))
        outcome.verdict = result.verdict
        # `dev` looks for seconds only: what it did not reach is told, not held against it.
        if never and result.verdict is Verdict.PASS and profile is not Profile.DEV:
            outcome.verdict = Verdict.FAIL
        outcome.summary = _explore_summary(result, never)
        outcome.figures = _explore_figures(name, result, never)
    return result


def spec_oracle(bench: Workbench) -> Oracle:
    """The bound spec as an oracle."""
    spec = bench.prepared.spec

    def successors(state: State) -> list[tuple[Action, State]]:
        return list(spec.successors(state))

    return SpecOracle(tuple(spec.variables), list(spec.initial_states()), successors)


def _explore_summary(result: ExploreResult, never: tuple[str, ...]) -> str:
    text = (
        f"{result.examples:,} examples, {result.steps:,} steps, "
        f"{result.distinct_transitions:,} distinct transitions"
    )
    if never:
        text += f"; never taken: {', '.join(never)}"
    return text + (f"; {result.note}" if result.note else "")


def _explore_figures(
    name: str, result: ExploreResult, never: tuple[str, ...]
) -> dict[str, JsonValue]:
    return {
        "model": name,
        "examples": result.examples,
        "steps": result.steps,
        "distinct_transitions": result.distinct_transitions,
        "enabled": dict(result.frequencies.enabled),
        "actions": dict(result.frequencies.taken),
        "never_taken": list(never),
        "seconds": round(result.seconds, 3),
    }
