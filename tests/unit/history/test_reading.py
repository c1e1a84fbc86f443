"""Lines, blocks, files: what of a history is understood, and what becomes of the rest."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from conformance.errors import DataError
from conformance.history import reading, windows
from conformance.history.judgement import HistoryJudgement, judge_history
from conformance.history.reading import History, history_files, read_history
from conformance.history.rules import RULES, Answer, DeclaredConfiguration
from conformance.history.shuffle import read_part
from conformance.verdict import Verdict
from conformance.workers import ForkedProcesses, Here, Workers
from tests.property.history.test_brute_force import drawn
from tests.unit.history.histories import Operation, formulas_of, polled, sent


def text(operations: list[Operation]) -> str:
    return "".join(json.dumps(operation) + "\n" for operation in operations)


def judged_files(
    folder: Path, files: dict[str, str], workers: Workers | None = None
) -> HistoryJudgement:
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    paths = [folder / name for name in sorted(files)]
    return judge_history(
        history_files(paths), formulas_of(DeclaredConfiguration()), folder, workers or Here()
    )


def read_files(folder: Path, files: dict[str, str]) -> History:
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return read_history(history_files([folder / name for name in sorted(files)]), folder, Here())


SENT = sent("a", ("p", 1, 0))
READ = polled("c", ("p", 1, 0))

BAD_LINES = {
    "no JSON": "{process",
    "cut": json.dumps(SENT)[:30],
    "no object": "[1]",
    "two on a line": json.dumps(SENT) + json.dumps(READ),
    "a key twice": json.dumps(READ).replace('"offset": 0', '"offset": 1, "offset": 0'),
    "lists that lie deep": json.dumps({**SENT, "group": 0}).replace(" 0}", " " + "[" * 100_000),
    "half a surrogate pair": json.dumps({**SENT, "process": "@"}).replace("@", r"\ud800"),
    "no process": json.dumps({**SENT, "process": None}),
    "another type": json.dumps({**SENT, "type": "done"}),
    "an offset below 0": json.dumps(polled("c", ("p", 1, -1))),
    "an offset of text": json.dumps({**READ, "polled": [{"key": "p", "offset": "0"}]}),
    "an offset that is beyond 64 bits": json.dumps(polled("c", ("p", 1, 1 << 70))),
    "a read without an offset": json.dumps({**READ, "polled": [{"key": "p", "value": 1}]}),
    "a record without a key": json.dumps({**SENT, "sent": [{"value": 1}]}),
    "a record that is null": json.dumps({**SENT, "sent": [None]}),
    "no UTF-8": '{"process":"\udcff"}',
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_one_lines_matter(tmp_path: Path, line: str) -> None:
    content = (text([SENT]) + line + "\n" + text([READ])).encode("utf-8", "surrogateescape")
    path = tmp_path / "history.ndjson"
    path.write_bytes(content)
    judgement = judge_history(
        history_files([path]), formulas_of(DeclaredConfiguration()), tmp_path, Here()
    )
    history = judgement.history
    assert [(bad.number, bad.is_end) for _, bad in history.bad] == [(2, False)]
    assert judgement.tallies["OneRecordPerOffset"].exercised == 1
    assert any("1 lines were not understood" in doubt for doubt in judgement.doubts())


def test_a_few_bad_lines_among_many_leave_the_verdict(tmp_path: Path) -> None:
    many = text([SENT, READ]) + text([polled("c", ("p", 1, 0), moved=["p"])] * 200)
    judgement = judged_files(tmp_path, {"h.ndjson": many + "{\n" + text([READ])})
    assert (judgement.verdict, judgement.history.bad_count) == (Verdict.PASS, 1)


def test_a_bad_line_may_have_moved_a_reader(tmp_path: Path) -> None:
    """What it says nobody knows: no reader of the file is accused over it."""
    before = text([polled("c", ("p", 1, 0), ("p", 2, 1), ("p", 3, 2))])
    after = text([polled("c", ("p", 1, 0))])
    assert judged_files(tmp_path, {"h.ndjson": before + after}).verdict is Verdict.FAIL
    judgement = judged_files(tmp_path, {"h.ndjson": before + "{\n" + after})
    assert judgement.verdict is Verdict.INCONCLUSIVE


def test_a_file_that_ends_amid_a_line_loses_that_line_only(tmp_path: Path) -> None:
    content = text([SENT, READ]) + json.dumps(READ)[:25]
    judgement = judged_files(tmp_path, {"h.ndjson": content})
    assert judgement.history.reasons == {"the file ends amid it": 1}


def test_numbers_and_texts_may_name_the_same(tmp_path: Path) -> None:
    """Some lines name a process and a value by a number, others by its digits."""
    history = text([sent("1", ("p", 1, 0)), {**sent("1", ("p", "2", 1)), "process": 1}, READ])
    judgement = judged_files(tmp_path, {"h.ndjson": history})
    assert judgement.history.operations["ok"] == 3
    assert len(judgement.history.files) == 1
    assert judgement.resent == 0


# --- operations that were begun -----------------------------------------------------------------

BEGUN = {
    "process": "a",
    "type": "invoke",
    "f": "send",
    "time": 5,
    "sent": [{"key": "p", "value": 7}],
}


def test_an_operation_that_never_ends_is_of_unknown_outcome(tmp_path: Path) -> None:
    judgement = judged_files(tmp_path, {"h.ndjson": text([BEGUN, polled("c", ("p", 7, 3))])})
    assert judgement.history.operations == {"ok": 1, "fail": 0, "unknown": 1}
    assert judgement.verdict is Verdict.PASS


@pytest.mark.parametrize("block", [64, 100, 1 << 20])
def test_a_beginning_and_its_end_may_be_of_two_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """The end does not repeat what was sent; what began after an answer is known as such."""
    monkeypatch.setattr(reading, "BLOCK", block)
    first = [{"key": "p", "value": 7, "offset": 4}]
    ends = [{"process": "a", "type": "ok", "f": "send", "time": 9, "sent": first},
            {**BEGUN, "time": 11, "sent": [{"key": "p", "value": 8, "offset": 3}]},
            {"process": "a", "type": "ok", "f": "send", "time": 15}]  # fmt: skip
    reads = [polled("c", ("p", 8, 3), ("p", 7, 4))]
    judgement = judged_files(tmp_path, {"h.ndjson": text([BEGUN, *ends, *reads])})
    assert judgement.history.operations == {"ok": 3, "fail": 0, "unknown": 0}
    assert {tally.rule.name for tally in judgement.broken()} == {"SentAfterAnswerLiesBehind"}


@pytest.mark.parametrize("block", [64, 1 << 20])
@pytest.mark.parametrize("repeats", [True, False])
def test_a_commit_of_two_blocks_ends_when_its_end_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, repeats: bool
) -> None:
    """A fetch between beginning and end may show the position before, and does so in both."""
    monkeypatch.setattr(reading, "BLOCK", block)

    def commit(offset: int) -> Operation:
        return {"process": "m", "f": "commit", "committed": [{"key": "p", "offset": offset}]}

    def both(offset: int, begin: int) -> list[Operation]:
        begun = {**commit(offset), "type": "invoke", "time": begin}
        ended = commit(offset) if repeats else {"process": "m", "f": "commit"}
        return [begun, {**ended, "type": "ok", "time": begin + 9}]

    fetch = {"process": "n", "type": "ok", "f": "fetch", "start": 22, "time": 24,
             "fetched": [{"key": "p", "offset": 3}]}  # fmt: skip
    judgement = judged_files(tmp_path, {"h.ndjson": text([*both(3, 1), *both(5, 20), fetch])})
    tallies = judgement.tallies
    assert dict(tallies["CommittedPositionIsKept"].answers) == {Answer.KEPT: 1}
    assert dict(tallies["CommittedPositionGoesForward"].answers) == {Answer.KEPT: 1}


def test_a_commit_is_of_the_group_that_its_beginning_names(tmp_path: Path) -> None:
    begun = {"process": "m", "type": "invoke", "f": "commit", "group": "g", "time": 1,
             "committed": [{"key": "p", "offset": 5}]}  # fmt: skip
    ended = {"process": "m", "type": "ok", "f": "commit", "time": 2}
    fetch = {"process": "n", "type": "ok", "f": "fetch", "group": "g", "start": 3, "time": 4,
             "fetched": [{"key": "p", "offset": 3}]}  # fmt: skip
    judgement = judged_files(tmp_path, {"h.ndjson": text([begun, ended, fetch])})
    assert {tally.rule.name for tally in judgement.broken()} == {"CommittedPositionIsKept"}


def test_a_process_goes_on_in_the_next_file(tmp_path: Path) -> None:
    first = text([polled("c", ("p", 1, 0), ("p", 2, 1), start=1, time=2)])
    second = text([polled("c", ("p", 1, 0), start=3, time=4)])
    judgement = judged_files(tmp_path, {"a.ndjson": first, "b.ndjson": second})
    assert {tally.rule.name for tally in judgement.broken()} == {"PollsGoForward"}


def test_a_process_of_two_files_at_once_is_not_judged_between_operations(tmp_path: Path) -> None:
    first = text([polled("c", ("p", 1, 0), ("p", 2, 1), start=1, time=9)])
    second = text([polled("c", ("p", 1, 0), start=3, time=4)])
    judgement = judged_files(tmp_path, {"a.ndjson": first, "b.ndjson": second})
    assert judgement.verdict is Verdict.PASS
    assert [reason for reason in judgement.history.reasons if "two files" in reason]


def test_a_clock_that_goes_back_proves_no_order_of_positions(tmp_path: Path) -> None:
    def commit(process: str, name: str, offset: int, start: int) -> Operation:
        f = "commit" if name == "committed" else "fetch"
        return {"process": process, "type": "ok", "f": f, "start": start, "time": start + 1,
                name: [{"key": "p", "offset": offset}]}  # fmt: skip

    steady = [commit("c", "committed", 5, 10), commit("d", "fetched", 1, 30)]
    jumps = [commit("d", "fetched", 1, 90), *steady]
    assert judged_files(tmp_path, {"h.ndjson": text(steady)}).verdict is Verdict.FAIL
    judgement = judged_files(tmp_path, {"h.ndjson": text(jumps)})
    assert judgement.verdict is not Verdict.FAIL
    assert judgement.history.jumping == {"d"}


# --- from where a process reads ------------------------------------------------------------------

BACK = polled("c", ("p", 1, 0))
AHEAD = polled("c", ("p", 1, 0), ("p", 2, 1))
MOVES = {
    "nothing": ([AHEAD, BACK], True),
    "taken away and given again": (
        [{"process": "c", "type": "ok", "f": "assign", "assigned": ["p", "q"]}, AHEAD,
         {"process": "c", "type": "ok", "f": "assign", "assigned": ["q"]},
         {"process": "c", "type": "ok", "f": "assign", "assigned": ["p"]}, BACK], False),
    "kept in a rebalance": (
        [{"process": "c", "type": "ok", "f": "assign", "assigned": ["p"]}, AHEAD,
         {"process": "c", "type": "ok", "f": "assign", "assigned": ["p", "q"]}, BACK], True),
    "a seek": ([AHEAD, {"process": "c", "type": "ok", "f": "seek", "moved": ["p"]}, BACK], False),
    "a seek of another": (
        [AHEAD, {"process": "c", "type": "ok", "f": "seek", "moved": ["q"]}, BACK], True),
    "a rebalance amid a poll": ([AHEAD, {**BACK, "moved": ["p"]}], False),
    "a new process": ([AHEAD, {"process": "c", "type": "ok", "f": "close"}, BACK], False),
    "a subscription that tells nothing": (
        [{"process": "c", "type": "ok", "f": "subscribe"}, AHEAD, BACK], False),
    "a subscription that tells": (
        [{"process": "c", "type": "ok", "f": "subscribe"},
         {"process": "c", "type": "ok", "f": "assign", "assigned": ["p"]}, AHEAD, BACK], True),
    "a transaction that failed": ([{**AHEAD, "type": "fail"}, BACK], False),
}  # fmt: skip


@pytest.mark.parametrize(("operations", "accused"), MOVES.values(), ids=MOVES)
def test_a_reader_that_goes_back_is_accused_if_nothing_moved_it(
    tmp_path: Path, operations: list[Operation], accused: bool
) -> None:
    judgement = judged_files(tmp_path, {"h.ndjson": text(operations)})
    assert ("PollsGoForward" in {t.rule.name for t in judgement.broken()}) is accused


# --- the same, whoever does the work -----------------------------------------------------------


def test_blocks_buckets_and_processes_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations: list[Operation] = []
    for seed in range(60):
        for operation in drawn(random.Random(seed)):
            more = {"process": f"{operation['process']}-{seed}"}
            begun = {"process": more["process"], "type": "invoke", "f": operation["f"]}
            operations += [begun, {**operation, **more}] if seed % 2 else [{**operation, **more}]
    whole = judged_files(tmp_path, {"h.ndjson": text(operations)})
    expected = {rule.name: dict(whole.tallies[rule.name].answers) for rule in RULES}
    monkeypatch.setattr(reading, "BLOCK", 1000)
    monkeypatch.setattr(reading, "_BUCKET", 4000)
    monkeypatch.setattr(windows, "WINDOW", 40)
    for workers in (Here(), ForkedProcesses(2)):
        parts = judged_files(tmp_path, {"h.ndjson": text(operations)}, workers)
        assert parts.history.buckets > 2
        assert {rule.name: dict(parts.tallies[rule.name].answers) for rule in RULES} == expected
        assert parts.verdict is whole.verdict is Verdict.FAIL


def test_places_of_lines_are_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK", 100)
    content = "\n" + text([SENT]) + "{\n\n" + text([READ] * 3)
    history = read_files(tmp_path, {"a.ndjson": content, "b.ndjson": content})
    expected = [(name, line) for name in ("a.ndjson", "b.ndjson") for line in (2, 5, 6, 7)]
    assert _orders(history) == expected
    assert [bad.number for _, bad in history.bad] == [3, 3]


def _orders(history: History) -> list[tuple[str, int]]:
    pieces = read_part(history.parts, 0)
    orders = [order for rows in pieces for order in rows.column("order").to_pylist()]
    places = map(history.line, orders)
    return sorted((file.path.name, number) for file, number in places)


def test_what_is_no_file_of_lines_says_what_to_do(tmp_path: Path) -> None:
    packed = tmp_path / "h.ndjson.gz"
    packed.write_bytes(gzip.compress(b"{}"))
    with pytest.raises(DataError, match="Unpack it first"):
        history_files([packed])
    with pytest.raises(DataError, match="is not a file"):
        history_files([tmp_path])
    with pytest.raises(DataError, match="is not a file"):
        history_files([tmp_path / "none"])
