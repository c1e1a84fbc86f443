"""`kconform diff`: pairs of specifications whose difference is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.cli.main import load

pytestmark = pytest.mark.tlc

QUEUE = r"""
EXTENDS Naturals, Sequences
CONSTANT Room
VARIABLES queue, sent
Init == queue = <<>> /\ sent = 0
Send == /\ Len(queue) < Room
        /\ sent < 3
        /\ sent' = sent + 1
        /\ queue' = Append(queue, sent')
Receive == queue /= <<>> /\ queue' = Tail(queue) /\ UNCHANGED sent
Next == Send \/ Receive
"""
BOUNDS = "INIT Init\nNEXT Next\nCONSTANT Room = 2\n"


def write(folder: Path, name: str, text: str) -> str:
    """A module, with the configuration of all of them beside it."""
    (folder / f"{name}.cfg").write_text(BOUNDS)
    path = folder / f"{name}.tla"
    path.write_text(f"---- MODULE {name} ----{text}====\n")
    return str(path)


def diff(*args: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the figures of the stage."""
    result = CliRunner().invoke(load("diff"), [*args, "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    start = result.stdout.index("{\n")
    return result.exit_code, json.loads(result.stdout[start:])


def labels(report: dict[str, Any], key: str) -> list[tuple[str, int, int]]:
    """Of each kind of distinguishing steps the action, how many, and the length of the shortest."""
    return [(row["action"], row["steps"], row["length"]) for row in report[key]]


def replaced(old: str, new: str) -> str:
    """The text with a change that is there."""
    assert old in QUEUE
    return QUEUE.replace(old, new)


EQUAL = {
    "the same text": QUEUE,
    "another text": replaced(
        "Next == Send \\/ Receive", "Next == \\/ (queue /= <<>> /\\ Receive)\n        \\/ Send"
    ),
    "a renamed action": QUEUE.replace("Receive", "Deliver"),
    "one more variable, that nobody sees": QUEUE.replace("VARIABLES queue", "VARIABLES seen, queue")
    .replace("/\\ sent = 0", "/\\ sent = 0 /\\ seen = 0")
    .replace("UNCHANGED sent", "UNCHANGED sent /\\ seen' = 1 - seen")
    .replace("Append(queue, sent')", "Append(queue, sent') /\\ UNCHANGED seen"),
}


@pytest.mark.parametrize("change", EQUAL)
def test_specifications_with_the_same_behaviours_are_equal(change: str, tmp_path: Path) -> None:
    code, report = diff(write(tmp_path, "Old", QUEUE), write(tmp_path, "New", EQUAL[change]))

    assert (code, report["verdict"], report["equal"], report["exhausted"]) == (
        0,
        "pass",
        True,
        True,
    )
    assert (report["added"], report["taken_away"]) == ([], [])
    assert report["states"]["old"] == 9
    assert report["hidden"]["new"] == (["seen"] if "more" in change else [])


def test_a_removed_guard_adds_behaviours(tmp_path: Path) -> None:
    free = replaced("/\\ Len(queue) < Room\n", "/\\ TRUE\n")
    code, report = diff(write(tmp_path, "Old", QUEUE), write(tmp_path, "New", free))

    assert (code, report["equal"]) == (1, False)
    assert labels(report, "added") == [("Send", 1, 4)]
    assert labels(report, "taken_away") == []
    (finding,) = report["findings"]
    assert finding["action"] == "Send"
    story = "\n".join(finding["story"])
    assert "3. Send" in story
    assert "Send is not enabled in its state." in story
    assert "Len(queue) < Room is FALSE" in story


def test_an_added_guard_takes_behaviours_away(tmp_path: Path) -> None:
    free = replaced("/\\ Len(queue) < Room\n", "/\\ TRUE\n")
    code, report = diff(write(tmp_path, "Old", free), write(tmp_path, "New", QUEUE))

    assert code == 1
    assert (labels(report, "added"), labels(report, "taken_away")) == ([], [("Send", 1, 4)])


def test_an_added_action_is_named_with_the_disjuncts_that_it_takes(tmp_path: Path) -> None:
    lossy = replaced(
        "Next == Send",
        "Lose == /\\ queue /= <<>>\n"
        "        /\\ \\/ queue' = <<>> /\\ Len(queue) > 1\n"
        "           \\/ queue' = queue \\o queue\n"
        "        /\\ UNCHANGED sent\n"
        "Next == Lose \\/ Send",
    )
    code, report = diff(write(tmp_path, "Old", QUEUE), write(tmp_path, "New", lossy))

    assert code == 1
    assert {row["action"] for row in report["added"]} == {"Lose"}
    places = [row["disjuncts"] for row in report["added"]]
    assert sorted(map(len, places)) == [1, 1]
    assert len({place for (place,) in places}) == 2
    assert "It has no action Lose." in "\n".join(report["added"][0]["story"])


def test_every_action_and_disjunct_gets_a_story_if_asked(tmp_path: Path) -> None:
    lossy = replaced(
        "Next == Send",
        "Lose == /\\ UNCHANGED sent\n"
        "        /\\ \\/ queue = <<1>> /\\ queue' = <<>>\n"
        "           \\/ queue = <<1, 2>> /\\ queue' = <<3>>\n"
        "Skip == sent < 2 /\\ sent' = 3 /\\ UNCHANGED queue\n"
        "Next == Lose \\/ Skip \\/ Send",
    )
    old, new = write(tmp_path, "Old", QUEUE), write(tmp_path, "New", lossy)
    assert len(diff(old, new)[1]["findings"]) == 1
    _, report = diff(old, new, "--stories", "--report", str(tmp_path / "out"))
    files = {finding["artifact"] for finding in report["findings"]}
    # The first disjunct of Lose does what Receive does, so it distinguishes nothing.
    assert sorted(finding["action"] for finding in report["findings"]) == ["Lose", "Skip"]
    assert len(files) == len(report["findings"]) == len(report["added"])


def test_another_effect_is_added_and_taken_away(tmp_path: Path) -> None:
    stack = replaced("Append(queue, sent')", "<<sent'>> \\o queue")
    code, report = diff(write(tmp_path, "Old", QUEUE), write(tmp_path, "New", stack))

    assert code == 1
    for side in ("added", "taken_away"):
        assert "Why the spec does not enable" not in "\n".join(report[side][0]["story"])
        assert labels(report, side) == [("Send", report[side][0]["steps"], 3)]
        assert "leads elsewhere there" in "\n".join(report[side][0]["story"])


def test_another_initial_state_is_a_behaviour(tmp_path: Path) -> None:
    later = replaced("/\\ sent = 0", "/\\ sent \\in {0, 2}")
    code, report = diff(write(tmp_path, "Old", QUEUE), write(tmp_path, "New", later))

    assert code == 1
    assert labels(report, "added") == [(None, 1, 1)]


def test_a_weaker_constant_of_one_model(tmp_path: Path) -> None:
    module = write(tmp_path, "Queue", QUEUE)
    code, report = diff(module, "--new", "Room=3")
    assert (code, labels(report, "added"), report["taken_away"]) == (1, [("Send", 1, 4)], [])

    code, report = diff(module, "--old", "Room=3", "--new", "Room=5-2")
    assert (code, report["equal"]) == (0, True)


def test_two_modules_with_the_bounds_of_one_model(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(
        'schema = 1\nspec = "Old"\n[constants]\nRoom = 1\n'
        '[check]\ninit = "Init"\nnext = "Next"\n[expect]\nresult = "holds"\n'
    )
    free = replaced("/\\ Len(queue) < Room\n", "/\\ TRUE\n")
    old, new = write(tmp_path, "Old", QUEUE), write(tmp_path, "New", free)
    code, report = diff(old, new, "--model", str(tmp_path / "model.toml"))

    # Room is the model's, not the 2 of the configurations beside the modules.
    assert (code, labels(report, "added")[0][2]) == (1, 3)


def test_a_model_without_and_with_its_overrides(tmp_path: Path) -> None:
    text = replaced("/\\ Len(queue) < Room\n", "/\\ HasRoom\n").replace(
        "Init ==", "HasRoom == Len(queue) < Room\nInit =="
    )
    write(tmp_path, "Queue", text)
    head = (
        'schema = 1\nspec = "Queue"\n[constants]\nRoom = 2\n[check]\ninit = "Init"\nnext = "Next"\n'
    )
    for name, body in (("free", "TRUE"), ("same", "Room > Len(queue)")):
        (tmp_path / f"{name}.toml").write_text(
            f"{head}[definitions]\nMutant = '{body}'\n[overrides]\nHasRoom = 'Mutant'\n"
            "[expect]\nresult = 'holds'\n"
        )
    code, report = diff(str(tmp_path / "free.toml"))
    assert (code, labels(report, "added"), report["taken_away"]) == (1, [("Send", 1, 4)], [])
    assert report["old"].endswith("without its override of HasRoom")

    code, report = diff(str(tmp_path / "same.toml"))
    assert (code, report["equal"]) == (0, True)


RENAMED = QUEUE.replace("sent", "count").replace("queue", "buffer")
VIEWED = RENAMED.replace("Init ==", "queue == buffer\nInit ==")


def test_an_operator_stands_for_a_variable_that_has_another_name(tmp_path: Path) -> None:
    old, new = write(tmp_path, "Old", QUEUE), write(tmp_path, "New", VIEWED)
    code, report = diff(old, new, "--observe", "queue")

    assert (code, report["equal"], report["observed"]) == (0, True, ["queue"])
    assert report["hidden"] == {"old": ["sent"], "new": ["buffer", "count"]}


def test_fewer_variables_hide_a_difference(tmp_path: Path) -> None:
    skipping = replaced("sent' = sent + 1", "sent' \\in {sent + 1, sent + 2} /\\ sent' <= 3")
    length = "\nlength == Len(queue)\n"
    old, new = (write(tmp_path, n, t + length) for n, t in (("Old", QUEUE), ("New", skipping)))

    assert diff(old, new)[0] == 1
    code, report = diff(old, new, "--observe", "length")
    # The longer behaviours of the old one show more, the new one shows nothing else.
    assert (code, report["added"], report["taken_away"]) == (0, [], [])


def test_a_limit_is_inconclusive(tmp_path: Path) -> None:
    old, new = write(tmp_path, "Old", QUEUE), write(tmp_path, "New", QUEUE)
    code, report = diff(old, new, "--limit", "4")

    assert (code, report["verdict"], report["equal"], report["exhausted"]) == (
        3, "inconclusive", False, False,
    )  # fmt: skip


def test_a_difference_before_the_limit_is_a_difference(tmp_path: Path) -> None:
    later = replaced("/\\ sent = 0", "/\\ sent \\in {0, 2}")
    code, report = diff(
        write(tmp_path, "Old", QUEUE), write(tmp_path, "New", later), "--limit", "4"
    )
    assert (code, report["exhausted"]) == (1, False)


def test_no_state_at_all_is_inconclusive(tmp_path: Path) -> None:
    none = replaced("/\\ sent = 0", "/\\ sent \\in {}")
    code, report = diff(write(tmp_path, "Old", none), write(tmp_path, "New", none))
    assert (code, report["verdict"]) == (3, "inconclusive")


MISTAKES = {
    "neither a variable nor an operator": ["Old.tla", "New.tla", "--observe", "queues"],
    "no variable in common": ["Old.tla", "Other.tla"],
    "overrides no operator": ["Old.tla"],
    "go with one model": ["Old.tla", "New.tla", "--new", "Room=3"],
    "goes with two modules": ["Old.tla", "--model", "Old.tla"],
    "compares two": ["Old.tla", "New.tla", "Other.tla"],
    "is given twice": ["Old.tla", "Old.tla", "--model", "Old.tla"],
    "no such file": ["Old.tla", "Missing.tla", "--model", "Old.tla"],
    "gives no value to a constant Rooms": ["Old.tla", "--new", "Rooms=3"],
    "give NAME=EXPRESSION": ["Old.tla", "--old", "Room"],
    "depend on the search": ["Old.tla", "Level.tla"],
}


@pytest.mark.parametrize("complaint", MISTAKES)
def test_mistakes_of_the_user_are_told(
    complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("Old", QUEUE), ("New", QUEUE), ("Other", RENAMED)):
        write(tmp_path, name, text)
    level = QUEUE.replace("Sequences", "Sequences, TLC")
    write(tmp_path, "Level", level.replace("/\\ sent < 3", '/\\ TLCGet("level") < 3'))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(load("diff"), MISTAKES[complaint])

    assert result.exit_code == 2
    assert complaint in " ".join(result.stderr.split())


def test_fairness_is_said_not_to_be_compared(tmp_path: Path) -> None:
    fair = QUEUE + "vars == <<queue, sent>>\nSpec == Init /\\ [][Next]_vars /\\ WF_vars(Receive)\n"
    old, new = write(tmp_path, "Old", fair), write(tmp_path, "New", fair)
    for name in ("Old", "New"):
        (tmp_path / f"{name}.cfg").write_text("SPECIFICATION Spec\nCONSTANT Room = 2\n")
    code, report = diff(old, new)
    assert (code, report["fairness"]) == (0, True)
    summary = CliRunner().invoke(load("diff"), [old, new]).output
    assert "fairness is not compared" in " ".join(summary.split())


def test_a_report_keeps_the_behaviours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stack = replaced("Append(queue, sent')", "<<sent'>> \\o queue")
    old, new = write(tmp_path, "Old", QUEUE), write(tmp_path, "New", stack)
    code, report = diff(old, new, "--report", "out")

    files = [Path(finding["artifact"]) for finding in report["findings"]]
    assert (code, len(files)) == (1, 2)
    for file in files:
        told = CliRunner().invoke(load("story"), [str(file)]).output
        assert "Send" in told
        assert "leads elsewhere there" in told
