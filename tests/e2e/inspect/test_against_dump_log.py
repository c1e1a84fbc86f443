"""The reader against kafka-dump-log over the same files: the same batches, the same verdicts."""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from conformance.inspect.classic_groups import ClassicGroups
from conformance.inspect.evidence import Evidence
from conformance.inspect.groups import CLASSIC, Topics, read_groups
from conformance.inspect.history import MetadataHistory
from conformance.inspect.models import CLASSIC_GROUP
from conformance.inspect.reading.inputs import Filters, Inputs, brokers_of
from conformance.inspect.reading.reader import read
from conformance.inspect.workers import OnDemand
from conformance.kafka.jars import kafka_jars
from conformance.kafka.schemas import RecordValue, Schemas
from conformance.modelcheck.specifications import Specifications
from conformance.tla import find_java
from tests.kafka_needed import dump_log_class_path, jars_or_skip
from tests.segment_files import Batch, partition_folder, record, write_segment

TOPICS = Topics(MetadataHistory({}, {}, frozenset(), -1, -1))
_LINE = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*producerId: (-?\d+) .*"
    r"partitionLeaderEpoch: (-?\d+) isTransactional: (\w+) isControl: (\w+).* position: (\d+) "
    r".*size: (\d+) magic: 2 .*crc: (\d+) isvalid: (\w+)"
)

Told = tuple[str, int, int, int, int, int, bool, bool, int, int, int, bool]


def random_batches(source: random.Random, count: int) -> list[Batch]:
    """Batches of all kinds; some gaps, some batches that compaction has emptied."""
    batches, offset, epoch = [], source.randrange(100), 0
    for _ in range(count):
        records = tuple((None, source.randbytes(source.randrange(400))) for _ in range(3))
        kept = records[: source.randrange(4)]
        epoch += source.random() < 0.1
        attributes = source.choice([0, 0, 0, 8, 16])
        producer = 77 if attributes == 16 else -1
        batches.append(
            Batch(offset, kept, epoch, attributes, 1000 + offset, producer, delta=2)
            if source.random() < 0.9
            else compressed(offset, epoch, kept)
        )
        offset += 3 + source.choice([0, 0, 0, 5])
    return batches


def compressed(offset: int, epoch: int, records: tuple[tuple[None, bytes], ...]) -> Batch:
    body = b"".join(record(i, key, value) for i, (key, value) in enumerate(records))
    packed = zlib.compressobj(wbits=31)
    payload = packed.compress(body) + packed.flush()
    return Batch(offset, records, epoch, 1, 1000 + offset, delta=2, payload=payload)


def dumped(paths: list[Path]) -> set[Told]:
    java, _ = find_java(os.environ)
    command = [str(java), "-cp", dump_log_class_path("3.8.1"), "kafka.tools.DumpLogSegments"]
    command += ["--files", ",".join(map(str, paths))]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found: set[Told] = set()
    name = ""
    for line in run.stdout.splitlines():
        if line.startswith("Dumping "):
            name = Path(line.removeprefix("Dumping ")).parent.name
        match = _LINE.match(line)
        if match:
            base, last, count, producer, epoch, *flags, position, size, crc, valid = match.groups()
            transactional, control = (flag == "true" for flag in flags)
            numbers = tuple(map(int, (base, last, count, producer, epoch)))
            flagged = (transactional, control, int(position), int(size), int(crc), valid == "true")
            found.add((name, *numbers, *flagged))  # type: ignore[arg-type]  # five numbers
    return found


def told(evidence: Evidence) -> set[Told]:
    return {
        (
            row["segment"].split("/")[0],
            row["base_offset"],
            row["last_offset"],
            row["records"],
            row["producer_id"],
            row["leader_epoch"],
            bool(row["attributes"] & 16),
            bool(row["attributes"] & 32),
            row["position"],
            row["size"],
            row["stored_crc"],
            row["crc_ok"],
        )
        for row in evidence.rows("batches")
    }


@pytest.fixture
def segments(tmp_path: Path) -> list[Path]:
    """Sound segments, some with flipped bytes behind the headers, some that are cut off."""
    source, paths = random.Random(7), []
    for number in range(12):
        folder = partition_folder(tmp_path / "b1", "t", number)
        written = write_segment(folder, random_batches(source, 150), interval=number * 300)
        data = bytearray(written.path.read_bytes())
        if number % 3 == 1:
            for position in source.sample(written.positions, 5):
                data[position + 60] ^= 1
        if number % 3 == 2:
            del data[-source.randrange(1, 61) :]
        written.path.write_bytes(data)
        paths.append(written.path)
    return paths


def test_the_same_batches(segments: list[Path], tmp_path: Path) -> None:
    inputs = Inputs(brokers_of([f"b1={tmp_path / 'b1'}"]))
    evidence = read(inputs, tmp_path / "out", (), workers=OnDemand(wanted=False))
    theirs = dumped(segments)
    assert len(theirs) > 1500
    assert sum(not row[-1] for row in theirs) == 20
    assert told(evidence) == theirs


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return Schemas.of(jars_or_skip("4.4.0").classpath)


