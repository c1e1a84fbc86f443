"""The specification and a release's classes say the same of any log, however wild."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.kafka.jars import kafka_jars
from conformance.load.classes import release_classes
from conformance.load.judgement import LoadAnswer, judge_release
from conformance.load.partition import PartitionLog, SegmentReader, read_partition
from conformance.modelcheck.specifications import Specifications
from tests.e2e.load.written import (
    SEGMENT,
    Batch,
    Consumer,
    LogWriter,
    Share,
    Streams,
    TransactionBatch,
    Written,
    classic,
    gone,
    offset,
)

RELEASES = ("4.0.0", "4.1.0", "4.2.0", "4.4.0")
LOGS = 60


def wild_logs() -> Iterator[list[Batch | TransactionBatch]]:
    """Records of all kinds of groups in any order; some groups keep to one kind."""
    chance = random.Random(11)
    for number in range(LOGS):
        kinds = chance.choice([("consumer",), ("streams",), ("share",), ("consumer", "classic"),
                               ("offset", "streams"), ("consumer", "offset", "classic", "share",
                               "streams")])  # fmt: skip
        yield [_batch(chance, kinds, number) for _ in range(chance.randrange(4, 14))]


def _batch(chance: random.Random, kinds: tuple[str, ...], number: int) -> Batch | TransactionBatch:
    group = f"g{chance.randrange(2)}"
    if "offset" in kinds and chance.random() < 0.4:
        producer = chance.randrange(2)
        if chance.random() < 0.4:
            return TransactionBatch(producer, (), chance.random() < 0.6)
        record = offset(group, chance.randrange(2), chance.randrange(100))
        return TransactionBatch(producer, [record])
    records = [_record(chance, group, chance.choice(kinds)) for _ in range(chance.randrange(1, 3))]
    return [gone(record) if chance.random() < 0.3 else record for record in records]


def _record(chance: random.Random, group: str, kind: str) -> Written:
    name, epoch = chance.choice("ab"), chance.randrange(1, 6)
    places, instance = chance.sample(range(3), chance.randrange(3)), chance.choice([None, "i", "j"])
    match kind:
        case "offset":
            return offset(group, chance.randrange(2), chance.randrange(100))
        case "classic":
            return classic(group, epoch, *chance.choice([(), ("a",), ("a", "b")]))
        case "share":
            share = Share(group)
            return chance.choice(
                [share.metadata(epoch), share.member(name), share.current(name, epoch),
                 share.target(name), share.targets(epoch), share.sharing()]
            )  # fmt: skip
        case "streams":
            streams = Streams(group)
            return chance.choice(
                [streams.metadata(epoch), streams.member(name, chance.choice("pq"), instance),
                 streams.current(name, epoch, *places), streams.current(name, epoch, *places),
                 streams.target(name), streams.targets(epoch)]
            )  # fmt: skip
    consumer = Consumer(group)
    return chance.choice(
        [consumer.metadata(epoch), consumer.member(name, instance), consumer.targets(epoch),
         consumer.target(name, *places), consumer.current(name, epoch, *places),
         consumer.current(name, epoch, *places), consumer.regex("t.*")]
    )  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_both_judges_agree(
    release: str, writer: LogWriter, specifications: Specifications, tmp_path: Path
) -> None:
    jars = kafka_jars(release).classpath
    answers, disagreements, compared = set(), [], 0
    for number, batches in enumerate(wild_logs()):
        log = read_partition(writer.write(tmp_path / f"{number}", batches))
        with release_classes(release) as classes:
            verdict = judge_release(log, release, jars, specifications, classes)
        disagreements += [f"log {number}: {text}" for text in verdict.disagreements]
        answers |= {group.answer for group in verdict.units}
        compared += sum(group.compared for group in verdict.units)

    assert not disagreements, "\n".join(disagreements[:20])
    assert {LoadAnswer.LOADS, LoadAnswer.FAILS} <= answers
    assert compared > 10 * LOGS


def committed_logs() -> Iterator[list[Batch | TransactionBatch]]:
    """Many commits, now and then beside another record of their group or within a transaction."""
    chance = random.Random(12)
    for number in range(LOGS):
        kinds = ("offset",) * 6 + (("consumer",), ("streams",), ("classic",))[number % 3]
        batches = [_batch(chance, kinds, number) for _ in range(chance.randrange(8, 20))]
        if number % 4 == 0:
            bent = [_unreadable(chance, offset("g0", 0, number))]
            batches.insert(chance.randrange(len(batches)), bent)
        yield batches


def _unreadable(chance: random.Random, commit: Written) -> Written:
    """Of a version that no release has, or too short."""
    return chance.choice(
        [replace(commit, prefix=b"\x00\x09"), replace(commit, cut=1), replace(commit, cut=5)]
    )


def test_commits_that_are_left_out_change_no_answer(
    writer: LogWriter, specifications: Specifications, tmp_path: Path
) -> None:
    release = RELEASES[-1]
    jars = kafka_jars(release).classpath
    left_out = 0
    for number, batches in enumerate(committed_logs()):
        folder = writer.write(tmp_path / f"{number}", batches)
        log, records = read_partition(folder), tuple(SegmentReader().segment(folder / SEGMENT))
        left_out += len(records) - len(log.records)
        whole = PartitionLog(records, log.size, (), len(records))
        kept, unabridged = (
            {
                unit.name: (unit.answer, {fault.rule for fault in unit.faults})
                for unit in judge_release(each, release, jars, specifications, None).units
            }
            for each in (log, whole)
        )
        assert kept == unabridged, f"log {number}"
        assert log.count == len(records)
    assert left_out > LOGS
