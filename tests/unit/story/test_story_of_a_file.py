"""kconform story: what was kept in an ITF file is told again, whoever wrote the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from conformance.errors import DataError
from conformance.events import Reason
from conformance.stages.story import read_story
from conformance.story.behaviour import Behaviour, Step, end_lines, lines
from conformance.story.exhibit import exhibit
from conformance.story.itf import trace_of
from conformance.story.scene import scene_of
from conformance.story.svg import standalone
from conformance.tla import Action, Fn, dump_trace

STEPS = (Step(None, (0, Fn({"b1": ()}))), Step(Action("Add", ("b1",)), (1, Fn({"b1": (1,)}))))
BEHAVIOUR = Behaviour(
    ("count", "log"),
    STEPS,
    {"log": Fn({"b1": (2,)})},
    "     state not allowed",
    (Reason(0, "Why F is false:"), Reason(1, "A", "is FALSE", "Spec:3:1", bound="b = 1")),
    departs=True,
)


def kept(folder: Path, behaviour: Behaviour = BEHAVIOUR) -> Path:
    path = folder / "one.itf.json"
    about = {"model": "no/such-model", "key": "Add:not_allowed:log"}
    path.write_text(dump_trace(trace_of(behaviour, about)))
    return path


def test_a_behaviour_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    told = read_story(kept(tmp_path))
    assert told.behaviour == BEHAVIOUR
    assert (told.picture, told.title) == (None, "no/such-model: Add:not_allowed:log")


def test_states_that_are_not_known_end_the_file(tmp_path: Path) -> None:
    unknown = Behaviour(("count", "log"), (*STEPS, Step(Action("X"), (None, None))))
    assert read_story(kept(tmp_path, unknown)).behaviour.steps == STEPS


def test_a_file_of_somebody_else_is_told_too(tmp_path: Path) -> None:
    path = tmp_path / "foreign.itf.json"
    states = [{"x": 1}, {"#meta": {"action": "Next"}, "x": 2}]
    path.write_text(json.dumps({"vars": ["x"], "states": states, "loop": 0}))
    told = read_story(path)
    assert told.title == "foreign.itf.json"
    assert lines(told.behaviour)[-3:] == (
        "1. Next",
        "     x: 1 -> 2",
        "From here it goes back to step 0.",
    )


@pytest.fixture
def nameless(tmp_path: Path) -> Path:
    """A file of somebody else that says of no step which action it was."""
    path = tmp_path / "nameless.itf.json"
    states = [{"x": 1}, {"x": 2}, {"x": 2}]
    path.write_text(json.dumps({"vars": ["x"], "states": states}))
    return path


def test_only_the_first_step_is_the_initial_state(nameless: Path) -> None:
    told = read_story(nameless)
    assert lines(told.behaviour) == (
        "0. Initial state",
        "     x = 1",
        "1. (the file names no action)",
        "     x: 1 -> 2",
        "2. (the file names no action)",
        "     (nothing changes)",
    )
    rows = scene_of(told.behaviour, None).rows
    unnamed = "(the file names no action)"
    assert [row.text for row in rows] == ["Initial state", unnamed, unnamed]
    shown = exhibit(told.behaviour, None, "").steps
    assert [step.action for step in shown] == ["", unnamed, unnamed]


def test_a_drawing_of_it_says_so_in_each_box(nameless: Path) -> None:
    drawn = story(str(nameless), "--svg").stdout
    assert "Initial state" not in drawn  # it has no box
    assert drawn.count("<title>(the file names no action)</title>") == 2


@pytest.mark.parametrize("text", ["", "{}", '{"vars": [], "states": []}', '{"vars": 1}'])
def test_what_holds_no_behaviour_is_the_users_mistake(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.itf.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"bad\.itf\.json"):
        read_story(path)


def story(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.cli", "story", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_bad_step_is_told_with_what_was_expected_and_seen_and_why(tmp_path: Path) -> None:
    reason = Reason(1, "hw <= 3", "is FALSE", "Logs:7:3")
    end = Behaviour(
        ("hw",),
        (Step(None, (1,)), Step(Action("Fetch", ("b",)), (2,))),
        {"hw": 5},
        "state not allowed",
        (Reason(0, "Why it is false:"), reason),
        departs=True,
    )
    told = end_lines(end)
    assert told == (
        "state not allowed",
        "Where they differ:",
        "  hw",
        "    the specification has  2",
        "    the implementation     5",
        "Why it is false:",
        "  Logs:7:3: hw <= 3 is FALSE",
    )
    drawing = ET.fromstring(standalone(scene_of(end, None), "t", told))
    notes = [one.text for one in drawing.iter() if one.get("class") == "note"]
    assert notes == [line.strip() for line in told]


def test_the_command_tells_draws_and_makes_a_page(tmp_path: Path) -> None:
    file = str(kept(tmp_path))
    text = story(file)
    assert (text.returncode, text.stderr) == (0, "")
    assert text.stdout.splitlines()[1] == '1. Add("b1")'
    drawn = ET.fromstring(story(file, "--svg").stdout)
    assert drawn.tag.endswith("svg")
    page = tmp_path / "page.html"
    assert story(file, "--html", "-o", str(page)).returncode == 0
    assert "<svg" in page.read_text()
    assert story(file, "--html", "--svg").returncode == 2
