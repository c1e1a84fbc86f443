"""Two judgements of one behaviour: when they agree, when neither can tell, when one is wrong."""

from __future__ import annotations

import random
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.audit import referee as referee_module
from conformance.audit.referee import (
    Agreement,
    RefereeCase,
    RefereeResult,
    _audits_word,
    _evenly,
    _ListedTrace,
    agreement,
    compare,
    referee,
    sample,
)
from conformance.modelcheck.behaviours import BehaviourJudgement, IndexedBehaviour, TlcJudgements
from conformance.modelcheck.prepare import PreparedModel
from conformance.modelcheck.tlc import Processes, TlcOptions
from conformance.tla import Action, Tools
from conformance.traces.manifest import Identity
from conformance.traces.model import Trace, TraceEnd, TraceStep
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import write_store
from conformance.verdict import Verdict

AGREED, UNDECIDED, DISAGREED = Agreement
FINE = BehaviourJudgement()


def false(step: int, *names: str) -> BehaviourJudgement:
    return BehaviourJudgement(step, names or ("Next",))


def undefined(step: int, *names: str) -> BehaviourJudgement:
    return BehaviourJudgement(step, names, "no value")


@pytest.mark.parametrize(
    ("audit", "tlc", "outcome"),
    [
        (FINE, FINE, AGREED),
        (false(2), false(2), AGREED),
        (false(2), FINE, DISAGREED),
        (FINE, false(2), DISAGREED),
        (false(2), false(1), DISAGREED),
        (false(2, "TypeOK"), false(2, "Next"), DISAGREED),
        # The audit found something behind the behaviour's end: TLC was not asked.
        (false(5), FINE, AGREED),
        (false(4), FINE, AGREED),
        (false(3), FINE, DISAGREED),
        (FINE, None, UNDECIDED),
        (undefined(2), undefined(2), AGREED),
        (undefined(2), undefined(1), UNDECIDED),
        (undefined(2), false(3), UNDECIDED),
        (undefined(2), false(2), UNDECIDED),
        (undefined(2), false(1), DISAGREED),
        (undefined(2), FINE, UNDECIDED),
        # A trace that passes has a value everywhere.
        (FINE, undefined(2), DISAGREED),
        (false(3), undefined(2), UNDECIDED),
        (false(1), undefined(2), DISAGREED),
        (false(0), undefined(0), UNDECIDED),
    ],
)
def test_agreement(
    audit: BehaviourJudgement, tlc: BehaviourJudgement | None, outcome: Agreement
) -> None:
    assert agreement(audit, tlc, length=4) is outcome


@pytest.mark.parametrize(
    ("listed", "length", "word"),
    [
        (None, 7, FINE),
        # It diverged at step 3: of that step's state only what was observed is known.
        (_ListedTrace(True, 3, 0, (), ()), 3, BehaviourJudgement(3, ("step equality",))),
        (
            _ListedTrace(False, 3, 2, (), ("A: x", "B: y")),
            7,
            BehaviourJudgement(3, (), "A: x; B: y"),
        ),
        (
            _ListedTrace(True, 3, 2, ("Safe", "Next"), ("A: x",)),
            7,
            BehaviourJudgement(3, ("Next", "Safe")),
        ),
        (_ListedTrace(True, 3, 2, ("Safe", "Grows"), ()), 7, BehaviourJudgement(3, ("Safe",))),
        # Only TLC's whole-graph properties are false: the step itself is still TLC's to judge.
        (_ListedTrace(True, 3, 2, ("Grows",), ()), 4, BehaviourJudgement(4, ("Grows",))),
    ],
)
def test_what_the_audit_said_as_far_as_tlc_can_say_it(
    listed: _ListedTrace | None, length: int, word: BehaviourJudgement
) -> None:
    assert _audits_word(listed, {"Init", "Next", "Safe"}, 7) == (length, word)


@pytest.mark.parametrize(
    ("total", "count"), [(0, 3), (3, 0), (3, 3), (2, 5), (10, 3), (1000, 10), (7, 6)]
)
def test_a_sample_is_spread_over_the_store(total: int, count: int) -> None:
    for seed in range(20):
        chosen = _evenly(total, count, random.Random(seed))
        assert len(chosen) == len(set(chosen)) == min(total, count)
        assert chosen == sorted(chosen)
        assert all(0 <= place < total for place in chosen)
        for part, place in enumerate(chosen if total > count else []):
            assert part * total // count <= place < (part + 1) * total // count


