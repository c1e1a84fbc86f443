"""Spark's workers: a task for each item, function and item pickled, the result pickled back.

Of what travels the JVM knows nothing: a DataFrame's operators would have to be compiled first, and
compiled again as they warm up. A function that reads files needs them where all workers see them.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from conformance import pickled
from conformance.errors import UserError
from conformance.garbage import collecting_seldom
from conformance.workers.places import Item, Result, Workers

if TYPE_CHECKING:
    from pyspark import RDD

_TASKS = 4
"""Items for each core: one that takes longer than foreseen leaves the others work."""
_MERGED_HERE = 32
"""Up to so many results are merged by the driver; more by the workers first, in a tree."""


@dataclass(frozen=True, slots=True)
class OnSpark(Workers):
    """The workers of a session."""

    session: SparkSession

    @property
    def tasks(self) -> int:
        """Some for each core of the cluster."""
        return _TASKS * self.session.sparkContext.defaultParallelism

    @property
    def place(self) -> str:
        """Spark."""
        return "on Spark"

    @property
    def speaks_sql(self) -> bool:
        """Spark SQL is at hand."""
        return True

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
        """See `Workers.map`. All results are in memory together."""
        listed = [pickled.dumps(item) for item in items]
        for result in self._results(function, listed).collect() if listed else ():
            yield _opened(result)

    def reduce(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        merge: Callable[[Result, Result], Result],
        initial: Result,
    ) -> Result:
        """See `Workers.reduce`."""
        listed = list(items)
        if not listed or len(listed) <= _MERGED_HERE:
            return Workers.reduce(self, function, listed, merge, initial)
        results = self._results(function, [pickled.dumps(item) for item in listed])
        return merge(initial, _opened(results.treeReduce(partial(_merged, pickled.dumps(merge)))))

    def _results(self, function: Callable[[Item], Result], items: list[bytes]) -> RDD[bytes]:
        tasks = self.session.sparkContext.parallelize(items, len(items))
        return tasks.map(partial(_called, pickled.dumps(function)))


def _opened(result: bytes) -> Result:  # type: ignore[type-var]  # a pickle knows no types
    """The result; what a user did wrong is raised."""
    value: Result | UserError = pickle.loads(result)
    if isinstance(value, UserError):
        raise value
    return value


# --- on a worker ----------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _function(payload: bytes) -> Callable[[object], object]:
    # A Python worker serves many tasks.
    function: Callable[[object], object] = pickle.loads(payload)
    return function


def _called(function: bytes, item: bytes) -> bytes:
    """The result, or the user's mistake: Spark would try that again, and bury it in its own."""
    known = _function.cache_info().misses
    with collecting_seldom():
        try:
            return pickled.dumps(_function(function)(pickle.loads(item)))
        except UserError as error:
            return pickle.dumps(error)
        finally:
            if _function.cache_info().misses > known:
                # PySpark collects garbage after each task. What a function keeps for its next
                # item, a compiled specification for example, is left out from now on.
                gc.freeze()


def _merged(merge: bytes, left: bytes, right: bytes) -> bytes:
    """Two results merged, or the first user's mistake."""
    values = [pickle.loads(part) for part in (left, right)]
    for part, value in zip((left, right), values, strict=True):
        if isinstance(value, UserError):
            return part
    merging: Callable[[object, object], object] = pickle.loads(merge)
    return pickled.dumps(merging(*values))
