"""Expands the states of a level in several processes, so that the search stays the same.

    level --+-- process 0: chunks 0, 2, 4 ... --+
            +-- process 1: chunks 1, 3, 5 ... --+-- rows, in the states' order --> search

A process is forked as a level begins, and so knows all that the search knows then. It takes states
as the search would, and tells of each transition the fingerprint of its target, and the target
itself unless that is known. The search numbers the targets in the order of the states, exactly as
it does alone. A state with anything to tell (a violation, a deadlock, an error) has no row: the
search takes it once more itself.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

from conformance.tla.values import Action, State

__all__ = ["Row", "RowOf", "rows"]

CHUNK = 32
"""States whose rows go through a pipe at once: enough that equal parts are pickled once."""
WORTH_IT = 256
"""States of a level for which processes are forked; fewer are taken sooner than told."""


class Row(NamedTuple):
    """What came of a state that has nothing to tell but its successors."""

    generated: int
    """Successors, those included that a constraint discards."""
    steps: Sequence[tuple[Action, int, State | None]]
    """Action, key of the target, and the target unless an earlier row has it or it is known."""


RowOf = Callable[[int, set[int]], Row | None]
"""The row of the state of that number; the set has the keys that this process has met."""


def rows(row_of: RowOf, numbers: range, processes: int) -> Generator[Row | None]:
    """Of each number in order its row, or None if the search has to take that state itself.

    Close the generator to end the processes early.
    """
    if processes < 2 or len(numbers) < WORTH_IT or not _can_fork():
        yield from (None for _ in numbers)
        return
    chunks = [numbers[at : at + CHUNK] for at in range(0, len(numbers), CHUNK)]
    gc.freeze()  # So that a collection in a child does not copy all pages of the parent.
    workers = [_Worker(row_of, chunks[first::processes]) for first in range(processes)]
    gc.unfreeze()
    try:
        for number in range(len(chunks)):
            yield from workers[number % processes].next_rows()
    finally:
        for worker in workers:
            worker.end()


def _can_fork() -> bool:
    return "fork" in multiprocessing.get_all_start_methods()


class _Worker:
    """A forked process, and the pipe that its rows come through."""

    def __init__(self, row_of: RowOf, chunks: Sequence[range]) -> None:
        context = multiprocessing.get_context("fork")
        self._rows, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_send_rows, args=(row_of, chunks, theirs))
        self._process.daemon = True
        self._process.start()
        theirs.close()

    def next_rows(self) -> Sequence[Row | None]:
        """Of the next chunk. EOFError if the process was ended from outside."""
        told: Sequence[Row | None] = pickle.loads(self._rows.recv_bytes())
        return told

    def end(self) -> None:
        """End the process, whatever it is at."""
        self._process.terminate()
        self._process.join()
        self._rows.close()


def _send_rows(row_of: RowOf, chunks: Sequence[range], out: Connection) -> None:
    """What a process does: it has a copy of all that `row_of` refers to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The search ends it when it is interrupted.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    met: set[int] = set()
    with contextlib.suppress(BrokenPipeError):  # The search was killed.
        for chunk in chunks:
            told = [row_of(number, met) for number in chunk]
            out.send_bytes(pickle.dumps(told, pickle.HIGHEST_PROTOCOL))
    os._exit(0)  # Without the parent's exit functions, and without flushing what it has written.
