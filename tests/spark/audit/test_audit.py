"""Every kind of corruption gets its verdict, and every trace is accounted for."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from pyspark.sql import SparkSession

from conformance.audit import sql as sql_module
from conformance.audit.coverage import ModelTable
from conformance.audit.engine import Options, audit
from conformance.audit.explain import EvaluatedSpec
from conformance.audit.result import AuditResult
from conformance.errors import DataError
from conformance.events import Emit, Event, Finding, StageFinished, StageStarted, ignore
from conformance.spark.workers import OnSpark
from conformance.tla import fingerprint
from conformance.tla.spark.formulas import Truth
from conformance.traces.manifest import Manifest
from conformance.traces.model import Trace, TraceEnd
from conformance.traces.rows import TraceRows
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import open_writer, write_chunk
from conformance.verdict import Verdict
from conformance.workers import ForkedProcesses, Here, Workers
from tests.spark.audit import lock
from tests.spark.audit.lock import INITIAL, of_states, save, walk

pytestmark = [pytest.mark.spark, pytest.mark.tlc]


@cache
def good() -> list[Trace]:
    return [walk(number) for number in range(40)]


TAKEN = ("a", 1, ("a",))
FREED = ("nobody", 1, ("a",))


def judge(
    spark: SparkSession,
    store: TraceStore,
    model: ModelTable | None = None,
    options: Options | None = None,
) -> AuditResult:
    with tempfile.TemporaryDirectory() as folder:
        return judged(spark, store, model, options or Options(), Path(folder))


def judged(
    spark: SparkSession,
    store: TraceStore,
    model: ModelTable | None,
    options: Options,
    folder: Path,
) -> AuditResult:
    """Here; in processes and on Spark the same is said, and the same bytes are written."""
    events: list[Event] = []
    listing = options.listing or folder / "here"
    chosen = replace(options, reproduce=lambda trace: f"show {trace}", listing=listing)
    result = by(Here(), store, model, chosen, events.append)
    assert isinstance(events[0], StageStarted)
    assert isinstance(events[-1], StageFinished)
    assert events[-1].fault is bool(result.disputed)
    assert [event for event in events if isinstance(event, Finding)] == list(result.findings)
    for name, workers in {"processes": ForkedProcesses(2), "spark": OnSpark(spark)}.items():
        other = by(workers, store, model, replace(chosen, listing=folder / name))
        assert said(other) == said(result)
        assert written(folder / name) == written(listing)
    return result


def by(
    workers: Workers,
    store: TraceStore,
    model: ModelTable | None,
    options: Options,
    emit: Emit = ignore,
) -> AuditResult:
    spec, evaluator = EvaluatedSpec(lock.spec()), lock.evaluator(store)
    return audit(
        workers, store, lock.rules(), evaluator, model=model, spec=spec, options=options, emit=emit
    )


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, without generated code: for few rows a plan takes longer to compile."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark
    for key in settings:
        spark.conf.unset(key)


def check_sql(
    spark: SparkSession, store: TraceStore, model: ModelTable | None, folder: Path
) -> AuditResult:
    """By SQL the same is said as here, and the same bytes are written."""
    options = Options(listing=folder / "python"), Options(listing=folder / "sql", sql=True)
    python = by(Here(), store, model, options[0])
    sql = by(OnSpark(spark), store, model, options[1])
    assert said(sql) == said(python)
    assert written(folder / "sql") == written(folder / "python")
    assert sql.disputed == 0
    assert all(choice.by_sql == choice.rows for choice in sql.choices)
    return sql


def written(listing: Path) -> dict[str, bytes]:
    """The files of an audit's listing; it is absent if all traces pass."""
    return {path.name: path.read_bytes() for path in sorted(listing.glob("*"))}


def said(result: AuditResult) -> AuditResult:
    """What an audit says, whatever it took."""
    return replace(result, seconds=0, scan_seconds=0, formula_seconds=0, choices=())


def counts(result: AuditResult) -> tuple[int, int, int, int]:
    one = result.accounting
    return one.traces, one.passed, one.failed, one.inconclusive


