"""Processor time of the specification's side of `kconform load`: seconds by gigabyte, and variants.

    python -m benchmarks.load --megabytes 50

The log is that of many groups: classic ones that commit offsets, and consumer groups whose members
come, go and are assigned partitions. Group names, hosts and epochs differ, from a seed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from conformance.garbage import collect_seldom
from conformance.kafka.batches import keyed_batch, sealed
from conformance.kafka.jars import NEWEST, kafka_jars
from conformance.kafka.schemas import Schemas
from conformance.load.judgement import judge_release
from conformance.load.partition import read_partition
from conformance.load.topics import OFFSETS
from conformance.modelcheck.specifications import Specifications

_SEED = 5
_FIRST_MS = 1_767_225_600_000
_SEGMENT = 100 << 20
_TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
_Record = tuple[bytes, bytes | None]


class _Writer:
    """Records by the schemas of the newest release."""

    def __init__(self) -> None:
        self._schemas = Schemas.of(kafka_jars(NEWEST).classpath)
        numbers = self._schemas.group_keys.items()
        self._numbers = {schema.name: number for number, schema in numbers}

    def record(
        self, name: str, key: Mapping[str, object], value: Mapping[str, object] | None
    ) -> _Record:
        """A record of a type, in the newest version of its value."""
        keys, values = (self._schemas.message(f"{name}{part}") for part in ("Key", "Value"))
        number = self._numbers[f"{name}Key"]
        written = number.to_bytes(2, "big") + keys.encode(keys.versions.high, key)
        if value is None:
            return written, None
        version = min(values.versions.high, 3)
        return written, version.to_bytes(2, "big") + values.encode(version, value)


def _groups(writer: _Writer, chance: random.Random) -> Iterator[Sequence[_Record]]:
    """Batches of one group after the other, for ever."""
    number = 0
    while True:
        number += 1
        name = f"group-{number}-{chance.randrange(10**9)}"
        if chance.random() < 0.5:
            yield from _consumer(writer, name, chance)
        yield from _commits(writer, name, chance)


def _commits(writer: _Writer, name: str, chance: random.Random) -> Iterator[Sequence[_Record]]:
    partitions = chance.randrange(1, 9)
    for count in range(chance.randrange(20, 400)):
        key = {"group": name, "topic": "orders", "partition": count % partitions}
        value = {"offset": count * 10, "leaderEpoch": 1, "metadata": "", "commitTimestamp": count}
        yield [writer.record("OffsetCommit", key, value)]


def _consumer(writer: _Writer, name: str, chance: random.Random) -> Iterator[Sequence[_Record]]:
    group, epoch = {"groupId": name}, 0
    for member in range(chance.randrange(1, 5)):
        key, epoch = {**group, "memberId": f"{name}-{member}"}, epoch + 1
        value = {"clientId": "c", "clientHost": f"/10.0.0.{chance.randrange(250)}"}
        yield [
            writer.record("ConsumerGroupMemberMetadata", key, value),
            writer.record("ConsumerGroupMetadata", group, {"epoch": epoch}),
            writer.record("ConsumerGroupTargetAssignmentMember", key, {}),
            writer.record(
                "ConsumerGroupTargetAssignmentMetadata", group, {"assignmentEpoch": epoch}
            ),
        ]
        for _ in range(chance.randrange(1, 4)):
            epoch += 1
            held = {"topicId": _TOPIC, "partitions": [member]}
            current = {"memberEpoch": epoch, "assignedPartitions": [held]}
            yield [writer.record("ConsumerGroupCurrentMemberAssignment", key, current)]


def write(folder: Path, size: int) -> None:
    """Segments of so many bytes in all."""
    chance, offset, written = random.Random(_SEED), 0, 0
    data, first = bytearray(), 0
    for records in _groups(_Writer(), chance):
        data += sealed(keyed_batch(records, first_ms=_FIRST_MS, base_offset=offset))
        offset += len(records)
        if len(data) >= _SEGMENT or written + len(data) >= size:
            (folder / f"{first:020}.log").write_bytes(data)
            written, first, data = written + len(data), offset, bytearray()
        if written >= size:
            return


def main() -> None:
    """Write a log, judge it, print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=20)
    size = parser.parse_args().megabytes << 20
    collect_seldom()  # as every command does
    specifications, jars = Specifications(), kafka_jars(NEWEST).classpath
    specifications.prepare([OFFSETS.model])
    with tempfile.TemporaryDirectory() as place:
        write(Path(place), size)
        started = time.process_time()
        log = read_partition(Path(place))
        read = time.process_time() - started
        verdict = judge_release(log, NEWEST, jars, specifications, None)
        whole = time.process_time() - started
    variants = sum(group.variants for group in verdict.units)
    gigabytes = log.size / (1 << 30)
    print(f"{log.size / (1 << 20):.0f} MB, {log.count:,} records, {len(verdict.units):,} groups")
    print(f"{read / gigabytes:.0f} s/GB to read, {whole / gigabytes:.0f} s/GB in all")
    print(f"{variants:,} logs followed, {verdict.verdict}")


if __name__ == "__main__":
    main()
