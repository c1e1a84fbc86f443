"""Reads an incident's files into evidence: in this process, or in Spark's when there is much."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from conformance.files import written_aside
from conformance.inspect.evidence import MANIFEST, TABLES, Evidence
from conformance.inspect.reading.committed import write_metadata
from conformance.inspect.reading.inputs import Inputs, check_places, shared_folder, time_zone
from conformance.inspect.reading.layouts import layouts_of
from conformance.inspect.reading.part import ReadJob, read_part
from conformance.inspect.reading.plan import ReadingPart, identity, planned, schemas_identity
from conformance.inspect.store import PartWriter, finished, remove_unfinished
from conformance.inspect.workers import OnDemand
from conformance.workers import Here

SPARK_FROM = 1 << 30
"""Bytes from which a JVM's start is worth its time."""

Tell = Callable[[int, int], None]
"""Takes the bytes that have been read and those of all files."""


def _silent(_done: int, _all: int) -> None:
    pass


def read(
    inputs: Inputs,
    output: Path,
    jars: Sequence[Path],
    *,
    workers: OnDemand | None = None,
    tell: Tell = _silent,
) -> Evidence:
    """The evidence in the files, kept below `output`; a run that was ended goes on there.

    `jars` are those of a version of Kafka, for its schemas. `workers` None: in this process. Raises
    UserError (a folder or log that is none, a layout that is none, an output of another reading)
    and DataError.
    """
    time_zone(inputs.zone)
    layouts_of(inputs.layouts)
    check_places(inputs.brokers, output)
    output.mkdir(parents=True, exist_ok=True)
    version = schemas_identity(jars)
    parts = list(planned(inputs, version, output))
    if (output / MANIFEST).exists():
        return Evidence.open(output)
    remove_unfinished(output)
    job = ReadJob(
        output, inputs.filters, inputs.verify, inputs.zone, tuple(jars), layouts=inputs.layouts
    )
    _read_parts(job, parts, workers, tell)
    last = parts[-1].number + 1
    if last not in finished(output):
        with PartWriter(output, last) as writer:
            write_metadata(output, writer)
    manifest = identity(inputs, version) | {"brokers": list(inputs.brokers), **_counts(output)}
    manifest["folders"] = {name: shared_folder(own) for name, own in inputs.brokers.items()}
    with written_aside(output / MANIFEST) as path:
        path.write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
    return Evidence.open(output)


def _read_parts(
    job: ReadJob, parts: Sequence[ReadingPart], workers: OnDemand | None, tell: Tell
) -> None:
    done = finished(job.folder)
    waiting = [part for part in parts if part.number not in done]
    total = sum(part.size for part in parts)
    left = sum(part.size for part in waiting)
    tell(total - left, total)
    chosen = workers.fit(left, SPARK_FROM) if waiting and workers is not None else Here()
    watch = nullcontext() if isinstance(chosen, Here) else _watched(job, parts, tell)
    with watch:
        for part, _ in zip(waiting, chosen.map(partial(read_part, job), waiting), strict=True):
            left -= part.size
            tell(total - left, total)


_POLL = 0.5
"""Seconds between two looks at what has been finished elsewhere."""


@contextmanager
def _watched(job: ReadJob, parts: Sequence[ReadingPart], tell: Tell) -> Iterator[None]:
    """Tell of the parts that others finish meanwhile: their results come all together."""
    total, stop = sum(part.size for part in parts), threading.Event()

    def look() -> None:
        while not stop.wait(_POLL):
            done = finished(job.folder)
            tell(sum(part.size for part in parts if part.number in done), total)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


def _counts(output: Path) -> dict[str, Any]:
    """Rows of each table, and files and bytes by what became of them."""
    evidence = Evidence(output, {})
    rows = {name: evidence.dataset(name).count_rows() for name in TABLES}
    files = evidence.table("files", ["status", "size"])
    grouped = files.group_by("status").aggregate([("size", "count"), ("size", "sum")])
    by_status = {
        row["status"]: {"files": row["size_count"], "bytes": row["size_sum"]}
        for row in grouped.to_pylist()
    }
    return {"rows": rows, "files": by_status, "bytes": pc.sum(files["size"]).as_py() or 0}
