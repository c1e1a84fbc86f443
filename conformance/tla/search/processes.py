"""Expands the states of a level in other processes, so that the search stays the same.

    level --> chunks of states --> forked processes --> rows, in the states' order --> search

A process is forked as a level begins, and so knows all that the search knows then. It takes states
as the search would, and tells of each transition the fingerprint of its target, and the target
itself unless that is known. The search numbers the targets in the order of the states, exactly as
it does alone. A state with anything to tell (a violation, a deadlock, an error) has no row: the
search takes it once more itself. Who forks is the caller's business (`Elsewhere`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from conformance.tla.values import Action, State

__all__ = ["Elsewhere", "RowOf", "SuccessorRow", "rows"]

CHUNK = 32
"""States whose rows go through a pipe at once: enough that equal parts are pickled once."""
WORTH_IT = 256
"""States of a level for which processes are forked; fewer are taken sooner than told."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Elsewhere(Protocol):
    """Forked processes: they inherit the function, and what each one remembers is its own."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
        """The results in the order of the items; a generator, whose end is that of the processes.

        One process gets its items in their order.
        """


class SuccessorRow(NamedTuple):
    """What came of a state that has nothing to tell but its successors."""

    generated: int
    """Successors, those included that a constraint discards."""
    steps: Sequence[tuple[Action, int, State | None]]
    """Action, key of the target, and the target unless an earlier row has it or it is known."""


RowOf = Callable[[int, set[int]], SuccessorRow | None]
"""The row of the state of that number; the set has the keys that this process has met."""


def rows(
    row_of: RowOf, numbers: range, elsewhere: Elsewhere | None
) -> Generator[SuccessorRow | None]:
    """Of each number in order its row, or None if the search has to take that state itself.

    Close the generator to end the processes early.
    """
    if elsewhere is None or len(numbers) < WORTH_IT:
        yield from (None for _ in numbers)
        return
    chunks = [numbers[at : at + CHUNK] for at in range(0, len(numbers), CHUNK)]
    with closing(elsewhere.map(partial(_rows, row_of, set()), chunks)) as results:
        for result in results:
            yield from result


def _rows(row_of: RowOf, met: set[int], chunk: range) -> Sequence[SuccessorRow | None]:
    """What a process does: it has a copy of all that `row_of` refers to, and a `met` of its own."""
    return [row_of(number, met) for number in chunk]
