"""Jepsen's histories of its Kafka workload, read as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.history.edn import Keyword, operation_of, parse, read_block
from conformance.history.judgement import judge_history
from conformance.history.lines import LoggedOperation, LoggedRead, SentRecord
from conformance.history.reading import history_files
from conformance.history.rules import DeclaredConfiguration
from conformance.workers import Here
from tests.unit.history.histories import formulas_of

VALUES = {
    "nil": None,
    "[1 -2 3N]": [1, -2, 3],
    '{:a "b \\"c\\"", 2 [true false]}': {"a": 'b "c"', 2: [True, False]},
    "#{1}": [1],
    "(1, 2) ; a comment": [1, 2],
    "#jepsen.history.Op{:index 1}": {"index": 1},
    "[#_ 1 2]": [2],
    ":k/w": "k/w",
}


@pytest.mark.parametrize(("text", "value"), VALUES.items(), ids=VALUES)
def test_values(text: str, value: object) -> None:
    assert parse(text) == value


def test_a_keyword_is_told_from_a_text() -> None:
    assert isinstance(parse(":nemesis"), Keyword)
    assert not isinstance(parse('"nemesis"'), Keyword)


@pytest.mark.parametrize("text", ["", "[1", "{:a}", "1 2", "]", '"a', "[" * 200, "{:a 1, :a 2}"])
def test_no_values(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(text)


def operation(text: str) -> LoggedOperation | None:
    return operation_of(parse(text))


def test_an_operation_with_sends_and_polls() -> None:
    read = operation(
        "{:process 3, :type :ok, :f :txn, :time 12, :index 4, "
        ":value [[:send 5 [17 2]] [:send 5 [nil 3]] [:poll {5 [[16 1]], 6 [[0 9]]}]]}"
    )
    assert read is not None
    assert (read.process, read.type, read.f, read.time) == (3, "ok", "txn", 12)
    assert read.sent == (SentRecord(5, 2, 17), SentRecord(5, 3, None))
    assert read.polled == (LoggedRead(5, 16, 1), LoggedRead(6, 0, 9))


def test_what_moves_a_reader() -> None:
    begun = operation("{:process 0, :type :invoke, :f :assign, :value [1 2]}")
    assigned = operation("{:process 0, :type :ok, :f :assign, :value [1 2]}")
    sought = operation("{:process 0, :type :ok, :f :assign, :value [1], :seek-to-beginning? true}")
    rebalanced = operation(
        "{:process 0, :type :ok, :f :poll, :value [[:poll {}]], :rebalance-log [{:keys [1 3]}]}"
    )
    operations = (begun, assigned, sought, rebalanced)
    assert [op.assigned for op in operations if op] == [None, (1, 2), (1,), None]
    assert [op.moved for op in operations if op] == [None, None, (1,), (1, 3)]


def test_the_nemesis_is_no_client() -> None:
    assert operation("{:process :nemesis, :type :info, :f :partition, :value nil}") is None


def test_a_bad_line_is_one_lines_matter() -> None:
    good = "{:process 0, :type :ok, :f :send, :value [[:send 1 [0 1]]]}\n"
    block = read_block((good + "{:process\n" + "{:value 1}\n" + good).encode(), 1, cut=False)
    assert list(block.numbers) == [1, 4]
    assert [bad.number for bad in block.bad] == [2, 3]


def test_an_aborted_read_of_jepsens_is_accused(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(
        "{:process 0, :type :invoke, :f :txn, :value [[:send 1 7]]}\n"
        "{:process 0, :type :fail, :f :txn, :value [[:send 1 7]]}\n"
        "{:process 1, :type :invoke, :f :poll, :value [[:poll]]}\n"
        "{:process 1, :type :ok, :f :poll, :value [[:poll {1 [[3 7]]}]]}\n",
        encoding="utf-8",
    )
    formulas = formulas_of(DeclaredConfiguration())
    judgement = judge_history(history_files([path]), formulas, tmp_path, Here())
    assert [tally.rule.name for tally in judgement.broken()] == ["AbortedIsNotRead"]