@pytest.mark.parametrize("with_table", [True, False])
def test_a_clean_store_passes(spark: SparkSession, tmp_path: Path, with_table: bool) -> None:
    model = lock.model_table() if with_table else None
    result = judge(spark, save(tmp_path / "s", good()), model)
    assert (result.verdict, counts(result)) == (Verdict.PASS, (40, 40, 0, 0))
    assert result.steps == sum(len(trace.steps) for trace in good())
    distinct = {
        (before, step.action, step.state)
        for trace in good()
        for before, step in zip(trace.states, trace.steps, strict=False)
    }
    assert result.distinct_transitions == len(distinct)
    assert result.table_transitions == (len(distinct) if with_table else 0)
    assert result.cross_checked == (len(distinct) if with_table else 0)
    assert result.coverage.fired['Take("a")'] == sum(
        step.action == lock.ACTIONS[0] for trace in good() for step in trace.steps
    )
    assert result.coverage.judged["CountNeverFalls"] == len(distinct)
    dropped = Counter(
        before[0] == "a"
        for trace in good()
        for before, step in zip(trace.states, trace.steps, strict=False)
        if step.action == lock.ACTIONS[2]
    )
    assert [*sorted(result.coverage.branches.items())] == [
        ("Lock:17:11-17:22", dropped[True]),
        ("Lock:18:11-18:39", dropped[False]),
    ]
    figures = result.figures()
    assert figures["traces"] == {"in": 40, "pass": 40, "fail": 0, "inconclusive": 0}


def test_a_legal_transition_that_the_table_lacks_is_decided_by_the_formula(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judge(spark, save(tmp_path / "s", good()), lock.model_table(without=[0, 1]))
    assert result.verdict is Verdict.PASS
    assert 0 < result.table_transitions < result.distinct_transitions


DROP_BACK = of_states(100, INITIAL, (0, TAKEN), (2, INITIAL))
NOT_ENABLED = of_states(101, INITIAL, (2, INITIAL))
WRONG_LOG = of_states(102, INITIAL, (0, ("a", 1, ("b",))))
WRONG_START = of_states(103, FREED, (1, ("b", 2, ("a", "b"))))
TOO_MANY = of_states(105, ("nobody", 3, ()), (0, ("a", 4, ("a",))))
FALLING = of_states(106, ("nobody", 2, ()), (0, ("a", 1, ("a",))))
LATE = of_states(104, INITIAL, (0, TAKEN), (2, FREED), (0, ("a", 3, ("a", "a"))), (2, FREED))


@pytest.mark.parametrize("with_table", [True, False])
def test_a_violation_fails_its_trace_at_the_first_bad_step(
    spark: SparkSession, tmp_path: Path, with_table: bool
) -> None:
    bad = [DROP_BACK, NOT_ENABLED, WRONG_LOG, WRONG_START, LATE]
    model = lock.model_table() if with_table else None
    result = judge(spark, save(tmp_path / "s", [*good(), *bad]), model)
    assert (result.verdict, counts(result)) == (Verdict.FAIL, (45, 40, 5, 0))
    found = {one.trace: (one.step, one.title, one.formula) for one in result.findings}
    assert found == {
        "100": (2, "CountNeverFalls is violated after Drop", "Drop, CountNeverFalls"),
        "101": (1, "Drop led to a state that the spec does not allow", "Drop"),
        "102": (1, "HolderIsLast is violated after Take", 'Take("a"), HolderIsLast'),
        "103": (0, "Init led to a state that the spec does not allow", "Init"),
        "104": (3, "CountIsLength is violated after Take", 'Take("a"), CountIsLength'),
    }
    assert all(one.reproduce == f"show {one.trace}" for one in result.findings)
    assert {one.location.split(":")[0] for one in result.findings if one.step} == {"Lock"}
    (told,) = [one.story for one in result.findings if one.trace == "101"]
    assert any("holder" in line for line in told)


def test_findings_show_expected_and_actual_values(spark: SparkSession, tmp_path: Path) -> None:
    bad = of_states(100, INITIAL, (0, ("a", 2, ("a",))))
    (finding,) = judge(spark, save(tmp_path / "s", [*good(), bad])).findings
    assert [(d.variable, d.expected, d.actual) for d in finding.differences] == [
        ("count", "1", "2")
    ]


def test_findings_of_one_cause_are_merged_and_the_shortest_is_shown(
    spark: SparkSession, tmp_path: Path
) -> None:
    bad = [of_states(100 + n, INITIAL, (0, TAKEN), (2, ("nobody", 0, ("a",)))) for n in range(5)]
    longer = of_states(
        99,
        INITIAL,
        (0, TAKEN),
        (2, FREED),
        (1, ("b", 2, ("a", "b"))),
        (2, ("nobody", 1, ("a", "b"))),
    )
    result = judge(spark, save(tmp_path / "s", [*good(), *bad, longer]))
    assert counts(result) == (46, 40, 6, 0)
    (finding,) = result.findings
    assert (finding.count, finding.trace, finding.step) == (6, "100", 2)


def test_a_divergence_that_the_recorder_saw_is_a_failure(
    spark: SparkSession, tmp_path: Path
) -> None:
    bad = replace(
        of_states(100, INITIAL, (0, ("b", None, None))),
        end=TraceEnd.DIVERGED,
        problem="state not allowed: holder",
    )
    result = judge(spark, save(tmp_path / "s", [*good(), bad]))
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
        Trace(100, 0, (), (), TraceEnd.IMPORTED, problem="unknown action\nf.ndjson:4"),
        "unknown action",
    ),
}