def test_a_small_store_is_taken_whole() -> None:
    assert _evenly(3, 3, random.Random(1)) == _evenly(3, 9, random.Random(1)) == [0, 1, 2]


TAKE, DROP, AGAIN = Action("Take", ("a",)), Action("Drop"), Action("Take", ("b",))


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    identity = Identity(
        "Lock", "", "lock", {}, ["x"], [str(TAKE), str(DROP), str(AGAIN)], "toy", "1"
    )
    trace = Trace(0, 0, (0,), (), TraceEnd.LENGTH)
    write_store(tmp_path / "s", identity, infer_columns(("x",), [(0,)]), [trace])
    return TraceStore.open(tmp_path / "s")


def case(trace_id: int, audit: BehaviourJudgement, last: int = 0) -> RefereeCase:
    """By Drop and another action, Take("a") if nothing else is said."""
    return RefereeCase(trace_id, IndexedBehaviour(((0,), (1,), (2,)), (1, last)), audit)


def test_only_disagreements_are_findings(store: TraceStore) -> None:
    cases = [case(1, FINE), case(2, FINE), case(3, false(2, "Safe", "Next")), case(4, FINE)]
    judged = TlcJudgements((FINE, None, false(2, "Next"), FINE), 12, 1.5)
    result = compare(store, cases, judged, left_out=5)
    assert (result.agreed, result.undecided, result.left_out) == (2, 1, 5)
    assert (result.traces, result.steps, result.tlc_seconds) == (4, 12, 1.5)
    assert result.verdict is Verdict.ERROR
    (finding,) = result.disagreements
    assert (finding.trace, finding.step, finding.action) == ("3", 2, 'Take("a")')
    assert finding.formula == "Next, Safe"
    assert (finding.title, finding.stage) == ("TLC and the audit disagree", "referee")
    assert finding.reproduce == f"kconform replay --store {store.path} --trace 3"
    assert "Of trace 3 the audit says:" in finding.message


@pytest.mark.parametrize(
    ("audit", "tlc", "step", "action"),
    [
        (FINE, false(1), 1, "Drop"),
        (false(2), false(1), 1, "Drop"),
        (false(0, "Init"), FINE, 0, ""),
        (FINE, false(2), 2, 'Take("a")'),
    ],
)
def test_a_disagreement_is_told_at_the_earlier_step(
    store: TraceStore, audit: BehaviourJudgement, tlc: BehaviourJudgement, step: int, action: str
) -> None:
    (finding,) = compare(store, [case(1, audit)], TlcJudgements((tlc,), 3, 0.0)).disagreements
    assert (finding.step, finding.action) == (step, action)


def test_disagreements_of_one_kind_have_one_key(store: TraceStore) -> None:
    cases = [case(1, FINE), case(2, FINE, last=2), case(3, false(2, "Safe"))]
    judged = TlcJudgements((false(2), false(2), false(2)), 9, 0.0)
    result = compare(store, cases, judged)
    assert result.left_out == 0
    first, second, other = result.disagreements
    assert first.key == second.key != other.key
    keys = {
        compare(store, [case(1, FINE)], TlcJudgements((false(step),), 3, 0.0)).disagreements[0].key
        for step in range(3)  # the initial state, Drop, Take
    }
    assert len(keys) == 3


@dataclass(slots=True)
class Tlc:
    """Stands where TLC is run: finds nothing false, and keeps what it was asked."""

    asked: list[tuple[object, ...]]

    def __call__(
        self,
        prepared: object,
        actions: Sequence[Action],
        behaviours: Sequence[IndexedBehaviour],
        *means: object,
    ) -> TlcJudgements:
        self.asked.append((prepared, actions, behaviours, *means))
        return TlcJudgements((FINE,) * len(behaviours), 40, 2.5)


TOOLS, OPTIONS = cast("Tools", object()), TlcOptions(heap="1m", timeout=7)


def model() -> PreparedModel:
    check = SimpleNamespace(invariants=("Safe",))
    return cast("PreparedModel", SimpleNamespace(model=SimpleNamespace(check=check)))