def test_metadata_and_groups(schemas: Schemas, tmp_path: Path) -> None:
    """Records whose values are evidence, written with the schemas of Kafka's own jars."""
    root = tmp_path / "b1"
    partition = RecordValue("PartitionRecord", 2, {"partitionId": 3, "leader": 1, "isr": [1, 2]})
    value = schemas.encode_metadata_record(partition)
    leader = schemas.message("LeaderChangeMessage").encode(
        0, {"leaderId": 1, "voters": [{"voterId": 1}]}
    )
    control = Batch(0, ((struct.pack(">hh", 0, 2), leader),), 1, attributes=0x20)
    newer = Batch(2, ((None, b"\x01\x7f\x00"), (None, value)), 1)
    metadata = [control, Batch(1, ((None, value),), 1), newer]
    write_segment(partition_folder(root, "__cluster_metadata"), metadata)
    write_segment(partition_folder(root, "__consumer_offsets", 4), [Batch(0, group(schemas), 2)])
    jars = kafka_jars("4.4.0").classpath
    evidence = read(Inputs(brokers_of([f"b1={root}"])), tmp_path / "out", jars)
    rows = list(evidence.rows("metadata"))
    assert [(row["type"], row["offset"]) for row in rows] == [
        ("LeaderChangeMessage", 0),
        ("PartitionRecord", 1),
        ("PartitionRecord", 3),
    ]
    assert '"isr":[1,2]' in rows[1]["body"]
    damage = [(row["kind"], row["offset"]) for row in evidence.rows("damage")]
    assert damage == [("unknown-record", 2)]
    first, second = evidence.rows("group_records")
    assert (first["type"], first["partition"], first["epoch"]) == ("GroupMetadataKey", 4, 2)
    assert (
        '"assignment":{"assignedPartitions":[{"partitions":[0,1],"topic":"t"}]' in (first["value"])
    )
    assert second["value"] is None
    for name, filters, records in (
        ("late", Filters(since=1_800_000_000_000), 2),  # what holds by then was written before
        ("early", Filters(until=1), 0),
    ):
        inputs = Inputs(brokers_of([f"b1={root}"]), filters=filters)
        of_a_time = read(inputs, tmp_path / name, jars)
        assert of_a_time.table("metadata").num_rows == 3
        assert of_a_time.table("group_records").num_rows == records


def group(schemas: Schemas, version: int = 3) -> tuple[tuple[bytes, bytes | None], ...]:
    assignment = schemas.message("ConsumerProtocolAssignment").encode(
        1, {"assignedPartitions": [{"topic": "t", "partitions": [0, 1]}]}
    )
    subscription = schemas.message("ConsumerProtocolSubscription").encode(1, {"topics": ["t"]})
    member = {
        "memberId": "m",
        "clientId": "c",
        "clientHost": "/h",
        "subscription": struct.pack(">h", 1) + subscription,
        "assignment": struct.pack(">h", 1) + assignment,
    }
    body = {"protocolType": "consumer", "generation": 1, "members": [member]}
    value = schemas.message("GroupMetadataValue").encode(version, body)
    key = struct.pack(">hh", 2, 1) + b"g"
    return ((key, struct.pack(">h", version) + value), (key, None))


@pytest.mark.parametrize("version", range(5))
def test_values_of_groups_and_offsets_are_read_in_every_version(
    schemas: Schemas, tmp_path: Path, version: int
) -> None:
    """Logs hold what older brokers wrote; offsets under both keys, which groups do not have."""
    grouped, _ = group(schemas, version)
    keys = (0, 1) if version == 0 else (1,)  # the older key had the oldest value only
    number = struct.pack(">h", version)
    offset = {"offset": 7, "metadata": "", "commitTimestamp": 5}
    committed = number + schemas.message("OffsetCommitValue").encode(version, offset)
    place = b"\x00\x01g\x00\x01t" + struct.pack(">i", 0)
    records = (
        grouped,
        *((struct.pack(">h", kind) + place, committed) for kind in keys),
    )
    root = tmp_path / "b1"
    write_segment(partition_folder(root, "__consumer_offsets"), [Batch(0, records, 0)])
    jars = kafka_jars("4.4.0").classpath
    evidence = read(Inputs(brokers_of([f"b1={root}"])), tmp_path / "out", jars)
    assert evidence.table("damage").num_rows == 0
    rows = list(evidence.rows("group_records"))
    assert [row["version"] for row in rows] == [version] * (1 + len(keys))
    assert [row["batch"] for row in rows] == [0] * (1 + len(keys))
    assert all('"offset":7' in row["value"] for row in rows[1:])
    (one,) = read_groups(evidence)
    assert (one.name, one.type) == ("g", CLASSIC)
    assert ClassicGroups(Specifications()[CLASSIC_GROUP], TOPICS).judge(one).rows[0].generation == 1
