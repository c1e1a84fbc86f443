"""Every kind of corruption gets its verdict, and every trace is accounted for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from conformance.audit.coverage import ModelTable
from conformance.audit.engine import Options, audit
from conformance.audit.result import AuditResult
from conformance.errors import DataError
from conformance.events import Event, Finding, StageFinished, StageStarted
from conformance.tla.values import Action
from conformance.traces.model import End, Trace
from conformance.traces.rows import TraceRows
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import open_writer, write_chunk
from conformance.verdict import Verdict
from tests.spark.audit import lock
from tests.spark.audit.lock import INITIAL, of_states, save, walk

pytestmark = pytest.mark.spark

GOOD = [walk(number) for number in range(40)]
TAKEN = ("a", 1, ("a",))
FREED = ("nobody", 1, ("a",))


def judge(
    spark: SparkSession, store: TraceStore, model: ModelTable | None = None, **options: object
) -> AuditResult:
    events: list[Event] = []
    chosen = Options(reproduce=lambda trace: f"show {trace}", **options)  # type: ignore[arg-type]
    result = audit(
        spark,
        store,
        lock.RULES,
        model=model,
        spec=lock.Lock(),
        options=chosen,
        emit=events.append,
    )
    assert isinstance(events[0], StageStarted)
    assert isinstance(events[-1], StageFinished)
    assert [event for event in events if isinstance(event, Finding)] == list(result.findings)
    return result


def counts(result: AuditResult) -> tuple[int, int, int, int]:
    one = result.accounting
    return one.traces, one.passed, one.failed, one.inconclusive


@pytest.mark.parametrize("with_table", [True, False])
def test_a_clean_store_passes(spark: SparkSession, tmp_path: Path, with_table: bool) -> None:
    model = lock.model_table() if with_table else None
    result = judge(spark, save(tmp_path / "s", GOOD), model)
    assert (result.verdict, counts(result)) == (Verdict.PASS, (40, 40, 0, 0))
    assert result.steps == sum(len(trace.steps) for trace in GOOD)
    distinct = {
        (before, step.action, step.state)
        for trace in GOOD
        for before, step in zip(trace.states, trace.steps, strict=False)
    }
    assert result.distinct_transitions == len(distinct)
    assert result.table_transitions == (len(distinct) if with_table else 0)
    assert result.cross_checked == (len(distinct) + 1 if with_table else 0)
    assert result.coverage.fired['Take("a")'] == sum(
        step.action == lock.ACTIONS[0] for trace in GOOD for step in trace.steps
    )
    assert result.coverage.judged["CountNeverFalls"] == len(distinct)
    figures = result.figures()
    assert figures["traces"] == {"in": 40, "pass": 40, "fail": 0, "inconclusive": 0}


def test_a_legal_transition_that_the_table_lacks_is_decided_by_the_formula(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judge(spark, save(tmp_path / "s", GOOD), lock.model_table(without=[0, 1]))
    assert result.verdict is Verdict.PASS
    assert 0 < result.table_transitions < result.distinct_transitions


BROKEN = {
    "illegal step": (
        of_states(100, INITIAL, (0, TAKEN), (2, INITIAL)),
        2,
        "Drop led to a state that the spec does not allow",
        ("Drop", "CountNeverFalls"),
    ),
    "not enabled": (
        of_states(100, INITIAL, (2, INITIAL)),
        1,
        "Drop led to a state that the spec does not allow",
        ("Drop",),
    ),
    "broken invariant": (
        of_states(100, INITIAL, (0, ("a", 1, ("b",)))),
        1,
        "HolderIsLast is violated after Take",
        ('Take("a")', "HolderIsLast"),
    ),
    "wrong initial state": (
        of_states(100, FREED, (1, ("b", 2, ("a", "b")))),
        0,
        "Init led to a state that the spec does not allow",
        ("Init",),
    ),
}


@pytest.mark.parametrize("case", BROKEN, ids=str)
@pytest.mark.parametrize("with_table", [True, False])
def test_a_violation_fails_its_trace_at_the_first_bad_step(
    spark: SparkSession, tmp_path: Path, case: str, with_table: bool
) -> None:
    bad, step, title, formulas = BROKEN[case]
    model = lock.model_table() if with_table else None
    result = judge(spark, save(tmp_path / "s", [*GOOD, bad]), model)
    assert (result.verdict, counts(result)) == (Verdict.FAIL, (41, 40, 1, 0))
    (finding,) = result.findings
    assert (finding.trace, finding.step, finding.count) == ("100", step, 1)
    assert set(finding.formula.split(", ")) >= {formulas[0]}
    assert {*formulas} >= set(finding.formula.split(", ")) or "CountNeverFalls" in formulas
    assert finding.reproduce == "show 100"
    assert finding.location.startswith("Lock.tla:")
    assert title == finding.title or title.split()[0] in finding.action


def test_findings_show_expected_and_actual_values(spark: SparkSession, tmp_path: Path) -> None:
    bad = of_states(100, INITIAL, (0, ("a", 2, ("a",))))
    (finding,) = judge(spark, save(tmp_path / "s", [*GOOD, bad])).findings
    assert [(d.variable, d.expected, d.actual) for d in finding.differences] == [
        ("count", "1", "2")
    ]


def test_findings_of_one_cause_are_merged_and_the_shortest_is_shown(
    spark: SparkSession, tmp_path: Path
) -> None:
    bad = [
        of_states(100 + n, *[INITIAL], *[(0, TAKEN), (2, ("nobody", 0, ("a",)))]) for n in range(5)
    ]
    longer = of_states(
        99,
        INITIAL,
        (0, TAKEN),
        (2, FREED),
        (1, ("b", 2, ("a", "b"))),
        (2, ("nobody", 1, ("a", "b"))),
    )
    result = judge(spark, save(tmp_path / "s", [*GOOD, *bad, longer]))
    assert counts(result) == (46, 40, 6, 0)
    (finding,) = result.findings
    assert (finding.count, finding.trace, finding.step) == (6, "100", 2)


def test_a_divergence_that_the_recorder_saw_is_a_failure(
    spark: SparkSession, tmp_path: Path
) -> None:
    bad = replace(
        of_states(100, INITIAL, (0, ("b", None, None))),
        end=End.DIVERGED,
        problem="state not allowed: holder",
    )
    result = judge(spark, save(tmp_path / "s", [*GOOD, bad]))
    assert counts(result) == (41, 40, 1, 0)
    (finding,) = result.findings
    assert finding.formula == "step equality"
    assert [(d.variable, d.expected, d.actual) for d in finding.differences] == [
        ("holder", '"a"', '"b"')
    ]


INCONCLUSIVE = {
    "unobserved": (of_states(100, INITIAL, (0, ("a", None, ("a",)))), "not observed"),
    "unreadable": (
        replace(of_states(100, INITIAL, (0, TAKEN)), problem="not JSON\nf.ndjson:3"),
        "not JSON",
    ),
    "nothing read": (
        Trace(100, 0, (), (), End.IMPORTED, problem="unknown action\nf.ndjson:4"),
        "unknown action",
    ),
}


@pytest.mark.parametrize("case", INCONCLUSIVE, ids=str)
def test_a_trace_that_cannot_be_judged_is_counted_and_listed(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    bad, reason = INCONCLUSIVE[case]
    result = judge(spark, save(tmp_path / "s", [*GOOD, bad]), listing=tmp_path / "listing")
    assert (result.verdict, counts(result)) == (Verdict.INCONCLUSIVE, (41, 40, 0, 1))
    (one,) = result.unjudged
    assert reason in one.reason
    assert (one.traces, one.trace) == (1, "100")
    listed = spark.read.parquet(str(tmp_path / "listing")).collect()
    assert [row["trace_id"] for row in listed] == [100]


@pytest.mark.parametrize(
    ("states", "actions", "reason"),
    [
        ([lock.fingerprint(INITIAL), 12345], [0], "lacks a state"),
        ([12345], [], "lacks a state"),
        ([lock.fingerprint(INITIAL), lock.fingerprint(TAKEN)], [7], "dictionary lacks"),
    ],
)
def test_an_unknown_state_or_action_is_inconclusive(
    spark: SparkSession, tmp_path: Path, states: list[int], actions: list[int], reason: str
) -> None:
    columns = infer_columns(lock.VARIABLES, [INITIAL, TAKEN])
    rows = TraceRows()
    rows.add(0, 0, [lock.fingerprint(INITIAL), lock.fingerprint(TAKEN)], [0], "length")
    rows.add(1, 0, states, actions, "length")
    with open_writer(tmp_path / "s", lock.IDENTITY, columns) as writer:
        writer.add_chunk(write_chunk(writer.folder, 0, rows))
        prints = [lock.fingerprint(INITIAL), lock.fingerprint(TAKEN)]
        writer.write_states(lock.np.array(prints), [INITIAL, TAKEN])
    result = judge(spark, TraceStore.open(tmp_path / "s"), lock.model_table())
    assert counts(result) == (2, 1, 0, 1)
    assert reason in result.unjudged[0].reason


def test_an_undefined_formula_is_inconclusive_never_a_pass(
    spark: SparkSession, tmp_path: Path
) -> None:
    partial = lock.Rule("Partial", "(count < 2)", "false", "'undefined from 2 on'")
    rules = replace(lock.RULES, invariants=[partial])
    result = audit(spark, save(tmp_path / "s", GOOD), rules)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.accounting.inconclusive > 0
    assert result.unjudged[0].reason == "Partial: undefined from 2 on"


def test_no_trace_is_never_a_pass(spark: SparkSession, tmp_path: Path) -> None:
    result = judge(spark, save(tmp_path / "s", []))
    assert (result.verdict, counts(result)) == (Verdict.INCONCLUSIVE, (0, 0, 0, 0))
    assert result.vacuous == ("the store holds no trace",)


def test_an_action_that_never_fired_makes_a_pass_vacuous(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = save(tmp_path / "s", [of_states(0, INITIAL, (0, TAKEN))])
    result = judge(spark, store)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.vacuous == ("the action Drop never fired",)
    assert judge(spark, store, optional_actions=["Drop"]).verdict is Verdict.PASS


def test_a_formula_that_had_a_value_nowhere_makes_a_pass_vacuous(
    spark: SparkSession, tmp_path: Path
) -> None:
    never = lock.Rule("Never", "false", "false")
    result = audit(spark, save(tmp_path / "s", GOOD), replace(lock.RULES, invariants=[never]))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the formula Never had a value nowhere" in result.vacuous


def test_a_table_that_the_formula_contradicts_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    wrong = lock.rule("Drop", "false")
    rules = replace(lock.RULES, actions={**lock.RULES.actions, 2: wrong})
    result = audit(spark, save(tmp_path / "s", GOOD), rules, model=lock.model_table())
    assert result.verdict is Verdict.ERROR
    assert "disagree" in result.findings[0].title


def test_a_file_that_changes_under_the_audit_is_named(spark: SparkSession, tmp_path: Path) -> None:
    store = save(tmp_path / "s", GOOD)
    path = store.files("traces")[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"traces/part-00000\.parquet"):
        judge(spark, store)


def test_a_manifest_that_counts_otherwise_than_the_files_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = save(tmp_path / "s", GOOD)
    counted = replace(store, manifest=lock_counts(store))
    with pytest.raises(DataError, match="manifest counts 41"):
        judge(spark, counted)


def lock_counts(store: TraceStore) -> lock.Manifest:
    import msgspec

    manifest = store.manifest
    more = msgspec.structs.replace(manifest.counts, traces=41)
    return msgspec.structs.replace(manifest, counts=more)


def test_no_action_is_forgotten_by_the_rules() -> None:
    assert [Action(rule.name.partition("(")[0]).name for rule in lock.RULES.actions.values()] == [
        action.name for action in lock.ACTIONS
    ]
