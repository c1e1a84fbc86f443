"""Time and memory of the judgement by the number of partitions, on synthetic evidence.

    python benchmarks/inspect_partitions.py [--partitions 1000,10000]

Each partition has three replicas, three leader epochs and 60 batches; one in a hundred has lost its
end on one broker. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from conformance.inspect.evidence import METADATA, Evidence
from conformance.inspect.inspection import inspect
from conformance.inspect.store import PartWriter

BROKERS = ("b1", "b2", "b3")
BATCHES = 20
LOST_EVERY = 100


def synthetic(folder: Path, partitions: int) -> Evidence:
    """Evidence of that many partitions of one topic."""
    with PartWriter(folder, 0) as writer:
        for broker in BROKERS:
            identity = {"broker": broker, "directory": "", "path": "meta.properties"}
            row = {**identity, "kind": "meta.properties", "key": "node.id", "value": broker[1:]}
            writer.row("identities", row)
            writer.row("identities", {**row, "kind": "clean-shutdown"})
        _metadata(writer, 0, "TopicRecord", {"name": "t", "topicId": "id"})
        for number in range(partitions):
            _partition(writer, number)
    return Evidence(folder, {"brokers": list(BROKERS), "filters": {}, "folders": {}})


def _partition(writer: PartWriter, number: int) -> None:
    body = {"topicId": "id", "partitionId": number}
    registered = {"leader": 1, "leaderEpoch": 0, "isr": [1, 2, 3], "partitionEpoch": 0}
    created = {**body, **registered, "replicas": [1, 2, 3]}
    _metadata(writer, 3 * number + 1, "PartitionRecord", created)
    for change, leader in enumerate((2, 1), 2):
        _metadata(writer, 3 * number + change, "PartitionChangeRecord", {**body, "leader": leader})
    for broker in BROKERS:
        lost = broker == "b2" and number % LOST_EVERY == 0
        _replica(writer, broker, number, BATCHES - 3 if lost else BATCHES)


def _replica(writer: PartWriter, broker: str, number: int, batches: int) -> None:
    place = {"broker": broker, "directory": ""}
    path = f"t-{number}/{0:020}.log"
    file = {**place, "path": path, "kind": "segment", "size": 1, "mtime": 50}
    writer.row("files", {**file, "status": "read", "reason": ""})
    entry = {**place, "topic": "t", "partition": number, "state": "", "mtime": 40}
    end = 10 * BATCHES
    writer.row("checkpoints", {**entry, "kind": "replication-offset", "offset": end})
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", default="1000,10000")
    counts = [int(one) for one in parser.parse_args().partitions.split(",")]
    print("partitions  seconds  ms/partition  peak MB  found  planted")
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="kconform-partitions-") as folder:
            evidence = synthetic(Path(folder), count)
            began = time.process_time()
            found = inspect(evidence)
            seconds = time.process_time() - began
        accused = {one.partition for one in found.found}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        planted = (count + LOST_EVERY - 1) // LOST_EVERY
        each = 1000 * seconds / count
        print(
            f"{count:10}  {seconds:7.1f}  {each:12.2f}  {peak:7}  {len(accused):5}  {planted:7}",
            flush=True,
        )


if __name__ == "__main__":
    main()
