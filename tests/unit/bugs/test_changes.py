"""What has to run for a change to show: the statements of a copy that differ."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.bugs.changes import changed_statements, changes_a_lock
from conformance.bugs.reach import note_reached, reached_statements
from conformance.bugs.subject import Raiser, raised_in

CLEAN = '''\
"""Numbers."""

LIMIT = 3


def f(a):
    """Double, within bounds."""
    if a > LIMIT:
        a -= 1
        a += 0
    return a * 2


@property
def g(a):
    with lock:
        return a
'''


def changed(folder: Path, old: str, new: str) -> list[str]:
    """The first lines of the statements of the copy that count as changed."""
    for name, text in (("clean", CLEAN), ("copy", CLEAN.replace(old, new))):
        (folder / name).mkdir()
        (folder / name / "a.py").write_text(text)
    assert CLEAN.count(old) == 1
    text = (folder / "copy" / "a.py").read_text()
    found = changed_statements(folder / "clean", folder / "copy")
    assert {statement.file for statement in found} <= {"a.py"}
    return [text[statement.start :].partition("\n")[0] for statement in found]


@pytest.mark.parametrize(
    ("old", "new", "statements"),
    [
        pytest.param("a -= 1", "a -= 2", ["a -= 2"], id="a statement"),
        pytest.param("a > LIMIT", "a >= LIMIT", ["if a >= LIMIT:"], id="a condition"),
        pytest.param("        a += 0\n", "", ["if a > LIMIT:"], id="removed: the function"),
        pytest.param("    return a * 2", "    a += 1\n    return a * 2", ["a += 1"], id="added"),
        pytest.param("def f(a)", "def f(a, b=1)", ["if a > LIMIT:"], id="a signature"),
        pytest.param("@property", "@staticmethod", ["with lock:"], id="a decorator"),
        pytest.param("LIMIT = 3", "LIMIT = 4", [], id="what runs when it is imported"),
    ],
)
def test_what_counts_as_changed(tmp_path: Path, old: str, new: str, statements: list[str]) -> None:
    assert changed(tmp_path, old, new) == statements


def test_a_change_of_a_lock_is_seen(tmp_path: Path) -> None:
    changed(tmp_path, "with lock", "if True")
    assert changes_a_lock(tmp_path / "clean", tmp_path / "copy")
    assert not changes_a_lock(tmp_path / "clean", tmp_path / "clean")


@pytest.mark.parametrize("line", ["a = self._clock.now()", "a = block(a)"])
def test_a_clock_is_no_lock(tmp_path: Path, line: str) -> None:
    changed(tmp_path, "a -= 1", line)
    assert not changes_a_lock(tmp_path / "clean", tmp_path / "copy")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package `notes` whose changed statement raises."""
    changed(tmp_path, "a -= 1", "a = None")
    package = (tmp_path / "copy").rename(tmp_path / "notes")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "notes"]:
        del sys.modules[name]


def test_a_copy_notes_its_change_and_its_tracebacks_stay(copy: Path) -> None:
    note_reached(copy, changed_statements(copy.parent / "clean", copy))
    module = importlib.import_module("notes.a")
    assert (module.f(1), reached_statements("notes")) == (2, set())
    with pytest.raises(TypeError) as raised:
        module.f(4)
    assert reached_statements("notes") == {0}
    entry = raised.traceback[-1]
    assert (Path(entry.path), str(entry.statement).strip()) == (copy / "a.py", "a += 0")


@pytest.mark.parametrize(
    ("frames", "raiser"),
    [
        (["conformance/replay/engine.py", "conformance/systems/group/steps.py"], Raiser.ADAPTER),
        (["conformance/systems/group/steps.py", "impl/log.py"], Raiser.IMPLEMENTATION),
        (["conformance/systems/x.py", "impl/log.py", "/usr/lib/enum.py"], Raiser.IMPLEMENTATION),
        (["impl/log.py", "conformance/systems/x.py", "/usr/lib/enum.py"], Raiser.ADAPTER),
        (["conformance/replay/engine.py"], Raiser.HARNESS),
        ([], Raiser.HARNESS),
    ],
)
def test_whose_exception_it_is(frames: list[str], raiser: Raiser, tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    paths = [tmp_path / frame if frame.startswith("impl") else root / frame for frame in frames]
    text = "".join(f'  File "{path}", line 3, in f\n    g()\n' for path in paths)
    assert raised_in(f"Traceback:\n{text}KeyError: 1\n", tmp_path) is raiser


def test_what_an_adapter_says_of_the_implementation_is_no_fault_of_its_own(tmp_path: Path) -> None:
    adapter = Path(__file__).parents[3] / "conformance/systems/group/timers.py"
    frame = f'Traceback:\n  File "{adapter}", line 3, in fire\n    raise error\n'
    judgement = f"{frame}conformance.systems.group.timers.WrongTimers: no timer\n"
    assert raised_in(judgement, tmp_path) is Raiser.IMPLEMENTATION
    assert raised_in(f"{frame}AttributeError: fire\n", tmp_path) is Raiser.ADAPTER
