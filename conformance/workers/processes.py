"""Forked processes of this machine: each begins with all that its parent knows.

- A fork inherits the function and all that it refers to. Only items and results are pickled.
- What is there at the fork is frozen: a collection in a child would copy all pages of its parent.
- Ctrl-C reaches the whole process group. The parent decides what it means, and ends its children.
  While it forks, the signal waits.
- A child closes the pipes that it inherits, or the parent's end would go unseen.
- A child leaves without its parent's exit functions, and without flushing what the parent wrote.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from conformance.children import end_with_parent
from conformance.errors import UserError
from conformance.workers.places import Item, Result, Workers

_TASKS = 4
"""Items for each process: enough to keep all busy to the end, few enough to cost little."""


class WorkerEnded(UserError):
    """A process was ended from outside; `item` is what it was at, `how` is how it ended."""

    def __init__(self, item: object, how: str) -> None:
        super().__init__(
            f"A process that worked for this command was ended {how}: most likely memory ran out. "
            "Set `jobs = 1` in kconform.toml to work in one process."
        )
        self.item, self.how = item, how


@dataclass(frozen=True, slots=True)
class ForkedProcesses(Workers):
    """So many processes, forked anew for each `map`; without fork, this process does the work."""

    count: int

    @property
    def tasks(self) -> int:
        """Some for each process."""
        return _TASKS * self.count

    @property
    def place(self) -> str:
        """How many there are."""
        return f"in {self.count} processes"

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
        """See `Workers.map`. WorkerEnded if a process is ended from outside."""
        if self.count < 2 or sys.platform != "linux":
            yield from map(function, items)
            return
        with _Forks(function, self.count) as forks:
            yield from forks.results(iter(items))  # type: ignore[misc]  # a pipe knows no types


@dataclass(slots=True)
class _Fork:
    """A process, and the item that it is at."""

    process: BaseProcess
    connection: Connection
    number: int = 0
    item: object = None


class _Forks(ExitStack):
    """Forked processes that wait for items. Leaving the context ends them at once."""

    def __init__(self, function: Callable[[Item], object], count: int) -> None:
        super().__init__()
        gc.freeze()
        self.callback(gc.unfreeze)
        forking = multiprocessing.get_context("fork")
        self._forks: list[_Fork] = []
        for _ in range(count):
            ours, theirs = forking.Pipe()
            inherited = [*(fork.connection for fork in self._forks), ours]
            process = forking.Process(
                target=_serve,
                args=(function, theirs, inherited, os.getpid()),
                name="kconform worker",
                daemon=True,
            )
            with _signals_deferred():
                process.start()
            theirs.close()
            self._forks.append(_Fork(process, ours))
            self.callback(_end, process, ours)

    def results(self, items: Iterator[Item]) -> Iterator[object]:
        """In the order of the items."""
        numbered = enumerate(items)
        done: dict[int, object] = {}
        due = 0
        busy = [fork for fork in self._forks if _give(fork, numbered)]
        while busy:
            for connection in wait([fork.connection for fork in busy]):
                fork = next(fork for fork in busy if fork.connection is connection)
                done[fork.number] = _answer(fork)
                if not _give(fork, numbered):
                    busy.remove(fork)
            while due in done:
                yield done.pop(due)
                due += 1


_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """The signals that end a command wait: a fork in whose midst one comes would show a traceback.

    Of Python's own handlers, so that it is the same whichever thread the system gives them to.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # no signal is handled here
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: came.append(number))
        for number in _ENDING
    }
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, signal.SIG_DFL if handler is None else handler)
        for number in came:
            signal.raise_signal(number)


def _give(fork: _Fork, numbered: Iterator[tuple[int, object]]) -> bool:
    """Whether there was an item to give."""
    for fork.number, fork.item in numbered:
        with suppress(BrokenPipeError):  # `_answer` says how the process ended
            fork.connection.send(fork.item)
        return True
    return False


def _answer(fork: _Fork) -> object:
    try:
        error, result = pickle.loads(fork.connection.recv_bytes())
    except (EOFError, ConnectionResetError):
        fork.process.join()
        code = fork.process.exitcode or 0
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        raise WorkerEnded(fork.item, how) from None
    if error is not None:
        raise error
    return result


def _end(process: BaseProcess, connection: Connection) -> None:
    connection.close()
    process.kill()  # it holds nothing but memory
    process.join()


# --- in a fork ------------------------------------------------------------------------------------


def _serve(
    function: Callable[[Item], object],
    connection: Connection,
    inherited: Sequence[Connection],
    parent: int,
) -> None:
    """Call the function for each item, until nobody asks any more."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()
    with suppress(EOFError, ConnectionResetError, BrokenPipeError):
        while True:
            item = connection.recv()
            connection.send_bytes(_called(function, item))
    os._exit(0)


def _called(function: Callable[[Item], object], item: Item) -> bytes:
    """Pickled: the exception if there was one, and the result."""
    try:
        return pickle.dumps((None, function(item)), pickle.HIGHEST_PROTOCOL)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the parent raises it
        error.add_note(traceback.format_exc())
        return pickle.dumps((error, None))
