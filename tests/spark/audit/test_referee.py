"""TLC and the audit agree on recorded traces, and where one of them is wrong that is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.audit.engine import Options, audit
from conformance.audit.referee import Agreement, RefereeResult, agreement, referee
from conformance.errors import ExitCode
from conformance.events import Event, StageFinished
from conformance.modelcheck.behaviours import BehaviourJudgement
from conformance.modelcheck.check import CheckOptions
from conformance.modelcheck.form import Check
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.modelcheck.tlc import TlcOptions
from conformance.report.collect import Collector
from conformance.stages.context import Context
from conformance.stages.referee import referee as referee_stage
from conformance.stages.subject import AuditedStore
from conformance.tla import find_tools
from conformance.traces.model import Trace, TraceEnd
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict
from conformance.workers import Here
from tests.spark.audit import lock
from tests.spark.audit.lock import INITIAL, of_states, save, walk

pytestmark = [pytest.mark.spark, pytest.mark.tlc]

TLC = TlcOptions(heap="512m", timeout=300)
TAKEN = ("a", 1, ("a",))
FREED = ("nobody", 1, ("a",))


@cache
def prepared() -> PreparedModel:
    spec = Path(__file__).with_name("Lock.tla")
    check = Check(init="Init", next="Next", invariants=lock.INVARIANTS, properties=lock.PROPERTIES)
    constants = {"Clients": '{"a", "b"}', "Limit": "3"}
    model = Model(name="lock", origin=spec, spec_path=spec, check=check, constants=constants)
    return prepare(model, find_tools())


def ask(store: TraceStore, listing: Path, count: int) -> RefereeResult:
    return referee(store, prepared(), listing, count=count, seed=1, tools=find_tools(), options=TLC)


def audited(store: TraceStore, listing: Path) -> None:
    audit(Here(), store, lock.rules(), lock.evaluator(store), options=Options(listing=listing))


def good() -> list[Trace]:
    return [walk(number) for number in range(12)]


ILLEGAL = of_states(100, INITIAL, (0, TAKEN), (2, INITIAL))
WRONG_LOG = of_states(101, INITIAL, (0, TAKEN), (2, FREED), (0, ("a", 2, ("a", "b"))), (2, FREED))
WRONG_COUNT = of_states(102, INITIAL, (0, ("a", 3, ("a",))), (2, ("nobody", 3, ("a",))))
WRONG_START = of_states(103, FREED, (1, ("b", 2, ("a", "b"))))
UNDEFINED = of_states(104, INITIAL, (0, TAKEN), (0, ("a", 0, ())))
PARTIAL = of_states(105, INITIAL, (0, ("a", None, ("a",))))
DIVERGED = replace(
    of_states(106, INITIAL, (0, TAKEN), (2, ("b", None, None))),
    end=TraceEnd.DIVERGED,
    problem="state not allowed: holder",
)
BAD = [ILLEGAL, WRONG_LOG, WRONG_COUNT, WRONG_START, UNDEFINED, PARTIAL, DIVERGED]


def test_they_agree_on_traces_that_pass(tmp_path: Path) -> None:
    store = save(tmp_path / "s", good())
    audited(store, tmp_path / "listing")
    result = ask(store, tmp_path / "listing", 5)
    assert (result.verdict, result.traces, result.agreed) == (Verdict.PASS, 5, 5)
    assert 0 < result.steps <= 5 * 6
    assert result.figures() == {
        "traces": 5,
        "steps": result.steps,
        "agreed": 5,
        "undecided": 0,
        "left_out": 0,
        "tlc_seconds": round(result.tlc_seconds, 3),
    }


def test_they_agree_on_every_kind_of_bad_trace(tmp_path: Path) -> None:
    store = save(tmp_path / "s", [*good(), *BAD])
    audited(store, tmp_path / "listing")
    result = ask(store, tmp_path / "listing", 100)
    assert result.disagreements == ()
    # TLC stops where a formula has no value, and the audit says what else is false there.
    assert (result.agreed, result.undecided, result.left_out) == (len(good()) + 5, 1, 1)
    assert result.verdict is Verdict.INCONCLUSIVE


def listed(folder: Path, *rows: tuple[int, int, Sequence[str]]) -> Path:
    """What an audit would write that finds these traces to fail, at these steps."""
    folder.mkdir()
    numbers, steps, names = zip(*rows, strict=True)
    columns = {
        "trace_id": pa.array(numbers, pa.int64()),
        "failed": pa.array([True] * len(rows)),
        "step": pa.array(steps, pa.int32()),
        "suspect": pa.array([1] * len(rows), pa.int64()),
        "violations": pa.array(names, pa.list_(pa.string())),
        "doubts": pa.array([[]] * len(rows), pa.list_(pa.string())),
    }
    pq.write_table(pa.table(columns), folder / "part-0.parquet")
    return folder


def test_a_wrong_verdict_of_the_audit_is_found(tmp_path: Path) -> None:
    store = save(tmp_path / "s", [*good(), ILLEGAL, WRONG_LOG, WRONG_COUNT])
    doctored = listed(
        tmp_path / "doctored",
        (3, 2, ["Next"]),  # it passes
        (4, 2, ["CountNeverFalls"]),  # an action property: not for TLC to say
        (101, 2, ["HolderIsLast", "Next"]),  # a step too early
        (102, 1, ["Next"]),  # CountIsLength is false there too
    )  # and trace 100 would pass
    events: list[Event] = []
    collector = Collector(events.append)
    context = Context(emit=collector, check=CheckOptions(tlc=TLC))
    result = referee_stage(context, AuditedStore(store, prepared(), None), doctored, traces=100)
    assert result.verdict is Verdict.ERROR
    assert result.agreed == len(good()) - 1
    told = {one.trace: (one.step, one.message) for one in result.disagreements}
    assert {trace: step for trace, (step, _) in told.items()} == {
        "3": 2,
        "100": 2,
        "101": 2,
        "102": 1,
    }
    assert "the audit says: Next false at step 2. TLC says: nothing is false" in told["3"][1]
    assert "the audit says: nothing is false. TLC says: Next false at step 2" in told["100"][1]
    assert "TLC says: CountIsLength, Next false at step 1" in told["102"][1]
    last = events[-1]
    assert isinstance(last, StageFinished)
    assert last.fault
    report = collector.report("audit", 1.0, {}, Verdict.FAIL)
    assert (report.verdict, report.exit_code) == (Verdict.FAIL, ExitCode.INTERNAL)


def test_partial_traces_alone_are_nothing_to_agree_on(tmp_path: Path) -> None:
    result = ask(save(tmp_path / "s", [PARTIAL]), tmp_path / "none", 100)
    assert (result.verdict, result.traces, result.left_out) == (Verdict.INCONCLUSIVE, 0, 1)


FINE = BehaviourJudgement()
FALSE = BehaviourJudgement(2, ("Next",))
NO_VALUE = BehaviourJudgement(2, (), "out of domain")


@pytest.mark.parametrize(
    ("audits", "tlcs", "said"),
    [
        (FINE, FINE, Agreement.AGREED),
        (FALSE, FALSE, Agreement.AGREED),
        (FALSE, BehaviourJudgement(3, ("Next",)), Agreement.DISAGREED),
        (FALSE, BehaviourJudgement(2, ("Init",)), Agreement.DISAGREED),
        (FALSE, FINE, Agreement.DISAGREED),
        (BehaviourJudgement(5, ("Next",)), FINE, Agreement.AGREED),  # behind what TLC was given
        (NO_VALUE, NO_VALUE, Agreement.AGREED),
        (FINE, NO_VALUE, Agreement.DISAGREED),  # what passes has a value everywhere
        (NO_VALUE, FINE, Agreement.UNDECIDED),
        (FALSE, NO_VALUE, Agreement.UNDECIDED),
        (BehaviourJudgement(1, ("Next",)), NO_VALUE, Agreement.DISAGREED),
        (NO_VALUE, BehaviourJudgement(1, ("Next",)), Agreement.DISAGREED),
        (NO_VALUE, BehaviourJudgement(3, ("Next",)), Agreement.UNDECIDED),
        (FALSE, None, Agreement.UNDECIDED),
    ],
)
def test_what_two_judgements_are_to_each_other(
    audits: BehaviourJudgement, tlcs: BehaviourJudgement | None, said: Agreement
) -> None:
    assert agreement(audits, tlcs, 5) is said
