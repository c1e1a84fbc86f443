"""The shell that ends what this process has started: whom it ends, and whom it leaves alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from conformance.children import _Watcher


@dataclass
class Known:
    """A child as the watcher sees it."""

    pid: int
    returncode: int | None = None


@pytest.fixture
def sleeping() -> Iterator[tuple[subprocess.Popen[bytes], ...]]:
    """The first leads a group of its own, the second is of ours."""
    started = tuple(
        subprocess.Popen(["sleep", "600"], start_new_session=own) for own in (True, False)
    )
    yield started
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("ended", [0, 1])
def test_what_has_ended_is_left_alone_and_the_rest_is_ended(
    sleeping: tuple[subprocess.Popen[bytes], ...], ended: int
) -> None:
    watcher = _Watcher()
    children = [Known(process.pid) for process in sleeping]
    for child in children:
        watcher.add(child)
    children[ended].returncode = 0  # so its number may be another's
    watcher.forget_ended()
    assert watcher._shell.stdin is not None
    watcher._shell.stdin.close()  # as by the end of this process
    watcher._shell.wait(60)
    assert sleeping[1 - ended].wait(60) == -9
    assert sleeping[ended].poll() is None