@pytest.mark.parametrize("case", INCONCLUSIVE, ids=str)
def test_a_trace_that_cannot_be_judged_is_counted_and_listed(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    bad, reason = INCONCLUSIVE[case]
    result = judge(
        spark, save(tmp_path / "s", [*good(), bad]), options=Options(listing=tmp_path / "listing")
    )
    assert (result.verdict, counts(result)) == (Verdict.INCONCLUSIVE, (41, 40, 0, 1))
    (one,) = result.unjudged
    assert reason in one.reason
    assert (one.traces, one.trace) == (1, "100")
    listed = spark.read.parquet(str(tmp_path / "listing")).collect()
    assert [row["trace_id"] for row in listed] == [100]


@pytest.mark.parametrize("name", ["a b ü", "50%20 #1", "x[1]{2,3}", "a*b?c^d\\e,f:g"])
def test_a_store_may_lie_in_a_folder_of_any_name(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    options = Options(listing=folder / "listing")
    result = judge(spark, save(folder / "s", [*good(), WRONG_LOG]), options=options)
    assert counts(result) == (41, 40, 1, 0)
    assert list((folder / "listing").glob("*.parquet"))


@pytest.mark.parametrize(
    ("states", "actions", "reason"),
    [
        ([fingerprint(INITIAL), 12345], [0], "lacks a state"),
        ([12345], [], "lacks a state"),
        ([fingerprint(INITIAL), fingerprint(TAKEN)], [7], "dictionary lacks"),
    ],
)
def test_an_unknown_state_or_action_is_inconclusive(
    interpreted: SparkSession, tmp_path: Path, states: list[int], actions: list[int], reason: str
) -> None:
    columns = infer_columns(lock.VARIABLES, [INITIAL, TAKEN])
    rows = TraceRows()
    rows.add(0, 0, [fingerprint(INITIAL), fingerprint(TAKEN)], [0], "length")
    rows.add(1, 0, states, actions, "length")
    with open_writer(tmp_path / "s", lock.IDENTITY, columns) as writer:
        writer.add_chunk(write_chunk(writer.folder, 0, rows))
        prints = [fingerprint(INITIAL), fingerprint(TAKEN)]
        writer.write_states(np.array(prints), [INITIAL, TAKEN])
    result = judge(interpreted, TraceStore.open(tmp_path / "s"), lock.model_table())
    check_sql(interpreted, TraceStore.open(tmp_path / "s"), None, tmp_path)
    assert counts(result) == (2, 1, 0, 1)
    assert reason in result.unjudged[0].reason


@pytest.mark.parametrize("with_table", [True, False])
def test_sql_finds_what_the_evaluator_finds(
    interpreted: SparkSession, tmp_path: Path, with_table: bool
) -> None:
    faults = [NOT_ENABLED, WRONG_LOG, WRONG_START, LATE, TOO_MANY, FALLING]
    unseen = of_states(107, INITIAL, (0, ("a", None, ("a",))), (2, FREED))
    undefined = of_states(108, INITIAL, (0, ("a", 1, ())))
    unfit = of_states(109, INITIAL, (0, ("a", "one", ("a",))))
    store = save(tmp_path / "s", [*good(), *faults, unseen, undefined, unfit])
    model = lock.model_table() if with_table else None
    result = check_sql(interpreted, store, model, tmp_path)
    assert result.accounting.failed >= len(faults)
    asked = ["invariants", "action properties", "Take"]
    assert [choice.formulas for choice in result.choices] == asked


def test_an_undefined_formula_is_inconclusive_never_a_pass(
    interpreted: SparkSession, tmp_path: Path
) -> None:
    store = save(tmp_path / "s", good())
    for workers, sql in ((Here(), None), (OnSpark(interpreted), True)):
        rules, evaluator = lock.rules(("Partial",)), lock.evaluator(store, ("Partial",))
        result = audit(workers, store, rules, evaluator, options=Options(sql=sql))
        assert result.verdict is Verdict.INCONCLUSIVE
        assert result.accounting.inconclusive > 0
        assert result.unjudged[0].reason.startswith("Partial: ")
        assert 0 < result.coverage.judged["Partial"] < result.distinct_states


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
    assert judge(spark, store, options=Options(optional_actions=["Drop"])).verdict is Verdict.PASS


def test_a_formula_that_had_a_value_nowhere_makes_a_pass_vacuous(
    interpreted: SparkSession, tmp_path: Path
) -> None:
    store = save(tmp_path / "s", good())
    for workers, sql in ((Here(), None), (OnSpark(interpreted), True)):
        rules, evaluator = lock.rules(("Never",)), lock.evaluator(store, ("Never",))
        result = audit(workers, store, rules, evaluator, options=Options(sql=sql))
        assert result.verdict is Verdict.INCONCLUSIVE
        assert "the formula Never had a value nowhere" in result.vacuous


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("TRUE", "FALSE", "FALSE by Spark SQL, TRUE by Python"),
        ("FALSE", "TRUE", "TRUE by Spark SQL, FALSE by Python"),
    ],
)
def test_two_evaluators_that_disagree_are_a_fault_with_both_answers(
    interpreted: SparkSession, tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    """The SQL of each kind of formula in turn is that of another formula."""
    bad = [WRONG_LOG, TOO_MANY, FALLING] if right == "FALSE" else []
    store = save(tmp_path / "s", [*good(), *bad])
    for kind in ("compile_state_formulas", "compile_action_formulas"):
        right_one = getattr(sql_module, kind)

        def mistaken(program, names, schema, compiled=right_one):  # type: ignore[no-untyped-def]
            return [
                replace(f, formula=Truth(wrong == "TRUE")) for f in compiled(program, names, schema)
            ]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sql_module, kind, mistaken)
            events: list[Event] = []
            result = audit(
                OnSpark(interpreted),
                store,
                lock.rules(),
                lock.evaluator(store),
                options=Options(sql=True),
                emit=events.append,
            )
        assert result.disputed > 0
        assert result.verdict is (Verdict.FAIL if bad else Verdict.ERROR)
        assert isinstance(events[-1], StageFinished)
        assert events[-1].fault
        (finding,) = (f for f in result.findings if f.key == "audit-sql-and-python")
        assert said in finding.message


