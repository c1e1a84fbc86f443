"""A suite's replay: every test is counted, every divergence told as a finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from conformance.deviations.tolerance import Reading, Tolerance
from conformance.events import Difference, Event, Progress
from conformance.modelcheck.graph import StateGraph
from conformance.replay.engine import Divergence, Driver
from conformance.replay.oracle import GraphOracle, SpecOracle
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.replay.telling import finding
from conformance.story.kind import BehaviourKind
from conformance.suites.suite import Suite, Test
from conformance.systems.protocol import ActionRefused, SystemUnderTest
from conformance.tla import Action, Fn, ModelValue, State, Value
from conformance.verdict import Verdict
from tests.unit.replay.machines import Table, actions, graph, moves, oracle_of
from tests.unit.suites.graphs import graph_of

EDGES = [(0, 1, "A"), (1, 2, "A"), (2, 0, "B"), (0, 1, "Fork"), (0, 2, "Fork")]
GRAPH = graph(EDGES)


def edge(source: int, target: int, name: str) -> int:
    """The number of an edge of the graph."""
    code = GRAPH.actions.index(Action(name))
    hits = (GRAPH.source == source) & (GRAPH.target == target) & (GRAPH.action == code)
    return int(np.flatnonzero(hits)[0])


AROUND = [edge(0, 1, "A"), edge(1, 2, "A"), edge(2, 0, "B")]
FORKED = [edge(0, 1, "Fork"), edge(1, 2, "A")]


def suite(*paths: list[int]) -> Suite:
    tests = tuple(Test(0, np.array(path, np.int32)) for path in paths)
    return Suite("transitions", tests, GRAPH.digest)


class Made:
    """Makes systems of one table and keeps them, to see that they are released."""

    def __init__(self, **changed: int) -> None:
        self.table = moves(EDGES, **changed)
        self.systems: list[Table] = []

    def __call__(self) -> SystemUnderTest:
        self.systems.append(Table(self.table))
        return self.systems[-1]


def replayed(made: Made, *paths: list[int], graph: StateGraph = GRAPH) -> ReplayResult:
    result = replay_suite(graph, suite(*paths), made, stop_after=2)
    assert [system.closed for system in made.systems] == [1] * len(made.systems)
    judged = result.passed + result.failed + result.inconclusive
    assert judged + result.not_run == len(paths)
    return result


def test_a_system_that_follows_passes_every_test() -> None:
    result = replayed(Made(), AROUND, AROUND[:1])
    assert (result.verdict, result.passed, result.steps) == (Verdict.PASS, 2, 4)
    assert result.actions == {"A": 3, "B": 1}
    assert (result.divergences, result.notes) == ((), ())


def test_another_branch_that_the_spec_allows_is_inconclusive() -> None:
    result = replayed(Made(Fork=2), AROUND, FORKED)
    assert (result.verdict, result.passed, result.inconclusive) == (Verdict.INCONCLUSIVE, 1, 1)
    assert (result.steps, result.actions) == (4, {"A": 2, "B": 1, "Fork": 1})
    (note,) = result.notes
    assert note.startswith("test 1: after 1 step ")
    assert "where A is not enabled" in note


def test_a_divergence_fails_and_the_rest_was_not_run() -> None:
    result = replayed(Made(B=1), AROUND, AROUND, AROUND[:1])
    assert (result.verdict, result.failed) == (Verdict.FAIL, 2)
    assert (result.inconclusive, result.not_run) == (0, 1)
    assert [one.actions for one in result.divergences] == [actions("Fork B"), actions("Fork B")]
    assert result.notes == ()
    assert (result.steps, result.actions) == (6, {"A": 4, "B": 2})


class LateAfterFork(Table):
    """Goes wrong at a B after Fork, but not at the first: the shortest way there shows nothing."""

    forked, turns = False, 0

    def apply(self, action: Action) -> None:
        self.forked |= action.name == "Fork"
        super().apply(action)
        self.turns += action.name == "B"
        if self.forked and self.turns > 1 and action.name == "B":
            self.x = 9

    def reset(self, initial: Mapping[str, Value]) -> None:
        self.forked, self.turns = False, 0
        super().reset(initial)


def test_a_story_that_needs_its_past_is_shrunk_to_what_it_needs() -> None:
    path = [*AROUND, *AROUND, *AROUND, *FORKED, *AROUND[2:]]
    made = partial(LateAfterFork, moves(EDGES, Fork=1))
    (divergence,) = replay_suite(GRAPH, suite(path), made).divergences
    assert divergence.actions == actions("A A B Fork A B")


def test_the_last_test_may_diverge_too() -> None:
    result = replayed(Made(B=1), AROUND[:1], AROUND)
    assert (result.passed, result.failed, result.inconclusive) == (1, 1, 0)
    assert result.notes == ()


def test_a_suite_without_a_step_is_no_pass() -> None:
    assert replayed(Made(), []).verdict is Verdict.INCONCLUSIVE
    assert replayed(Made()).verdict is Verdict.INCONCLUSIVE


def test_another_oracle_than_the_graph_may_judge() -> None:
    wider = oracle_of([*EDGES, (2, 1, "B")])
    result = replay_suite(GRAPH, suite(AROUND), Made(B=1), oracle=wider)
    assert result.verdict is Verdict.PASS


def test_a_replay_stops_at_the_first_divergence_unless_told_otherwise() -> None:
    result = replay_suite(GRAPH, suite(AROUND, AROUND), Made(B=1))
    assert (result.failed, result.not_run) == (1, 1)


def test_a_test_may_begin_where_the_oracle_begins_nothing() -> None:
    result = replay_suite(GRAPH, suite(AROUND), Made(), oracle=oracle_of(EDGES, initial=(1,)))
    assert result.verdict is Verdict.PASS


def test_the_instances_of_an_action_are_counted_together() -> None:
    instances = replace(GRAPH, actions=(Action("A"), Action("B"), Action("A", (1,))))
    assert GRAPH.actions == actions("A B Fork")
    result = replayed(Made(), AROUND, FORKED, graph=instances)
    assert (result.verdict, result.actions) == (Verdict.PASS, {"A": 4, "B": 1})


@pytest.mark.parametrize(("tests", "told"), [(2, 2), (25, 20)])
def test_every_test_that_could_not_be_judged_is_counted_and_the_first_are_told(
    tests: int, told: int
) -> None:
    result = replayed(Made(Fork=2), *[FORKED] * tests)
    assert (result.inconclusive, len(result.notes)) == (tests, told)
    assert result.notes[-1].startswith(f"test {told - 1}:")


def test_progress_is_told_a_few_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.1, 0.2, 0.25, 0.25, 0.4, 0.5, 0.5])
    stopwatch = iter([10.0, 12.5])
    times = SimpleNamespace(monotonic=lambda: next(clock), perf_counter=lambda: next(stopwatch))
    monkeypatch.setattr("conformance.replay.suite.time", times)
    events: list[Event] = []
    result = replay_suite(GRAPH, suite(*[AROUND] * 5), Made(), emit=events.append)
    assert result.seconds == 2.5
    assert events == [Progress("replay", 3, 5), Progress("replay", 5, 5)]


ORACLE = GraphOracle(GRAPH)
A, B = actions("A B")


def diverged(kind: BehaviourKind, detail: str = "") -> Divergence:
    allowed = ((0,),) if kind is not BehaviourKind.INVARIANT else ()
    return Divergence(kind, (0,), (A, A, B), ((2,),), allowed, {"x": 1}, detail)


def test_a_finding_says_where_and_what() -> None:
    found = finding(
        ORACLE, diverged(BehaviourKind.NOT_ALLOWED), locate=lambda action: f"Spec.tla:{action}"
    )
    assert found.key == "B:not_allowed:x"
    assert found.title == "B: state not allowed"
    assert (found.stage, found.step, found.action, found.formula) == ("replay", 3, "B", "B")
    assert found.location == "Spec.tla:B"
    assert found.differences == (Difference("x", "0", "1"),)
    assert found.story == (
        "1. A",
        "     x: 0 -> 1",
        "2. A",
        "     x: 1 -> 2",
        "3. B",
        "     state not allowed",
    )
    assert found.message.startswith("After this action the implementation is in a state")


def test_a_wrong_start_has_no_action() -> None:
    start = Divergence(BehaviourKind.WRONG_INITIAL, (0,), (), (), ((0,),), {"x": 2})
    found = finding(ORACLE, start, stage="explore", locate=lambda action: "never asked")
    assert found.key == "Init:wrong_initial:x"
    assert found.title == "initial state: wrong initial state"
    assert (found.step, found.action, found.formula, found.location) == (0, "", "Init", "")
    assert found.reproduce == ""
    assert found.story == ("     wrong initial state",)


def test_a_key_names_variables_whatever_part_of_them_differs() -> None:
    allowed: State = (Fn({"b1": 1, "b2": 1}), 0)
    seen: dict[str, Value] = {"log": Fn({"b1": 2, "b2": 2}), "at": 1}
    oracle = SpecOracle(("log", "at"), [allowed], lambda state: [])
    found = finding(
        oracle, Divergence(BehaviourKind.WRONG_INITIAL, allowed, (), (), (allowed,), seen)
    )
    assert found.key == "Init:wrong_initial:at:log"


@pytest.mark.parametrize("kind", BehaviourKind)
def test_each_kind_has_its_own_key_and_message(kind: BehaviourKind) -> None:
    others = [finding(ORACLE, diverged(other)) for other in BehaviourKind if other is not kind]
    one = finding(ORACLE, diverged(kind))
    assert one.key not in {other.key for other in others}
    assert one.message not in {other.message for other in others}
    assert str(kind) in one.title


def test_steps_on_offer_are_told_by_what_is_not_enabled_else_by_what_is_refused() -> None:
    less = 'would not take Append, which\nwould not take Elect("b1"), which'
    more = 'would take Fetch("b2"), which\nwould take Fetch("b1"), which\nwould take Answer, which'
    assert finding(ORACLE, diverged(BehaviourKind.OFFERS, less)).key == "Append+Elect:refused"
    both = f"{more}\n{less}"
    assert finding(ORACLE, diverged(BehaviourKind.OFFERS, both)).key == "Answer+Fetch:not_enabled"


def test_what_was_raised_is_a_cause_by_its_class_and_function_and_not_by_its_line() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line {}, in cut\n    x[9]\n{}: 9\n'
    keys = [
        finding(ORACLE, diverged(BehaviourKind.RAISED, trace.format(line, error))).key
        for line, error in ((1, "KeyError"), (2, "KeyError"), (2, "impl.errors.CutError"))
    ]
    assert keys == ["B:raised:cut:KeyError"] * 2 + ["B:raised:cut:CutError"]


def test_a_story_ends_with_the_last_lines_of_what_was_raised() -> None:
    detail = "\n".join(f"line {number}" for number in range(20)) + "\n\n"
    story = finding(ORACLE, diverged(BehaviourKind.RAISED, detail)).story
    assert story[-13] == "     exception"
    assert story[-12:] == tuple(f"       line {number}" for number in range(8, 20))


def test_a_story_without_an_allowed_state_shows_the_observed_one() -> None:
    story = finding(ORACLE, diverged(BehaviourKind.INVARIANT)).story
    assert story[-2:] == ("     invariant violated", "       /\\ x = 1")


def test_a_story_follows_every_branch_that_is_possible() -> None:
    path = Divergence(BehaviourKind.NOT_ALLOWED, (0,), actions("Fork B A"), (), ((1,),), {"x": 2})
    story = finding(ORACLE, path).story
    # Only the second branch of Fork enables B.
    assert story[:4] == ("1. Fork", "     x: 0 -> 2", "2. B", "     x: 2 -> 0")


def test_a_story_of_an_unknown_step_has_no_change() -> None:
    path = Divergence(BehaviourKind.NOT_ALLOWED, (0,), actions("B A B"), (), ((1,),), {"x": 2})
    story = finding(ORACLE, path).story
    assert story[:3] == ("1. B", "     (the state is not known)", "2. A")


# --- going on behind a difference -----------------------------------------------------------

TWO = ("phase", "count")


class Renaming:
    """Counts to 3, and says `idle` where the specification has `empty`."""

    variables = TWO

    def __init__(self, fault: str = "", tolerance: Tolerance | None = None) -> None:
        self.count, self.fault = 0, fault
        self.tolerance = tolerance or Tolerance()

    def reset(self, initial: Mapping[str, Value]) -> None:
        self.count = 0

    def apply(self, action: Action) -> None:
        self.count += 2 if self.fault == "miscounts" and self.count == 1 else 1
        if self.fault == "refuses" and self.count == 3:
            raise ActionRefused("no more")

    def observe(self) -> Mapping[str, Value]:
        phases = {0: "idle", 1: "busy", 2: "busy", 3: "gone" if self.fault == "gone" else "busy"}
        return {"phase": phases[self.count], "count": self.count}


def of_counter() -> tuple[StateGraph, Suite]:
    states: list[State] = [("empty", 0), ("busy", 1), ("busy", 2), ("busy", 3)]
    one = graph_of(4, [(0, 1, "Inc"), (1, 2, "Inc"), (2, 3, "Inc")], [0])
    whole = replace(one, variables=TWO, states=states)
    return whole, Suite("transitions", (Test(0, np.array([0, 1, 2], np.int32)),), one.digest)


def counted_on(fault: str = "", *, going_on: bool = True, **declared: Tolerance) -> ReplayResult:
    whole, tests = of_counter()
    return replay_suite(
        whole, tests, lambda: Renaming(fault, **declared), going_on=going_on, stop_after=1
    )


IDLE = Reading("phase", "empty", "idle")


def test_without_going_on_a_harmless_departure_hides_all_behind_it() -> None:
    result = counted_on("refuses", going_on=False)
    assert [one.kind for one in result.divergences] == [BehaviourKind.WRONG_INITIAL]
    assert result.set_aside == ()


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("", [BehaviourKind.WRONG_INITIAL]),
        ("refuses", [BehaviourKind.WRONG_INITIAL, BehaviourKind.REFUSED]),
        ("gone", [BehaviourKind.WRONG_INITIAL, BehaviourKind.NOT_ALLOWED]),
    ],
)
def test_the_smallest_difference_is_set_aside_and_what_is_behind_it_is_found(
    fault: str, kinds: list[BehaviourKind]
) -> None:
    result = counted_on(fault)
    assert [one.kind for one in result.divergences] == kinds
    assert str(IDLE) in result.set_aside
    assert (result.verdict, result.failed, result.passed) == (Verdict.FAIL, 1, 0)
    assert result.failed + result.not_run == 1


def test_a_difference_is_set_aside_where_it_was_seen_and_nowhere_else() -> None:
    result = counted_on("gone")
    assert result.set_aside == (
        'phase is "gone" where the specification has "busy"',
        'phase is "idle" where the specification has "empty"',
    )


def test_what_the_maker_declares_is_no_finding() -> None:
    result = counted_on(tolerance=Tolerance(frozenset({IDLE})), going_on=False)
    assert (result.verdict, result.divergences) == (Verdict.PASS, ())
    found = counted_on("miscounts", tolerance=Tolerance(frozenset({IDLE})), going_on=False)
    assert found.verdict is Verdict.FAIL


def test_a_hidden_variable_is_not_counted_as_compared() -> None:
    result = counted_on(tolerance=Tolerance(hidden=frozenset({"phase"})))
    assert result.verdict is Verdict.PASS
    assert set(result.compared.states) == {"count"}
    assert result.compared.unobserved == ("phase",)
    nothing = counted_on(tolerance=Tolerance(hidden=frozenset(TWO)))
    assert nothing.verdict is Verdict.INCONCLUSIVE


def test_a_variable_that_differs_in_many_ways_is_hidden() -> None:
    readings = [Reading("phase", "empty", f"x{number}") for number in range(4)]
    tolerance = Tolerance().with_readings(readings[:3])
    assert tolerance.accepts("phase", "empty", "x2")
    assert not tolerance.accepts("phase", "busy", "x2")
    assert tolerance.with_readings(readings[3:]) == Tolerance(hidden=frozenset({"phase"}))


def test_who_takes_a_model_value_for_a_string_is_told_how_it_is_written() -> None:
    class Strings(Table):
        def observe(self) -> Mapping[str, Value]:
            return {"x": "a"}

    value = ModelValue("a")
    oracle = SpecOracle(("x",), [(value,)], lambda state: [(Action("A"), state)])
    diverged = Driver(Strings({}, start=0), oracle).reset((value,))
    assert diverged is not None
    message = finding(oracle, diverged).message
    assert "a is a model value of the spec" in message
    assert 'ModelValue("a")' in message
    assert '{"#unserializable": "a"}' in message
