"""Time and memory of the judgement by the number of partitions, on synthetic evidence.

    python benchmarks/inspect_partitions.py [--partitions 1000,10000] [--spark]

Each partition has three replicas, three leader epochs and 60 batches; one in a hundred has lost its
end on one broker. 200 partitions are a part, as the reader makes them. Each number of partitions is
judged in a process of its own. Seconds are those of the processor: of the judgement alone in this
process; with --spark of the JVM and its workers too, and those of Spark's start, measured with few
partitions, are stated apart.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import run
from conformance.inspect.evidence import METADATA, Evidence
from conformance.inspect.inspection import inspect
from conformance.inspect.store import PartWriter
from conformance.inspect.workers import OnDemand

BROKERS = ("b1", "b2", "b3")
BATCHES = 20
LOST_EVERY = 100
PART = 200
MANIFEST = {"brokers": list(BROKERS), "filters": {}, "folders": {}}


def synthetic(folder: Path, partitions: int) -> None:
    """Write evidence of that many partitions of one topic."""
    for part, first in enumerate(range(0, partitions, PART), 1):
        with PartWriter(folder, part) as writer:
            for number in range(first, min(first + PART, partitions)):
                _partition(writer, number)
    with PartWriter(folder, 0) as writer:
        for broker in BROKERS:
            identity = {"broker": broker, "directory": "", "path": "meta.properties"}
            row = {**identity, "kind": "meta.properties", "key": "node.id", "value": broker[1:]}
            writer.row("identities", row)
            writer.row("identities", {**row, "kind": "clean-shutdown"})
        _metadata(writer, 0, "TopicRecord", {"name": "t", "topicId": "id"})
        for number in range(partitions):
            _registrations(writer, number)
            for broker in BROKERS:
                _checkpoints(writer, broker, number)


def _partition(writer: PartWriter, number: int) -> None:
    for broker in BROKERS:
        lost = broker == "b2" and number % LOST_EVERY == 0
        _replica(writer, broker, number, BATCHES - 3 if lost else BATCHES)


def _registrations(writer: PartWriter, number: int) -> None:
    body = {"topicId": "id", "partitionId": number}
    registered = {"leader": 1, "leaderEpoch": 0, "isr": [1, 2, 3], "partitionEpoch": 0}
    created = {**body, **registered, "replicas": [1, 2, 3]}
    _metadata(writer, 3 * number + 1, "PartitionRecord", created)
    for change, leader in enumerate((2, 1), 2):
        _metadata(writer, 3 * number + change, "PartitionChangeRecord", {**body, "leader": leader})


def _checkpoints(writer: PartWriter, broker: str, number: int) -> None:
    """A broker's replication-offset-checkpoint has all of its partitions."""
    place = {"broker": broker, "directory": "", "topic": "t", "partition": number, "state": ""}
    row = {**place, "kind": "replication-offset", "offset": 10 * BATCHES, "mtime": 40}
    writer.row("checkpoints", row)


def _replica(writer: PartWriter, broker: str, number: int, batches: int) -> None:
    place = {"broker": broker, "directory": ""}
    path = f"t-{number}/{0:020}.log"
    file = {**place, "path": path, "kind": "segment", "size": 1, "mtime": 50}
    writer.row("files", {**file, "status": "read", "reason": ""})
    entry = {**place, "topic": "t", "partition": number, "state": "", "mtime": 40}
    for epoch in range(3):
        start = 60 * epoch
        writer.row(
            "checkpoints", {**entry, "kind": "leader-epoch", "epoch": epoch, "offset": start}
        )
    for index in range(batches):
        writer.row("batches", _batch(place, path, number, index))


def _batch(place: dict[str, str], path: str, number: int, index: int) -> dict[str, Any]:
    return {
        **place, "topic": "t", "partition": number, "state": "", "segment": path,
        "position": index * 100, "size": 100, "magic": 2, "base_offset": 10 * index,
        "last_offset": 10 * index + 9, "leader_epoch": min(index // 6, 2), "stored_crc": index,
        "crc_ok": True, "attributes": 0, "producer_id": -1, "producer_epoch": -1,
        "base_sequence": -1, "base_timestamp": 1, "max_timestamp": 1, "records": 10,
    }  # fmt: skip


def _metadata(writer: PartWriter, offset: int, kind: str, body: dict[str, Any]) -> None:
    row = dict.fromkeys(METADATA.names) | {
        "broker": "b1", "offset": offset, "epoch": 1, "timestamp": 10, "type": kind, "version": 0,
        "body": json.dumps(body), "committed": True, "source": "log", "path": "p", "sequence": 0,
    }  # fmt: skip
    writer.row("metadata", row)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a judgement took."""

    processor: float
    megabytes: int
    accused: int


def child(folder: Path, spark: bool) -> None:
    """Judge the evidence in a folder, and print what `measured` wants to know."""
    evidence = Evidence(folder, MANIFEST)
    before = time.process_time()
    with OnDemand(wanted=spark) as workers:
        inspection = inspect(evidence, folder / "out", workers=workers)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    accused = {discovery.partition for discovery in inspection.discoveries}
    print(json.dumps([time.process_time() - before, peak, len(accused)]))


def measured(partitions: int, *, spark: bool) -> Cost:
    """A judgement in a process of its own; with Spark of all its processes, starts included."""
    with tempfile.TemporaryDirectory(prefix="kconform-partitions-") as name:
        synthetic(Path(name), partitions)
        done = run([sys.executable, __file__, "--child", name, *(["--spark"] * spark)])
    seconds, megabytes, accused = json.loads(done.output)
    return Cost(done.processor if spark else seconds, megabytes, accused)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", default="1000,10000")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.spark)
        return
    start = measured(2 * PART + 1, spark=True).processor if options.spark else 0.0
    if options.spark:
        print(f"Spark's start, taken off: {start:.1f} s")
    print("partitions  seconds  ms/partition  peak MB  found  planted")
    for count in (int(text) for text in options.partitions.split(",")):
        cost = measured(count, spark=options.spark)
        seconds = cost.processor - start
        planted = (count + LOST_EVERY - 1) // LOST_EVERY
        each = 1000 * seconds / count
        print(
            f"{count:10}  {seconds:7.1f}  {each:12.2f}  {cost.megabytes:7}  {cost.accused:5}  "
            f"{planted:7}",
            flush=True,
        )


if __name__ == "__main__":
    main()
