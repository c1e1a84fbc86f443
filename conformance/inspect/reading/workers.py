"""Has Spark's workers read parts: a task takes a part's number and leaves its files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from conformance.inspect.reading.part import Job, read_part
from conformance.inspect.reading.plan import only
from conformance.inspect.store import finished

_POLL = 0.5
"""Seconds between two looks at what has been finished."""


def read_with_spark(
    session: SparkSession,
    job: Job,
    numbers: Sequence[int],
    sizes: Mapping[int, int],
    tell: Callable[[int, int], None],
) -> None:
    """Read the parts of those numbers. The output must be a folder that all workers see."""
    total = sum(sizes.values())
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(_POLL):
            tell(sum(sizes.get(number, 0) for number in finished(job.folder)), total)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        tasks = session.range(0, len(numbers), 1, len(numbers))
        tasks.mapInArrow(_task(job, list(numbers)), "part long").collect()
    finally:
        stop.set()
        watcher.join()
    tell(total, total)


def _task(
    job: Job, numbers: list[int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chosen = [numbers[index] for index in batch.column(0).to_pylist()]
            for number in chosen:
                read_part(job, only(job.folder, number))
            yield pa.RecordBatch.from_pydict({"part": pa.array(chosen, pa.int64())})

    return run
