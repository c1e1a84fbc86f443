"""Causes become findings: merged by what is wrong, told by the shortest example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conformance.audit.coverage import ModelTable, covered_states
from conformance.audit.findings import DIVERGED, FailureCause, Reporter, lookup
from conformance.audit.rules import INIT, NEXT, AuditRule, Rulebook
from conformance.events import Difference, Finding
from conformance.tla import Action, State, fingerprint
from conformance.traces.manifest import Identity
from conformance.traces.model import Trace, TraceEnd
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import write_store

TAKE, DROP = Action("Take", ("a",)), Action("Drop")
RULES = Rulebook(
    variables=("holder", "count"),
    initial=frozenset(),
    invariants=[AuditRule("TypeOK", location="Lock:3:1")],
    places={"Take": "Lock:6:1", "Drop": "Lock:7:1", "Init": "Lock:2:1"},
)


class Spec:
    """Take leads from the start to two states, Drop is enabled nowhere.

    Explains by naming what it was asked.
    """

    def initial_states(self) -> Sequence[State]:
        return [("nobody", 0)]

    def successors(self, state: State, action: Action) -> Sequence[State]:
        return [("a", 1), ("b", 1)] if (state, action) == (("nobody", 0), TAKE) else []

    def explain(self, formula: str, state: State, next_state: State) -> Sequence[str]:
        return [formula, str(state), str(next_state)]


def save(path: Path) -> TraceStore:
    states: list[State] = [("nobody", 0), ("a", 1)]
    identity = Identity("Lock", "", "lock", {}, ["holder", "count"], [str(TAKE)], "toy", "1")
    trace = Trace(0, 0, states[0], (), TraceEnd.LENGTH)
    write_store(path, identity, infer_columns(("holder", "count"), states), [trace])
    return TraceStore.open(path)


@pytest.fixture
def reporter(tmp_path: Path) -> Reporter:
    return Reporter(save(tmp_path / "s"), RULES, Spec(), lambda trace: f"show {trace}")


NOBODY: State = ("nobody", 0)
ILLEGAL = FailureCause(4, 17, 3, (NEXT,), TAKE, NOBODY, ("c", 1))


def one(reporter: Reporter, cause: FailureCause) -> Finding:
    (finding,) = reporter.findings([cause])
    return finding


def test_a_step_that_the_spec_does_not_allow(reporter: Reporter) -> None:
    found = one(reporter, ILLEGAL)
    assert found.title == "Take led to a state that the spec does not allow"
    assert found.message == (
        "The spec allows 2 states; the nearest differs in holder. "
        "Trace 17 shows it first, at step 3."
    )
    assert (found.stage, found.trace, found.step, found.count) == ("audit", "17", 3, 4)
    assert (found.action, found.formula, found.location) == (
        'Take("a")',
        'Take("a")',
        "Lock:6:1",
    )
    assert found.story == ('Take("a")', "('nobody', 0)", "('c', 1)")
    assert found.differences == (Difference("holder", '"a" or "b"', '"c"'),)
    assert found.reproduce == "show 17"


def test_an_action_that_is_not_enabled_is_told_by_what_it_changed(reporter: Reporter) -> None:
    found = one(reporter, replace(ILLEGAL, action=DROP, target=("nobody", 2)))
    assert found.message.startswith("The spec does not enable the action in the state before. ")
    assert found.differences == (Difference("count", "0", "2"),)


def test_a_broken_invariant_is_named_before_the_step(reporter: Reporter) -> None:
    found = one(reporter, replace(ILLEGAL, violations=("TypeOK", NEXT)))
    assert found.title == "TypeOK is violated after Take"
    assert (found.formula, found.location) == ('TypeOK, Take("a")', "Lock:3:1")
    assert found.story == ("TypeOK", "('nobody', 0)", "('c', 1)")


def test_the_broken_formula_is_in_the_title_though_the_step_is_told_first(
    reporter: Reporter,
) -> None:
    found = one(reporter, replace(ILLEGAL, violations=(NEXT, "TypeOK")))
    assert found.title == "TypeOK is violated after Take"
    assert (found.formula, found.location) == ('Take("a"), TypeOK', "Lock:6:1")
    assert found.story[0] == 'Take("a")'


def test_a_state_that_is_allowed_has_no_difference(reporter: Reporter) -> None:
    found = one(reporter, replace(ILLEGAL, violations=("TypeOK",), target=("b", 1)))
    assert found.differences == ()
    assert found.message == "Trace 17 shows it first, at step 3."


def test_a_wrong_start(reporter: Reporter) -> None:
    found = one(reporter, FailureCause(1, 5, 0, (INIT,), None, None, ("a", 7)))
    assert found.title == "Init led to a state that the spec does not allow"
    assert found.message == (
        "The state that the spec allows differs in holder, count. "
        "Trace 5 shows it first, at the initial state."
    )
    assert (found.action, found.formula, found.location) == ("", "Init", "Lock:2:1")
    assert (found.story, len(found.differences)) == ((), 2)


def test_an_invariant_of_the_initial_state_is_explained_in_it(reporter: Reporter) -> None:
    found = one(reporter, FailureCause(1, 5, 0, ("TypeOK",), None, None, NOBODY))
    assert found.story == ("TypeOK", "('nobody', 0)", "('nobody', 0)")
    assert found.title == "TypeOK is violated after Init"


def test_a_divergence_tells_what_the_recorder_saw(reporter: Reporter) -> None:
    seen = FailureCause(
        2, 8, 1, (DIVERGED,), TAKE, NOBODY, ("c", None), "state not allowed: holder"
    )
    found = one(reporter, seen)
    assert found.title == "Take led to a state that the spec does not allow"
    assert found.message == (
        "state not allowed: holder. "
        "The spec allows 2 states; the nearest differs in holder. "
        "Trace 8 shows it first, at step 1."
    )
    assert (found.formula, found.location, found.story) == (DIVERGED, "Lock:6:1", ())
    assert found.differences == (Difference("holder", '"a" or "b"', '"c"'),)


def test_a_divergence_at_the_start_lies_where_the_spec_begins(reporter: Reporter) -> None:
    found = one(reporter, FailureCause(1, 8, 0, (DIVERGED,), None, None, ("c", 0)))
    assert (found.location, found.action) == ("Lock:2:1", "")
    assert found.differences == (Difference("holder", '"nobody"', '"c"'),)


def test_a_divergence_is_no_formula_to_explain(reporter: Reporter) -> None:
    found = one(reporter, FailureCause(2, 8, 1, (DIVERGED,), TAKE, NOBODY, ("c", 1)))
    assert found.story == ()


def test_where_the_state_before_is_partial_nothing_is_compared(reporter: Reporter) -> None:
    found = one(reporter, replace(ILLEGAL, source=("nobody", None), violations=("TypeOK",)))
    assert found.differences == ()
    assert found.message == "Trace 17 shows it first, at step 3."
    assert found.story == ("TypeOK", "('c', 1)", "('c', 1)")


def test_what_was_not_observed_is_unknown(reporter: Reporter) -> None:
    dropped = replace(ILLEGAL, action=DROP, source=NOBODY, target=(None, 3), violations=(DIVERGED,))
    assert one(reporter, dropped).differences == (Difference("count", "0", "3"),)
    started = FailureCause(1, 5, 0, (INIT,), DROP, None, ("a", 7))
    assert one(reporter, started).differences == ()


def test_where_the_spec_begins_nowhere_no_value_was_expected(reporter: Reporter) -> None:
    class Empty(Spec):
        def initial_states(self) -> Sequence[State]:
            return []

    begun = FailureCause(1, 5, 0, (INIT,), None, None, ("a", None))
    found = one(replace(reporter, spec=Empty()), begun)
    assert found.differences == (Difference("holder", "(unknown)", '"a"'),)


def test_without_a_spec_the_finding_has_no_story(reporter: Reporter) -> None:
    found = one(replace(reporter, spec=None), ILLEGAL)
    assert (found.story, found.differences) == ((), ())
    assert found.message == "Trace 17 shows it first, at step 3."
    assert found.location == "Lock:6:1"


def test_places_are_told_as_files(reporter: Reporter) -> None:
    placed = replace(reporter, place=lambda place: f"spec/{place}")
    assert one(placed, ILLEGAL).location == "spec/Lock:6:1"


def test_causes_of_one_kind_are_one_finding_with_the_shortest_example(reporter: Reporter) -> None:
    causes = [
        replace(ILLEGAL, traces=2, trace_id=9, step=2),
        replace(ILLEGAL, traces=1, trace_id=30, step=1),
        replace(ILLEGAL, traces=3, trace_id=8, step=1),
        replace(ILLEGAL, traces=5, trace_id=4, step=6),
    ]
    (found,) = reporter.findings(causes)
    assert (found.trace, found.step, found.count) == ("8", 1, 11)


@pytest.mark.parametrize(
    "other",
    [
        replace(ILLEGAL, violations=("TypeOK",)),
        replace(ILLEGAL, action=DROP),
        replace(ILLEGAL, target=("c", 2)),
    ],
    ids=["formulas", "action", "variables"],
)
def test_causes_of_two_kinds_are_two_findings_the_more_frequent_first(
    reporter: Reporter, other: FailureCause
) -> None:
    rare, often = replace(ILLEGAL, traces=1), replace(other, traces=2, step=9)
    first, second = reporter.findings([rare, often])
    assert (first.step, second.step) == (9, 3)
    assert first.key != second.key
    assert reporter.findings([often, rare]) == (first, second)


def test_another_instance_of_the_action_is_the_same_kind(reporter: Reporter) -> None:
    b = replace(ILLEGAL, action=Action("Take", ("b",)), source=("x", 1), target=("x", 2))
    without = replace(reporter, spec=None)
    assert len(without.findings([ILLEGAL, b])) == 1


def test_a_key_is_the_same_in_every_run(reporter: Reporter) -> None:
    assert one(reporter, ILLEGAL).key == "Take:not_allowed:holder"


def test_formulas_that_an_illegal_step_breaks_too_are_no_causes_of_their_own(
    reporter: Reporter,
) -> None:
    both = replace(ILLEGAL, violations=("TypeOK", NEXT), step=9)
    (found,) = reporter.findings([ILLEGAL, both])
    assert (found.step, found.count) == (3, ILLEGAL.traces + both.traces)
    assert found.formula.endswith(", TypeOK")


def test_the_model_s_states_that_occur_are_counted(tmp_path: Path) -> None:
    store = save(tmp_path / "s")
    none = ModelTable.empty()
    seen = fingerprint(NOBODY)
    absent = [12345, 0, seen ^ 1]  # the last one is the same number to a float
    assert covered_states(store, none) == 0
    assert covered_states(store, replace(none, states=np.array(absent))) == 0
    assert covered_states(store, replace(none, states=np.array([*absent, seen, seen]))) == 1


def test_states_are_looked_up_and_unknown_ones_have_no_value(tmp_path: Path) -> None:
    store, known = save(tmp_path / "s"), fingerprint(NOBODY)
    assert lookup(store, [known, 12345]) == {known: NOBODY, 12345: (None, None)}
