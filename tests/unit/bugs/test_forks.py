"""Work in forked children that import a changed copy, while this process keeps the clean one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.bugs.forks import ForkTask, TaskOutcome, forks, rewrite

TEXT = "def number():\n    return 1\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An importable package of one module, `a`."""
    folder = tmp_path / "forked"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    yield "forked"
    for name in [name for name in sys.modules if name.partition(".")[0] == "forked"]:
        del sys.modules[name]


def told() -> bytes:
    return str(importlib.import_module("forked.a").number()).encode()


def becoming(text: str) -> Callable[[Path], None]:
    return lambda package: rewrite(package / "a.py", text)


def answers(package: str, *tasks: ForkTask, jobs: int = 2) -> dict[str, TaskOutcome]:
    with forks(package, jobs) as children:
        return {answer.key: answer for answer in children.run(iter(tasks))}


def test_each_child_runs_its_own_copy(package: str) -> None:
    texts = {str(n): TEXT.replace("1", str(n)) for n in (2, 3, 4)}
    found = answers(
        package, *(ForkTask(key, told, becoming(text), 60) for key, text in texts.items())
    )
    assert {key: answer.content for key, answer in found.items()} == {
        "2": b"2",
        "3": b"3",
        "4": b"4",
    }
    assert told() == b"1"


def test_what_a_child_raises_is_told(package: str) -> None:
    broken = ForkTask("broken", told, becoming("raise ValueError('no module')\n"), 60)
    found = answers(package, broken)["broken"]
    assert (found.content, found.ended) == (b"", True)
    assert "no module" in found.raised


def test_who_never_ends_is_killed_and_the_others_go_on(package: str) -> None:
    endless = ForkTask("endless", told, becoming("while True:\n    pass\n"), 1)
    other = ForkTask("other", told, becoming(TEXT), 60)
    found = answers(package, endless, other)
    assert (found["endless"].ended, found["endless"].raised) == (False, "")
    assert found["other"].content == b"1"