def ten_traces(path: Path, *, partial: Container[int] = ()) -> TraceStore:
    """Of one step each, from n to n + 1; of some it is not known where that leads."""
    identity = Identity("Lock", "", "lock", {}, ["x"], [str(TAKE), str(DROP)], "toy", "1")
    steps = [TraceStep(DROP, (None if n in partial else n + 1,)) for n in range(10)]
    traces = [Trace(n, 0, (n,), (step,), TraceEnd.LENGTH) for n, step in enumerate(steps)]
    write_store(path, identity, infer_columns(("x",), [(0,)]), traces)
    return TraceStore.open(path)


def test_tlc_is_given_the_sample_and_what_it_says_is_held_against_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tlc, prepared = Tlc([]), model()
    monkeypatch.setattr(referee_module, "judge_behaviours", tlc)
    store = ten_traces(tmp_path / "s", partial=[9])
    said = pa.table(
        {
            "trace_id": pa.array([4], pa.int64()),
            "failed": [True],
            "step": pa.array([1], pa.int32()),
            "suspect": pa.array([1], pa.int64()),
            "violations": pa.array([["Safe"]], pa.list_(pa.string())),
            "doubts": pa.array([[]], pa.list_(pa.string())),
        }
    )
    (tmp_path / "listing").mkdir()
    pq.write_table(said, tmp_path / "listing" / "part-0.parquet")

    judged = referee(
        store,
        prepared,
        tmp_path / "listing",
        count=10,
        seed=3,
        tools=TOOLS,
        options=OPTIONS,
    )

    ((asked, actions, behaviours, tools, options, processes),) = tlc.asked
    assert (asked, tools, options) == (prepared, TOOLS, OPTIONS)
    assert actions == (TAKE, DROP)
    assert behaviours == [IndexedBehaviour(((n,), (n + 1,)), (1,)) for n in range(9)]
    assert isinstance(processes, Processes)
    assert (judged.agreed, judged.left_out) == (8, 1)
    assert (judged.steps, judged.tlc_seconds) == (40, 2.5)
    assert [(one.trace, one.step) for one in judged.disagreements] == [("4", 1)]


def test_the_seed_chooses_what_tlc_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tlc = Tlc([])
    monkeypatch.setattr(referee_module, "judge_behaviours", tlc)
    store, listing = ten_traces(tmp_path / "s"), tmp_path / "none"
    for seed in range(5):
        judged = referee(store, model(), listing, count=6, seed=seed, tools=TOOLS, options=OPTIONS)
        assert (judged.traces, judged.verdict) == (6, Verdict.PASS)
        cases, _ = sample(store, model(), listing, 6, seed)
        assert tlc.asked[-1][2] == [case.behaviour for case in cases]
    assert len({str(asked[2]) for asked in tlc.asked}) > 1


def test_for_partial_traces_alone_tlc_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tlc = Tlc([])
    monkeypatch.setattr(referee_module, "judge_behaviours", tlc)
    store = ten_traces(tmp_path / "s", partial=range(10))
    listing = tmp_path / "none"
    judged = referee(store, model(), listing, count=10, seed=1, tools=TOOLS, options=OPTIONS)
    assert judged == RefereeResult(0, 0, (), 10, 0, 0.0)
    assert tlc.asked == []


def result(agreed: int, undecided: int, left_out: int = 0) -> RefereeResult:
    return RefereeResult(agreed, undecided, (), left_out, 1234, 2.04567)


@pytest.mark.parametrize(
    ("agreed", "undecided", "verdict"),
    [
        (3, 0, Verdict.PASS),
        (3, 1, Verdict.INCONCLUSIVE),
        (0, 0, Verdict.INCONCLUSIVE),
        (0, 1, Verdict.INCONCLUSIVE),
    ],
)
def test_who_has_judged_nothing_or_could_not_tell_does_not_pass(
    agreed: int, undecided: int, verdict: Verdict
) -> None:
    assert result(agreed, undecided).verdict is verdict


def test_the_summary_counts_what_was_left_out() -> None:
    assert result(3, 1).summary() == "TLC and the audit agree on 3 of 4 traces, 1,234 steps"
    assert result(3, 0, 2).summary().endswith("3 of 3 traces, 1,234 steps; 2 partial ones left out")
    assert result(3, 1, 2).figures() == {
        "traces": 4,
        "steps": 1234,
        "agreed": 3,
        "undecided": 1,
        "left_out": 2,
        "tlc_seconds": 2.046,
    }
