"""What an audit's numbers come to: accounting, vacuity, and which verdict wins."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pytest

from conformance.audit import engine
from conformance.audit.coverage import ModelTable, fired, vacuous
from conformance.audit.decide import SUSPECTS, Decision
from conformance.audit.result import Accounting, AuditResult, TraceCoverage, UnjudgedTraces
from conformance.audit.rules import AuditRule, Rulebook
from conformance.audit.verdicts import check_counts, verdict_of
from conformance.errors import DataError
from conformance.tla import Action
from conformance.traces.manifest import Counts, Identity, Manifest
from conformance.verdict import Verdict
from tests.unit.suites.graphs import graph_of


@pytest.mark.parametrize("parts", [(3, 1, 1, 1), (3, 3, 0, 0), (0, 0, 0, 0)])
def test_every_trace_is_in_exactly_one_part(parts: tuple[int, int, int, int]) -> None:
    assert Accounting(*parts).traces == parts[0]


@pytest.mark.parametrize("parts", [(3, 1, 1, 0), (2, 1, 1, 1), (1, 2, -1, 0), (0, -1, 0, 1)])
def test_a_trace_that_is_lost_or_counted_twice_is_our_bug(
    parts: tuple[int, int, int, int],
) -> None:
    with pytest.raises(AssertionError, match=f"{parts[0]} traces came in"):
        Accounting(*parts)


def test_an_action_fired_if_any_of_its_instances_did() -> None:
    coverage = TraceCoverage({'Take("a")': 0, 'Take("b")': 2, "Drop": 0, "Stay": 1}, {})
    assert coverage.never_fired == ("Drop",)
    assert TraceCoverage({"A": 1, 'Take("a")': 2, 'Take("b")': 0}, {}).never_fired == ()


def test_a_formula_was_judged_if_it_had_a_value_anywhere() -> None:
    assert TraceCoverage({}, {"TypeOK": 5, "Never": 0}).never_judged == ("Never",)


def test_steps_are_counted_for_every_action_of_the_dictionary() -> None:
    actions = [Action("A"), Action("B", (1,)), Action("C")]
    assert fired(actions, {2: 7, 0: 1}) == {"A": 1, "B(1)": 0, "C": 7}


SEEN = TraceCoverage({"A": 1, "B": 0}, {"TypeOK": 3, "Never": 0})


@pytest.mark.parametrize(
    ("traces", "coverage", "optional", "reasons"),
    [
        (0, SEEN, (), ("the store holds no trace",)),
        (1, TraceCoverage({"A": 1}, {"TypeOK": 1}), (), ()),
        (1, SEEN, ("B",), ("the formula Never had a value nowhere",)),
        (
            2,
            SEEN,
            ("C",),
            ("the action B never fired", "the formula Never had a value nowhere"),
        ),
    ],
)
def test_a_pass_that_would_mean_nothing_has_its_reasons(
    traces: int, coverage: TraceCoverage, optional: Sequence[str], reasons: tuple[str, ...]
) -> None:
    assert vacuous(traces, coverage, optional) == reasons


@pytest.mark.parametrize(
    ("failed", "disputed", "inconclusive", "reasons", "verdict"),
    [
        (0, 0, 0, (), Verdict.PASS),
        (0, 0, 1, (), Verdict.INCONCLUSIVE),
        (0, 0, 0, ("vacuous",), Verdict.INCONCLUSIVE),
        (0, 1, 1, ("vacuous",), Verdict.ERROR),
        (1, 1, 1, ("vacuous",), Verdict.FAIL),
    ],
)
def test_the_worst_that_an_audit_saw_decides(
    failed: int, disputed: int, inconclusive: int, reasons: tuple[str, ...], verdict: Verdict
) -> None:
    accounting = Accounting(5, 5 - failed - inconclusive, failed, inconclusive)
    assert verdict_of(accounting, disputed, reasons) is verdict


@pytest.mark.parametrize(("traces", "steps"), [(3, 8), (2, 9), (8, 3)])
def test_a_manifest_must_count_what_the_files_hold(traces: int, steps: int) -> None:
    manifest = _manifest(traces=2, steps=8)
    with pytest.raises(DataError, match=f"2 traces and 8 steps, the files hold {traces} and"):
        check_counts(manifest, traces, steps)
    check_counts(manifest, 2, 8)


def _manifest(*, traces: int, steps: int) -> Manifest:
    counts = Counts(traces=traces, steps=steps, states=1, problems=0, ends={})
    identity = Identity("S", "", "m", {}, ["x"], ["A"], "sys", "1")
    return Manifest("kconform-traces", 1, identity, msgspec.Raw(b"{}"), counts, [], "")


def test_reasons_are_merged_and_the_shortest_trace_stands_for_them() -> None:
    texts = [["not observed", "a later one"], ["another"]]
    suspects = pa.Table.from_pylist(
        [
            {"source": 1, "action": 0, "target": 2, "visits": 1, "violations": [], "doubts": doubts}
            for doubts in texts
        ],
        SUSPECTS,
    )
    decisions = [
        Decision(False, 1, None, traces=3, step=5, trace_id=40),
        Decision(False, 1, None, traces=9, step=4, trace_id=60),
        Decision(False, 1, None, traces=2, step=4, trace_id=50),
        Decision(False, 0, "not JSON", traces=1, step=0, trace_id=7),
        Decision(False, 2, None, traces=1, step=2, trace_id=8),
        Decision(False, 0, "not JSON", traces=14, step=9, trace_id=9),
    ]
    assert engine._unjudged(decisions, suspects) == (
        UnjudgedTraces("not JSON", 15, "7", 0),
        UnjudgedTraces("not observed", 14, "50", 4),
        UnjudgedTraces("another", 1, "8", 2),
    )


def test_a_model_s_table_speaks_in_the_codes_of_the_store() -> None:
    graph = graph_of(3, [(0, 1, "B"), (1, 2, "A"), (2, 0, "B")])
    assert graph.actions == (Action("B"), Action("A"))
    table = ModelTable.of_graph(graph, [Action("A"), Action("Other"), Action("B")])
    prints = graph.fingerprints.tolist()
    assert table.states.tolist() == prints
    assert table.source.tolist() == [prints[0], prints[1], prints[2]]
    assert table.action.tolist() == [2, 0, 2]
    assert table.target.tolist() == [prints[1], prints[2], prints[0]]


def test_a_store_that_lacks_an_action_of_the_model_is_of_another_model() -> None:
    graph = graph_of(2, [(0, 1, "A"), (1, 0, "B")])
    with pytest.raises(DataError, match="lacks the model's action B"):
        ModelTable.of_graph(graph, [Action("A"), Action("C")])


def test_the_legal_visits_are_the_starts_and_the_transitions() -> None:
    graph = graph_of(2, [(0, 1, "A")])
    first, second = graph.fingerprints.tolist()
    rows = ModelTable.of_graph(graph, [Action("Z"), Action("A")]).rows({9, first})
    starts = [{"source": 0, "action": -1, "target": one} for one in sorted({9, first})]
    assert rows.to_pylist() == [*starts, {"source": first, "action": 1, "target": second}]
    assert [str(field.type) for field in rows.schema] == ["int64", "int32", "int64"]


def test_without_a_model_only_the_starts_are_known_to_be_legal() -> None:
    assert ModelTable.empty().rows([5]).to_pylist() == [{"source": 0, "action": -1, "target": 5}]
    table = ModelTable.empty()
    assert len(table.states) == 0
    kinds = [array.dtype.name for array in (table.states, table.source, table.action, table.target)]
    assert kinds == ["int64", "int64", "int32", "int64"]
    assert [str(field.type) for field in table.rows([]).schema] == ["int64", "int32", "int64"]


def test_a_formula_is_found_where_the_spec_states_it() -> None:
    rules = Rulebook(
        variables=("x",),
        initial=frozenset(),
        invariants=[AuditRule("TypeOK", location="S:3"), AuditRule("Safe", location="S:4")],
        properties=[AuditRule("Grows", location="S:5"), AuditRule("Placeless")],
        places={"Take": "S:6", "Init": "S:2", "Placeless": "S:7"},
    )
    places = {name: rules.location(name) for name in ("TypeOK", "Safe", "Grows", "Init")}
    assert places == {"TypeOK": "S:3", "Safe": "S:4", "Grows": "S:5", "Init": "S:2"}
    assert rules.location('Take("a", "b")') == "S:6"
    assert rules.location("Placeless") == "S:7"
    assert rules.location("Other") == ""


def test_the_report_s_figures_are_those_of_the_audit() -> None:
    result = AuditResult(
        verdict=Verdict.INCONCLUSIVE,
        accounting=Accounting(10, 4, 3, 3),
        steps=50,
        distinct_states=7,
        distinct_transitions=9,
        table_transitions=8,
        cross_checked=6,
        disputed=0,
        coverage=TraceCoverage({"A": 5}, {"TypeOK": 7}, 20, 7, 30, 8, {"M:1:2-1:9": 4}),
        findings=(),
        unjudged=(UnjudgedTraces("not observed", 3, "12", 4),),
        vacuous=("the action B never fired",),
        collision_probability=1e-9,
        seconds=3.14159,
        scan_seconds=1.00149,
        formula_seconds=2.0006,
    )
    assert result.figures() == {
        "traces": {"in": 10, "pass": 4, "fail": 3, "inconclusive": 3},
        "steps": 50,
        "distinct_states": 7,
        "distinct_transitions": 9,
        "table_transitions": 8,
        "cross_checked": 6,
        "disputed": 0,
        "covered_states": 7,
        "model_states": 20,
        "covered_transitions": 8,
        "model_transitions": 30,
        "actions_fired": {"A": 5},
        "formulas_judged": {"TypeOK": 7},
        "branches": {"M:1:2-1:9": 4},
        "collision_probability": 1e-9,
        "vacuous": ["the action B never fired"],
        "unjudged": [{"reason": "not observed", "traces": 3, "trace": "12", "step": 4}],
        "evaluators": [],
        "seconds": 3.142,
        "scan_seconds": 1.001,
        "formula_seconds": 2.001,
        "findings": 0,
    }
