"""Processes that end with this one, however it ends: also if it is killed (SIGKILL).

A shell in a session of its own reads a pipe that only this process writes. It is told each child.
When the pipe ends, so has this process, and the shell kills the children that are still there.
A process cannot do that itself, and Linux's PR_SET_PDEATHSIG is bound to the thread that forks.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

__all__ = ["end_with_parent", "end_with_us"]

_SHELL = "/bin/sh"
_WATCH = """
children=' '
while read -r what child; do
  case $what in
    begun) children="$children$child " ;;
    ended) children="${children%% $child *} ${children#* $child }" ;;
  esac
done
for child in $children; do
  kill -s KILL -- "-$child" 2>/dev/null || kill -s KILL "$child" 2>/dev/null
done
"""
"""A child that leads a process group ends with the group."""


class ChildProcess(Protocol):
    """As of subprocess and of asyncio."""

    @property
    def pid(self) -> int:
        """Its number, by which it was started."""

    @property
    def returncode(self) -> int | None:
        """None until its end has been seen."""


class _Watcher:
    """The shell, and the children that it knows."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._children: list[ChildProcess] = []
        self._shell = subprocess.Popen(
            [_SHELL, "-c", _WATCH],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            start_new_session=True,
        )

    def add(self, child: ChildProcess) -> None:
        """Tell it a child, and those that have ended since."""
        self.forget_ended()
        self._children.append(child)
        self._tell("begun", [child])

    def forget_ended(self) -> None:
        """Tell it what has ended: another process may get the same number."""
        ended = [child for child in self._children if child.returncode is not None]
        self._children = [child for child in self._children if child.returncode is None]
        self._tell("ended", ended)

    def _tell(self, what: str, children: Sequence[ChildProcess]) -> None:
        assert self._shell.stdin is not None
        with suppress(BrokenPipeError):  # somebody has ended the shell: a child may outlive us
            for child in children:
                self._shell.stdin.write(f"{what} {child.pid}\n".encode())


_lock = threading.Lock()
_watchers: list[_Watcher] = []
"""That of this process; a fork has its parent's at first, whose pipe it shares."""


def end_with_us(child: ChildProcess) -> None:
    """From here on: if this process ends without having ended the child, the child is killed."""
    with _lock:
        if not _watchers or _watchers[0].owner != os.getpid():
            _watchers[:] = [_Watcher()]
            atexit.register(_watchers[0].forget_ended)
        _watchers[0].add(child)


def end_with_parent(parent: int) -> None:
    """In a child that runs our own code: it ends soon after its parent, whose pid this is."""
    threading.Thread(target=_watch_parent, args=(parent,), name="parent", daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


_LOOK_S = 0.5
