"""A small history for each rule: with a lie it is accused of that rule, without it is not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.history.judgement import HistoryJudgement
from conformance.history.rules import RULES, Answer, DeclaredConfiguration
from conformance.modelcheck.manifest import load_model
from conformance.resources import models_dir
from conformance.verdict import Verdict
from tests.unit.history.histories import Operation, judged, polled, sent
from tests.unit.history.planted import shuffled


def txn(process: str, **more: Any) -> Operation:
    """A transaction that committed."""
    return {"process": process, "type": "ok", "f": "txn", **more}


def record(key: str, value: Any, offset: int | None) -> dict[str, Any]:
    return {"key": key, "value": value, "offset": offset}


def positions(process: str, name: str, offset: int, start: int, **more: Any) -> Operation:
    """A commit or a fetch of a position."""
    return {
        "process": process,
        "type": "ok",
        "f": "commit" if name == "committed" else "fetch",
        "start": start,
        "time": start + 1,
        name: [{"key": "p", "offset": offset}],
        **more,
    }


@dataclass(frozen=True, slots=True)
class Lie:
    """Two histories that differ in a lie, and the rules that it breaks."""

    name: str
    truth: Sequence[Operation]
    lie: Sequence[Operation]
    broken: tuple[str, ...]
    allows: DeclaredConfiguration | None = None
    """Under which configuration it is counted, and nobody accused."""


ACKS_1 = DeclaredConfiguration(acks="1")
UNCLEAN = DeclaredConfiguration(unclean_election=True)
UNCOMMITTED = DeclaredConfiguration(isolation="read_uncommitted")
THREE = [sent("a", ("p", n, n), start=10 * n, time=10 * n + 5) for n in range(3)]
READS = [polled("c", *(("p", n, n) for n in range(3)))]

LIES = (
    Lie("another record at an offset", [*THREE, *READS], [*THREE, *READS, polled("d", ("p", 7, 1))],
        ("OneRecordPerOffset", "AcknowledgedOffsetIsKept"), UNCLEAN),
    Lie("two answers name one offset", [*THREE, *READS],
        [*THREE, *READS, sent("b", ("p", 9, 1)), polled("d", ("p", 9, 9))],
        ("AcknowledgedOffsetIsKept", "IdempotentIsWrittenOnce"), None),
    Lie("nobody reads an acknowledged record", [*THREE, *READS],
        [*THREE, polled("c", ("p", 0, 0), ("p", 2, 2))], ("AcknowledgedIsKept",), ACKS_1),
    Lie("a record is read at two offsets", [*THREE, *READS],
        [*THREE, *READS, polled("d", ("p", 1, 4))], ("IdempotentIsWrittenOnce",),
        DeclaredConfiguration(idempotence=False)),
    Lie("an aborted record is read", [txn("a", sent=[record("p", 1, 0)]), polled("c", ("p", 1, 0))],
        [txn("a", sent=[record("p", 1, 0)], type="fail"), polled("c", ("p", 1, 0))],
        ("AbortedIsNotRead",), DeclaredConfiguration(transaction_version=1)),
    Lie("a refused record is read", [sent("a", ("p", 1, 0)), polled("c", ("p", 1, 0))],
        [sent("a", ("p", 1, None), type="fail"), polled("c", ("p", 1, 0))],
        ("RefusedIsNotAppended",)),
    Lie("a transaction reads what it sends",
        [txn("a", sent=[record("p", 1, 0)]), polled("a", ("p", 1, 0))],
        [txn("a", sent=[record("p", 1, 0)], polled=[record("p", 1, 0)])],
        ("UncommittedIsNotRead",), UNCOMMITTED),
    Lie("a poll leaves out a record", [*THREE, *READS],
        [*THREE, *READS, polled("d", ("p", 0, 0), ("p", 2, 2))], ("PollIsContiguous",), UNCLEAN),
    Lie("two polls leave out a record", [*THREE, *READS],
        [*THREE, *READS, polled("d", ("p", 0, 0)), polled("d", ("p", 2, 2))],
        ("PollsAreContiguous",), DeclaredConfiguration(deletion=True)),
    Lie("a poll goes back", [*THREE, *READS],
        [*THREE, *READS, polled("d", ("p", 1, 1), ("p", 0, 0))], ("PollGoesForward",)),
    Lie("a reader goes back", [*THREE, *READS],
        [*THREE, *READS, polled("d", ("p", 1, 1)), polled("d", ("p", 1, 1))],
        ("PollsGoForward",), UNCLEAN),
    Lie("what is sent together is out of order",
        [sent("a", ("p", 0, 0), ("p", 1, 1)), polled("c", ("p", 0, 0), ("p", 1, 1))],
        [sent("a", ("p", 0, 1), ("p", 1, 0)), polled("c", ("p", 1, 0), ("p", 0, 1))],
        ("SentTogetherKeepsOrder",), DeclaredConfiguration(idempotence=False)),
    Lie("what is sent after an answer lies before it", [*THREE, *READS],
        [*THREE, *READS, sent("b", ("p", 4, 5), start=0, time=5),
         sent("b", ("p", 3, 3), start=9, time=12), polled("c", ("p", 3, 3), ("p", 4, 5))],
        ("SentAfterAnswerLiesBehind",), ACKS_1),
    Lie("a member commits less than before",
        [polled("c", ("p", 0, 0)), positions("c", "committed", 1, 0)],
        [polled("c", ("p", 0, 0)), positions("c", "committed", 1, 0),
         positions("c", "committed", 0, 5)], ("CommittedPositionGoesForward",)),
    Lie("a member commits what it was not given", [*READS, positions("c", "committed", 3, 0)],
        [*READS, polled("d", ("p", 0, 0)), positions("d", "committed", 3, 0)],
        ("CommittedIsProcessed",), DeclaredConfiguration(deletion=True)),
    Lie("a group's position goes back",
        [*READS, positions("c", "committed", 3, 0), positions("d", "fetched", 3, 9)],
        [*READS, positions("c", "committed", 3, 0), positions("d", "fetched", 1, 9)],
        ("CommittedPositionIsKept",), UNCLEAN),
    Lie("a transaction without an answer is visible in part",
        [txn("a", sent=[record("p", 1, 1), record("q", 2, 1)], type="info"),
         polled("c", ("p", 1, 1), ("q", 0, 0), ("q", 2, 1), ("q", 3, 2))],
        [txn("a", sent=[record("p", 1, 1), record("q", 2, 1)], type="info"),
         polled("c", ("p", 1, 1), ("q", 0, 0), ("q", 3, 2))],
        ("TransactionIsWhole",), DeclaredConfiguration(transaction_version=1)),
    Lie("two transactions read from each other",
        [txn("a", sent=[record("p", 1, 0)]),
         txn("b", sent=[record("q", 2, 0)], polled=[record("p", 1, 0)]), polled("c", ("q", 2, 0))],
        [txn("a", sent=[record("p", 1, 0)], polled=[record("q", 2, 0)]),
         txn("b", sent=[record("q", 2, 0)], polled=[record("p", 1, 0)])],
        ("ReadTransactionsEndedBefore",), UNCOMMITTED),
)  # fmt: skip


def broken(judgement: HistoryJudgement) -> set[str]:
    return {tally.rule.name for tally in judgement.broken()}


@pytest.mark.parametrize("case", LIES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_lie_is_accused_of_its_rule_and_the_truth_is_not(case: Lie) -> None:
    truth, lie = judged(case.truth), judged(case.lie)
    assert (truth.verdict, lie.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert broken(lie) == {*case.broken}
    assert all(lie.tallies[name].answers[Answer.BROKEN] == 1 for name in case.broken)


@pytest.mark.parametrize(
    "case", [case for case in LIES if case.allows], ids=lambda case: case.name.replace(" ", "-")
)
def test_what_the_configuration_allows_is_counted(case: Lie) -> None:
    judgement = judged(case.lie, case.allows)
    assert judgement.verdict is Verdict.PASS
    assert all(judgement.tallies[name].answers[Answer.ALLOWED] for name in case.broken)


def test_each_rule_has_a_lie() -> None:
    planted = {name for case in LIES for name in case.broken}
    assert planted == {rule.name for rule in RULES if rule.decides}


def test_every_lie_is_counted() -> None:
    """Thirty of each kind together, in partitions and processes of their own."""
    copies = [case.lie for case in LIES for _ in range(30)]
    judgement = judged([*shuffled(copies, random.Random(1))])
    counts = {tally.rule.name: tally.answers[Answer.BROKEN] for tally in judgement.broken()}
    assert counts == Counter(name for case in LIES for name in case.broken for _ in range(30))


def test_each_rule_is_broken_by_a_model_and_checked_by_the_one_that_is_asked() -> None:
    """A rule by a mutant; a bare formula that a configuration allows, by a boundary."""
    folder = models_dir() / "history"
    models = [load_model(path) for path in sorted(folder.glob("*.toml"))]
    violated = {model.expect.violated for model in models if model.mutant}
    deciding = {rule.name for rule in RULES if rule.decides}
    assert violated == deciding
    assert deciding <= {*load_model(folder / "clients.toml").check.invariants}


# --- what is not known -------------------------------------------------------------------------


def test_a_record_that_nobody_has_read_yet_is_inconclusive_and_says_where_to_read() -> None:
    judgement = judged([*THREE, polled("c", ("p", 0, 0), ("p", 1, 1))])
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.doubts() == [
        "1 acknowledged records were not read: read on to the end of p from offset 2"
    ]


def test_a_duplicate_of_a_producer_that_had_no_answer_is_undecided() -> None:
    history = [
        sent("a", ("p", 0, 0)),
        sent("a", ("p", 5, None), type="info"),
        polled("c", ("p", 0, 0), ("p", 0, 1)),
    ]
    judgement = judged(history)
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.tallies["IdempotentIsWrittenOnce"].answers[Answer.UNDECIDED] == 1


def test_a_value_that_was_sent_twice_is_not_judged_by_value() -> None:
    judgement = judged([sent("a", ("p", 0, 0)), sent("a", ("p", 0, 1)), *READS[:0],
                        polled("c", ("p", 0, 0), ("p", 0, 1))])  # fmt: skip
    assert (judgement.verdict, judgement.resent) == (Verdict.PASS, 1)


def test_a_send_of_unknown_outcome_may_be_read_or_not() -> None:
    for reads in ((("p", 0, 0),), (("p", 0, 0), ("p", 9, 1))):
        history = [
            sent("a", ("p", 0, 0)),
            sent("b", ("p", 9, None), type="info"),
            polled("c", *reads),
        ]
        assert judged(history).verdict is Verdict.PASS


def test_records_without_values_are_judged_by_their_offsets() -> None:
    history = [
        sent("a", *(("p", None, n) for n in range(3))),
        polled("c", ("p", None, 0), ("p", None, 2)),
    ]
    assert broken(judged(history)) == {"AcknowledgedIsKept"}


def test_nothing_to_judge_is_no_pass() -> None:
    assert judged([{"process": "a", "type": "ok", "f": "assign", "assigned": ["p"]}]).verdict is (
        Verdict.INCONCLUSIVE
    )