def test_a_table_that_the_formula_contradicts_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = save(tmp_path / "s", [*good(), NOT_ENABLED])
    (*_, before), last = NOT_ENABLED.states[:-1], NOT_ENABLED.steps[-1]
    table = lock.model_table()
    wrong = ModelTable(
        states=table.states,
        source=np.append(table.source, fingerprint(before)),
        action=np.append(table.action, np.int32(lock.ACTIONS.index(last.action))),
        target=np.append(table.target, fingerprint(last.state)),
    )
    result = judge(spark, store, wrong)
    assert result.verdict is Verdict.ERROR
    assert result.disputed == 1
    assert "disagree" in result.findings[0].title


def test_a_file_that_changes_under_the_audit_is_named(spark: SparkSession, tmp_path: Path) -> None:
    store = save(tmp_path / "s", good())
    path = store.files("traces")[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"traces/part-00000\.parquet"):
        judge(spark, store)


def test_a_manifest_that_counts_otherwise_than_the_files_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = save(tmp_path / "s", good())
    counted = replace(store, manifest=lock_counts(store))
    with pytest.raises(DataError, match="manifest counts 41"):
        judge(spark, counted)


def lock_counts(store: TraceStore) -> Manifest:
    manifest = store.manifest
    more = msgspec.structs.replace(manifest.counts, traces=41)
    return msgspec.structs.replace(manifest, counts=more)


def test_causes_beyond_the_limit_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    bad = [DROP_BACK, NOT_ENABLED, WRONG_LOG]
    result = judge(spark, save(tmp_path / "s", [*good(), *bad]), options=Options(max_causes=1))
    assert counts(result) == (43, 40, 3, 0)
    assert [finding.count for finding in result.findings] == [1, 2]
