"""Has Spark's workers judge slices: a task takes a slice and gives back what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from conformance.inspect.judging import JudgedSlice, Task, judge_slice
from conformance.inspect.slices import Slice
from conformance.inspect.specifications import CLASSIC_GROUP, CONSUMER_GROUP, REPLICATION

_NEEDED = (REPLICATION, CLASSIC_GROUP, CONSUMER_GROUP)
_dumps: Callable[[object], bytes] = cloudpickle.dumps


def judge_with_spark(
    session: SparkSession, task: Task, parts: Sequence[Slice]
) -> Iterator[JudgedSlice]:
    """The slices judged, in their order. The evidence must be where all workers see it."""
    task.specifications.prepare(_NEEDED)  # here, so that no worker must start a JVM for it
    payload, pickled = _dumps(task), [_dumps(part) for part in parts]
    tasks = session.range(0, len(parts), 1, len(parts))
    judged = tasks.mapInArrow(_judging(payload, pickled), "judged binary")
    for row in judged.toLocalIterator(prefetchPartitions=True):
        yield cloudpickle.loads(bytes(row["judged"]))


@lru_cache(maxsize=1)
def _task(payload: bytes) -> Task:
    """Once per worker process, so that what a slice has bound serves the next one."""
    task: Task = cloudpickle.loads(payload)
    return task


def _judging(
    payload: bytes, parts: Sequence[bytes]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part: Slice = cloudpickle.loads(parts[number])
                judged = _dumps(judge_slice(_task(payload), part))
                yield pa.RecordBatch.from_pydict({"judged": pa.array([judged], pa.binary())})

    return run
