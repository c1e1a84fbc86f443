"""Work in forked children that import a copy of the implementation, several side by side.

What is expensive (state graphs, suites, imports) is made ready once, before the fork; a child
forgets the clean implementation, imports the copy and answers through a pipe.
"""

from __future__ import annotations

import compileall
import os
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from conformance.bugs.fault import copied
from conformance.children import end_with_parent
from conformance.systems.bundled import import_copy, import_name

_KEPT = (
    "conformance.systems.bundled",
    "conformance.systems.protocol",
    "conformance.registry",
)
"""Modules of the adapters' package that import nothing of the implementation."""
_RAISED = b"raised "
_SLOWEST = 60
"""By the clock only what waits for ever is ended: beside others' work, at the lowest priority, a
child may have a sixtieth of the processor."""


@dataclass(frozen=True, slots=True)
class ForkTask:
    """Something to do with a copy: `change` is given the copied package, before the fork."""

    key: str
    work: Callable[[], bytes]
    change: Callable[[Path], None]
    processor_seconds: float
    """After which the child is killed; so that it dies of its own work, not of its neighbours'."""


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What came of a task: bytes, or `raised`, or neither: it never ended."""

    key: str
    content: bytes = b""
    raised: str = ""
    ended: bool = True
    seconds: float = 0.0
    """By the clock."""


@dataclass(slots=True)
class _Child:
    task: ForkTask
    pid: int
    folder: Path
    until: float
    started: float
    parts: list[bytes] = field(default_factory=list)


class Forks:
    """Runs tasks in children, at most `jobs` at a time."""

    def __init__(self, clean: Path, scratch: Path, package: str, jobs: int) -> None:
        self._clean, self._scratch, self._package = clean, scratch, package
        self._jobs = max(1, jobs)
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, _Child] = {}

    def run(self, tasks: Iterator[ForkTask]) -> Iterator[TaskOutcome]:
        """The answers in the order in which they come."""
        try:
            for task in tasks:
                self._start(task)
                while len(self._children) >= self._jobs:
                    yield from self._wait()
            while self._children:
                yield from self._wait()
        finally:
            for reading in list(self._children):
                self._end(reading)

    def _start(self, task: ForkTask) -> None:
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        _link(self._clean, folder / self._package)
        task.change(folder / self._package)
        sys.stdout.flush()
        sys.stderr.flush()
        reading, writing = os.pipe()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            end_with_parent(parent)
            os.close(reading)
            _work_and_leave(task, folder, self._package, writing)
        os.close(writing)
        now = time.monotonic()
        until = now + _SLOWEST * task.processor_seconds + 600
        self._children[reading] = _Child(task, pid, folder, until, now)
        self._selector.register(reading, selectors.EVENT_READ)

    def _wait(self) -> Iterator[TaskOutcome]:
        """Read what is there; answers of the children that have ended."""
        for key, _ in self._selector.select(timeout=1.0):
            child = self._children[key.fd]
            part = os.read(key.fd, 1 << 16)
            if part:
                child.parts.append(part)
            else:
                yield self._answer(key.fd)
        now = time.monotonic()
        for reading, child in list(self._children.items()):
            if now > child.until:
                child.parts.clear()
                yield self._answer(reading)

    def _answer(self, reading: int) -> TaskOutcome:
        child = self._children[reading]
        self._end(reading)
        content, seconds = b"".join(child.parts), time.monotonic() - child.started
        if content.startswith(_RAISED):
            raised = content.removeprefix(_RAISED).decode(errors="replace")
            return TaskOutcome(child.task.key, raised=raised, seconds=seconds)
        return TaskOutcome(child.task.key, content, ended=bool(content), seconds=seconds)

    def _end(self, reading: int) -> None:
        """Kill the child if it is still there, and remove what it had."""
        child = self._children.pop(reading)
        self._selector.unregister(reading)
        os.close(reading)
        try:
            os.kill(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.waitpid(child.pid, 0)
        shutil.rmtree(child.folder, ignore_errors=True)


@contextmanager
def forks(package: str, jobs: int) -> Iterator[Forks]:
    """Forks of this process; the clean copy that theirs are made from is compiled once."""
    with copied(package) as clean:
        compileall.compile_dir(clean, quiet=2)
        scratch = clean / "children"  # beside it: links do not cross file systems
        scratch.mkdir()
        yield Forks(clean / package, scratch, package, jobs)


def rewrite(path: Path, text: str) -> None:
    """Give a file of a child's copy another text; the clean copy, which it links to, stays."""
    path.unlink()
    path.write_text(text, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


def _link(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=os.link)


def _work_and_leave(task: ForkTask, folder: Path, package: str, writing: int) -> None:
    """In the child: never returns, and runs nothing of its parent's clean-up."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        limit = int(task.processor_seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writing, "wb") as pipe:
            try:
                _import_from(folder, package)
                pipe.write(task.work())
            except BaseException as error:  # noqa: BLE001 - a copy may raise what it likes
                pipe.write(_RAISED + repr(error).encode()[:300])
        code = 0
    finally:
        os._exit(code)


def _import_from(folder: Path, package: str) -> None:
    """Forget the clean implementation, and the adapters that hold on to it."""
    clean = import_name(package)
    for name in list(sys.modules):
        adapter = name.startswith("conformance.systems.") and name not in _KEPT
        if name == clean or name.startswith(f"{clean}.") or adapter:
            del sys.modules[name]
    origin = import_copy(folder, package).__file__
    if origin is None or not Path(origin).is_relative_to(folder):
        raise RuntimeError(f"{package} comes from {origin}, not from {folder}")
