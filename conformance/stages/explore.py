"""Stage `explore`: Hypothesis against the spec's evaluator, not bounded by any state graph."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance import pickled
from conformance.events import Emit, JsonValue, Progress, ignore
from conformance.modelcheck.branches import BranchCounts
from conformance.modelcheck.check import known_graph
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import bound_again
from conformance.printable import counted
from conformance.replay.explore import ExploreResult
from conformance.replay.explore import explore as run_machine
from conformance.replay.machine import Exploration
from conformance.replay.oracle import GraphOracle
from conformance.replay.profile import Profile
from conformance.replay.weights import calibrate, copies
from conformance.stages.context import Context, Outcome, Workbench, stage
from conformance.stages.replay import spec_oracle, tell
from conformance.tla import Action, State
from conformance.verdict import Verdict

STAGE = "explore"


@dataclass(frozen=True, slots=True)
class Search:
    """How to explore; without a profile under the active settings of Hypothesis."""

    profile: Profile | None
    seed: int | None
    """None: what Hypothesis's options say."""
    calibration_seed: int
    examples: int | None = None
    steps: int | None = None
    database: Path | None = None


@dataclass(frozen=True, slots=True)
class ExploreOutcome:
    """What came of it: the result, and the steps by the disjuncts that they took."""

    search: Search
    result: ExploreResult
    branches: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ExploreJob:
    """A model to explore in another process."""

    model: Model
    module: bytes
    """The model's parsed module, as `pickled` writes it."""
    factory: str
    graph: StateGraph | None
    search: Search

    @classmethod
    def of(cls, bench: Workbench, search: Search) -> ExploreJob:
        """Explore this bench so."""
        module = pickled.dumps(bench.prepared.module)
        return cls(bench.model, module, bench.factory, bench.known_graph, search)

    @property
    def weight(self) -> int:
        """An example takes as long as some hundred steps of a suite."""
        return _STEPS_OF_AN_EXAMPLE * (self.search.examples or 1)

    def run(self, emit: Emit) -> ExploreOutcome:
        """Explore it."""
        prepared = bound_again(self.model, pickle.loads(self.module))
        bench = Workbench(self.model, prepared, self.factory, self.graph)
        return explored(bench, self.graph, self.search, emit)


_STEPS_OF_AN_EXAMPLE = 500


def explore(context: Context, bench: Workbench, search: Search) -> ExploreResult:
    """Explore a bench as `search` says, and report it."""
    with stage(context, STAGE, bench.model.name, search.examples) as outcome:
        graph = bench.known_graph or known_graph(bench.model, context.check)
        explore_outcome = explored(bench, graph, search, ignore)
        report_explore(context, bench, explore_outcome, outcome)
    return explore_outcome.result


def search_of(
    context: Context,
    bench: Workbench,
    *,
    profile: Profile | None,
    examples: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
) -> Search:
    """How to explore a bench: under a profile, or without one as Hypothesis's settings say.

    `seed` defaults to the context's; without a profile, to what Hypothesis's options say.
    Hypothesis's example database lies in the output folder; without a profile, where its settings
    say. As Hypothesis users know it, `ci` has none: it finds what it finds without a memory.
    """
    return Search(
        profile,
        context.seed if seed is None and profile is not None else seed,
        context.seed,
        examples,
        steps,
        _database(context, bench.model.name) if profile in _REMEMBER else None,
    )


def explored(
    bench: Workbench, graph: StateGraph | None, search: Search, emit: Emit
) -> ExploreOutcome:
    """Explore a bench; `graph` shows ways to actions that the examples do not take by themselves.

    `emit` is told of every step, and may raise.
    """
    spec, oracle = bench.prepared.spec, spec_oracle(bench)
    counts = BranchCounts(spec)
    exploration = Exploration(
        oracle,
        bench.make_system,
        {name: spec.state_formula(name) for name in bench.model.check.invariants},
        copies(calibrate(oracle, walks=50, length=30, seed=search.calibration_seed)),
    )

    def watch(state: State, action: Action, next_state: State) -> None:
        emit(Progress(STAGE, exploration.steps, None))
        counts.count(state, action, next_state)

    exploration.watch = watch
    result = run_machine(
        exploration,
        tuple(dict.fromkeys(action.name for action in spec.actions)),
        profile=search.profile,
        examples=search.examples,
        steps=search.steps,
        seed=search.seed,
        database=search.database,
        map_oracle=None if graph is None else GraphOracle(graph),
    )
    return ExploreOutcome(search, result, counts.by_place())


def report_explore(
    context: Context, bench: Workbench, explore_outcome: ExploreOutcome, outcome: Outcome
) -> None:
    """Report a divergence, and what the examples took."""
    result = explore_outcome.result
    if result.divergence is not None:
        tell(context, bench, spec_oracle(bench), result.divergence, STAGE)
    outcome.verdict = _verdict(result, explore_outcome.search.profile)
    outcome.summary = _summary(result)
    outcome.figures = {
        **_figures(bench.model.name, result),
        "branches": {**explore_outcome.branches},
    }
    outcome.add_compared(result.compared)


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
        "actions": dict(result.frequencies.steps),
        "guided": dict(result.guided),
        "disabled": list(result.disabled),
        "never_taken": list(result.never_taken),
        "seconds": round(result.seconds, 3),
    }
