"""What is wrong with a history is said and counted, and the rest of it is judged all the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.errors import ExitCode
from tests.unit.cli.test_history import run
from tests.unit.history.histories import Operation, polled, sent


@dataclass(frozen=True, slots=True)
class BadHistory:
    """Files of a history in which nobody lies, and what must be said of them."""

    name: str
    files: Sequence[str]
    says: str
    ends: ExitCode = ExitCode.PASS


def text(*operations: Operation) -> str:
    return "".join(json.dumps(operation) + "\n" for operation in operations)


def position(process: str, f: str, offset: int, time: int) -> Operation:
    name = "committed" if f == "commit" else "fetched"
    at = {"start": time, "time": time + 1, name: [{"key": "p", "offset": offset}]}
    return {"process": process, "type": "ok", "f": f, **at}


SENT = sent("a", ("p", 1, 0), start=1, time=2)
READ = polled("c", ("p", 1, 0), start=3, time=4)
GOOD = text(SENT, READ)
MANY = text(*[polled("c", ("p", 1, 0), moved=["p"])] * 200)
BEGUN: Operation = {**sent("a", ("p", 2, None)), "type": "invoke"}

BAD = (
    BadHistory("an empty file", [""], "no rule applied to anything", ExitCode.INCONCLUSIVE),
    BadHistory("a file that ends amid a line", [GOOD + MANY + GOOD[:30]],
               "not judged: 1 time: the file ends amid it"),
    BadHistory("one line of many is no JSON", [GOOD + MANY + "{\n" + MANY],
               "0.ndjson, line 203: not JSON"),
    BadHistory("more than one line in a hundred is no JSON", [GOOD + "{\n" + text(READ)],
               "would decide: 1 lines were not understood", ExitCode.INCONCLUSIVE),
    BadHistory("what a poll returned has a misspelled name",
               [text(SENT, {**{k: v for k, v in READ.items() if k != "polled"}, "poled": []})],
               "1 lines were not understood", ExitCode.INCONCLUSIVE),
    BadHistory("the same, among lines of which one is looked at by itself",
               [text(SENT) + "{\n" + text({**READ, "polled": None})],
               "2 lines were not understood", ExitCode.INCONCLUSIVE),
    BadHistory("a poll that returned nothing", [GOOD + text({**READ, "polled": []})], "(3 ok"),
    BadHistory("a clock that jumps back",
               [GOOD + text(position("m", "commit", 1, 90), position("n", "fetch", 1, 99),
                            position("n", "fetch", 0, 5))],
               "not judged: 1 time: its clock goes back"),
    BadHistory("a clock of another process that is ahead",
               [GOOD + text(position("m", "commit", 1, 9000), position("n", "fetch", 0, 5))],
               "CommittedPositionIsKept"),
    BadHistory("a value that is sent twice",
               [text(SENT, sent("a", ("p", 1, 1), start=5, time=6)) +
                text(polled("c", ("p", 1, 0), ("p", 1, 1)))],
               "not judged by value: 1 value sent more than once"),
    BadHistory("two files of one process at once",
               [GOOD + text(polled("d", ("p", 1, 0), start=1, time=9)),
                text(polled("d", ("p", 1, 0), start=3, time=4))],
               "not judged: 1 time: of two files at the same time"),
    BadHistory("two files of one process at once, which sends",
               [text(sent("a", ("p", 2, 1), start=1, time=2)),
                text(sent("a", ("p", 1, 0), start=1, time=2),
                     polled("c", ("p", 1, 0), ("p", 2, 1)))],
               "not judged: 1 time: of two files at the same time"),
    BadHistory("a send that never ends", [GOOD + text(BEGUN)], "(2 ok, 0 failed, 1 unknown)"),
    BadHistory("a send that never ends, and was read",
               [text(SENT, BEGUN) + text(polled("c", ("p", 1, 0), ("p", 2, 1)))],
               "(2 ok, 0 failed, 1 unknown)"),
    BadHistory("records without a value",
               [text(sent("a", ("p", None, 0), ("p", None, 1)), polled("c", ("p", None, 0),
                                                                       ("p", None, 1)))],
               "(2 ok, 0 failed, 0 unknown)"),
    BadHistory("sends of which nobody was told the offset",
               [text(SENT, sent("a", ("p", 2, None)), READ)],
               "their offsets are not logged: log the offset that the producer is told",
               ExitCode.INCONCLUSIVE),
)  # fmt: skip

LOST = text(
    sent("liar", ("q", "x", 0), ("q", "y", 1), ("q", "z", 2)),
    polled("victim", ("q", "x", 0), ("q", "z", 2)),
)
"""An acknowledged record that nobody can read, by processes that do nothing else."""


def written(folder: Path, files: Sequence[str]) -> str:
    for number, content in enumerate(files):
        (folder / f"{number}.ndjson").write_text(content, encoding="utf-8")
    return str(folder / "*.ndjson")


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name.replace(" ", "-"))
def test_it_is_said_and_nobody_is_accused(
    case: BadHistory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(written(tmp_path, case.files), output=tmp_path / "out") == case.ends
    assert case.says in capsys.readouterr().out


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name.replace(" ", "-"))
def test_a_lie_beside_it_is_found(
    case: BadHistory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = written(tmp_path, [LOST + case.files[0], *case.files[1:]])
    assert run(pattern, output=tmp_path / "out") == ExitCode.FAIL
    output = capsys.readouterr().out
    assert "1 time an acknowledged record is lost; the rule is AcknowledgedIsKept" in output


VALUELESS = (
    ("AcknowledgedIsKept", [sent("a", *(("p", None, n) for n in range(3))),
                            polled("c", ("p", None, 0), ("p", None, 2))]),
    ("PollsGoForward", [polled("c", ("p", None, 0), ("p", None, 1)), polled("c", ("p", None, 0))]),
    ("PollIsContiguous", [polled("c", *(("p", None, n) for n in range(3))),
                          polled("d", ("p", None, 0), ("p", None, 2))]),
    ("SentAfterAnswerLiesBehind", [sent("a", ("p", None, 5), start=1, time=2),
                                   sent("a", ("p", None, 4), start=3, time=4)]),
    ("CommittedIsProcessed", [polled("c", *(("p", None, n) for n in range(3))),
                              polled("d", ("p", None, 0)), position("d", "commit", 3, 9)]),
)  # fmt: skip


@pytest.mark.parametrize(("rule", "history"), VALUELESS, ids=[rule for rule, _ in VALUELESS])
def test_records_without_a_value_are_judged_by_their_offsets(
    rule: str, history: Sequence[Operation], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(written(tmp_path, [text(*history)]), output=tmp_path / "out") == ExitCode.FAIL
    assert f"the rule is {rule}" in capsys.readouterr().out
