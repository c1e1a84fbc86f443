"""Stage `suite`: from a model's state graph to tests, with what they cover."""

from __future__ import annotations

from dataclasses import asdict

from conformance.errors import UserError
from conformance.events import JsonValue
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.prepare import PreparedModel
from conformance.printable import counted
from conformance.stages.context import Context, stage
from conformance.suites.coverage import Coverage, coverage
from conformance.suites.greedy import greedy_cover
from conformance.suites.postman import transition_cover
from conformance.suites.restricted import SuiteLimits, cover_within
from conformance.suites.situations import situations
from conformance.suites.suite import Suite
from conformance.suites.walks import random_walks
from conformance.verdict import Verdict


def cover(
    context: Context,
    name: str,
    graph: StateGraph,
    *,
    compare: bool = False,
    limits: SuiteLimits | None = None,
) -> Suite:
    """The minimal transition-covering suite; with `compare`, a greedy one's size beside it.

    `limits`: what the system cannot be driven along; what lies within them is covered then, and
    the rest is counted.
    """
    if limits is not None:
        return _cover_within(context, name, graph, limits)
    with stage(context, "suite", name) as outcome:
        suite = transition_cover(graph)
        covered = coverage(graph, suite)
        greedy = greedy_cover(graph) if compare else None
        outcome.figures = figures(suite, covered)
        outcome.figures["greedy_steps"] = greedy.steps if greedy else None
        outcome.figures["greedy_tests"] = len(greedy) if greedy else None
        complete = covered.covered_transitions == covered.transitions
        outcome.verdict = Verdict.PASS if complete and len(suite) else Verdict.INCONCLUSIVE
        outcome.summary = summary(suite, covered) + (
            f"; a greedy walk needs {greedy.steps / suite.steps:.2f} times as many steps"
            if greedy and suite.steps
            else ""
        )
    return suite


def _cover_within(context: Context, name: str, graph: StateGraph, limits: SuiteLimits) -> Suite:
    with stage(context, "suite", name) as outcome:
        suite = cover_within(graph, limits)
        covered = coverage(graph, suite.suite)
        left_out = sum(suite.left_out.values())
        complete = covered.covered_transitions == int(suite.reachable.sum())
        outcome.verdict = Verdict.PASS if complete and len(suite.suite) else Verdict.INCONCLUSIVE
        outcome.summary = summary(suite.suite, covered)
        if left_out:
            text = "; ".join(f"{count:,}: {why}" for why, count in suite.left_out.items())
            outcome.summary += f"; {left_out:,} transitions cannot be driven ({text})"
        outcome.figures = figures(suite.suite, covered)
        outcome.figures["beyond_reach"] = dict(suite.left_out)
    return suite.suite


def measured(context: Context, name: str, graph: StateGraph, suite: Suite) -> Suite:
    """Report a suite of another kind: coverage is told, not required."""
    with stage(context, "suite", name) as outcome:
        covered = coverage(graph, suite)
        outcome.figures = figures(suite, covered)
        outcome.verdict = Verdict.PASS if len(suite) else Verdict.INCONCLUSIVE
        outcome.summary = summary(suite, covered)
    return suite


def figures(suite: Suite, covered: Coverage) -> dict[str, JsonValue]:
    """The suite's part of the JSON report."""
    return {
        "kind": suite.kind,
        "seed": suite.seed,
        "tests": len(suite),
        "steps": suite.steps,
        "states": covered.states,
        "covered_states": covered.covered_states,
        "transitions": covered.transitions,
        "covered_transitions": covered.covered_transitions,
        "actions": {name: asdict(action) for name, action in covered.actions.items()},
    }


def summary(suite: Suite, covered: Coverage) -> str:
    """One line: size and coverage."""
    states = _share("states", covered.covered_states, covered.states)
    transitions = _share("transitions", covered.covered_transitions, covered.transitions)
    count = len(covered.actions) - len(covered.missing_actions)
    return (
        f"{counted(len(suite), 'test')}, {counted(suite.steps, 'step')}; {states}, {transitions}, "
        f"{_share('actions', count, len(covered.actions))}"
    )


def _share(what: str, part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} {what}"


def make_suite(
    context: Context,
    kind: str,
    graph: StateGraph,
    prepared: PreparedModel,
    *,
    walks: int = 1000,
    length: int = 20,
) -> Suite:
    """Tests of one kind: `cover`, `walks` (seeded) or `situations` (one shortest path each).

    UserError for `situations` of a model that names none.
    """
    if kind == "walks":
        return random_walks(graph, walks, length, context.seed)
    if kind == "situations":
        names = prepared.model.situations
        if not names:
            raise UserError(
                f"The model {prepared.model.name} names no situations. List state predicates of "
                "the spec under [situations] names in its manifest."
            )
        result = situations(graph, {name: prepared.spec.state_formula(name) for name in names})
        if result.unreached:
            raise UserError(
                f"No state of the model {prepared.model.name} satisfies "
                f"{', '.join(result.unreached)}: remove the name from [situations], or enlarge the "
                "model's bounds."
            )
        return result.suite
    return transition_cover(graph)
