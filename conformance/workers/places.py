"""What all workers are, and those that are this process."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers(ABC):
    """Whoever calls a function for many items."""

    @property
    @abstractmethod
    def tasks(self) -> int:
        """Into how many items work is best divided: some for each core, to keep all busy."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where they are, as a report says it."""

    @property
    def speaks_sql(self) -> bool:
        """Whether Spark SQL is at hand."""
        return False

    @abstractmethod
    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
        """The function's results, in the order of the items.

        Items are taken from the iterable when somebody is free for them. Closing the generator ends
        what still runs. What the function raises is raised here.
        """

    def reduce(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        merge: Callable[[Result, Result], Result],
        initial: Result,
    ) -> Result:
        """The results merged into one, with the initial one. Their order must not matter."""
        return functools.reduce(merge, self.map(function, items), initial)


class Here(Workers):
    """This process, one item after the other."""

    @property
    def tasks(self) -> int:
        """One."""
        return 1

    @property
    def place(self) -> str:
        """This process."""
        return "in this process"

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
        """One call for each item, when its result is asked for."""
        yield from map(function, items)  # a generator, as of all workers: it can be closed
