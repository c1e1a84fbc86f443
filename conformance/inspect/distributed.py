"""Has Spark's workers judge slices: a task takes a slice and gives back what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
    pickled = [_dumps(part) for part in parts]
    tasks = session.range(0, len(parts), 1, len(parts))
    judged = tasks.mapInArrow(_judging(task, pickled), "judged binary")
    for row in judged.toLocalIterator(prefetchPartitions=True):
        yield cloudpickle.loads(bytes(row["judged"]))


def _judging(
    task: Task, parts: Sequence[bytes]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                judged = _dumps(judge_slice(task, cloudpickle.loads(parts[number])))
                yield pa.RecordBatch.from_pydict({"judged": pa.array([judged], pa.binary())})

    return run
