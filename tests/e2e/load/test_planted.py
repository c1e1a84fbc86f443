"""Logs with a planted fault, or with none, get the right answer of each release: over 100 logs.

Between the records of the group in question are those of others, which have no fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from conformance.kafka.jars import kafka_jars
from conformance.load.classes import release_classes
from conformance.load.judgement import LoadAnswer, UnitVerdict, judge_release
from conformance.load.partition import read_partition
from conformance.modelcheck.specifications import Specifications
from tests.e2e.load.written import (
    Batch,
    Consumer,
    LogWriter,
    Share,
    Streams,
    TransactionBatch,
    classic,
    gone,
    offset,
)

RELEASES = ("4.0.0", "4.1.0", "4.4.0")
SEEDS = range(6)
GROUP = "planted"
LOADS, FAILS, COMPACTED, FORGOTTEN = (
    (LoadAnswer.LOADS, ""),
    LoadAnswer.FAILS,
    LoadAnswer.FAILS_COMPACTED,
    (LoadAnswer.FORGOTTEN, ""),
)
Log = Sequence[Batch | TransactionBatch]
Expected = tuple[LoadAnswer, str]


@dataclass(frozen=True)
class Kind:
    """A kind of log, and what each release makes of it: an answer and a rule."""

    make: Callable[[random.Random], Log]
    expected: Sequence[Expected]
    """By release."""


def _epochs(chance: random.Random, count: int) -> list[int]:
    return sorted(chance.sample(range(1, 50), count))


def _healthy(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 6)
    return [
        group.join("a", epochs[0]),
        [group.current("a", epochs[1], 0)],
        group.join("b", epochs[2]),
        [group.current("a", epochs[3], 0, 2)],
        [group.current("b", epochs[4], 1)],
        [offset(GROUP, 0, 7)],
        group.leave("a", epochs[5]),
    ]


def _deleted(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 2)
    return [
        group.join("a", epochs[0]),
        group.leave("a", epochs[1]),
        group.deletion(),
        [classic(GROUP, 1, "m")],
    ]


def _owner_beside_the_cleaner(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 5)
    return [
        group.join("a", epochs[0]),
        [group.current("a", epochs[1], 0)],
        [group.current("a", epochs[2])],
        group.join("b", epochs[3]),
        [group.current("b", epochs[3], 0)],
        [group.current("a", epochs[4])],
    ]


def _owner_that_joins_again(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 5)
    return [
        group.join("a", epochs[0]),
        [group.current("a", epochs[1], 0)],
        group.leave("a", epochs[2]),
        group.join("b", epochs[3]),
        [group.current("b", epochs[3], 0)],
        group.join("a", epochs[4]),
    ]


def _two_owners(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 3)
    return [
        group.join("a", epochs[0]),
        [group.current("a", epochs[1], 0)],
        group.join("b", epochs[2]),
        [group.current("b", epochs[2], 0)],
    ]


def _two_owners_in_one_epoch(chance: random.Random) -> Log:
    group, (first, second) = Consumer(GROUP), _epochs(chance, 2)
    return [
        group.join("a", first),
        group.join("b", first),
        [group.current("a", second, 0)],
        [group.current("b", second, 0)],
    ]


def _offsets_before_streams(chance: random.Random) -> Log:
    group, (epoch,) = Streams(GROUP), _epochs(chance, 1)
    return [[offset(GROUP, 0, 3)], [group.member("a", "p"), group.metadata(epoch)]]


def _two_processes(chance: random.Random) -> Log:
    group, (first, second) = Streams(GROUP), _epochs(chance, 2)
    return [
        [group.metadata(first), group.member("a", "p"), group.member("b", "q")],
        [group.current("a", first, 0)],
        [group.current("b", second, 0)],
    ]


def _unknown_version(chance: random.Random) -> Log:
    bad = replace(Consumer(GROUP).metadata(1), prefix=bytes([0, chance.randrange(20, 90)]))
    return [[bad]]


def _cut_off(chance: random.Random) -> Log:
    return [[replace(Consumer(GROUP).member("a"), cut=chance.randrange(4, 20))]]


def _member_before_its_assignment(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 2)
    return [group.join("a", epochs[0]), list(reversed(group.leavings("a")))]


def _member_before_its_target(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 1)
    current, target, member = group.leavings("a")
    return [group.join("a", epochs[0]), [current, member, target]]


def _group_with_members(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 1)
    return [group.join("a", epochs[0]), [gone(group.metadata(0))]]


def _group_before_its_targets(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 2)
    return [
        group.join("a", epochs[0]),
        group.leave("a", epochs[1]),
        list(reversed(group.deletion())),
    ]


def _targets_with_members(chance: random.Random) -> Log:
    group, epochs = Consumer(GROUP), _epochs(chance, 1)
    return [group.join("a", epochs[0]), group.deletion()]


def _classic_and_consumer(chance: random.Random) -> Log:
    return [[classic(GROUP, chance.randrange(1, 9), "m")], Consumer(GROUP).join("a", 1)]


def _downgraded(chance: random.Random) -> Log:
    """ConsumerGroup.createConsumerGroupRecords, then createGroupTombstoneRecords."""
    group, (first, second) = Consumer(GROUP), sorted(chance.sample(range(2, 50), 2))
    return [
        [classic(GROUP, first, "a")],
        [gone(classic(GROUP, first, "a")), *group.join("a", first), *group.join("b", first + 1)],
        [
            *(gone(group.current(member, 0)) for member in "ab"),
            *(gone(group.target(member)) for member in "ab"),
            gone(group.targets(0)),
            *(gone(group.member(member)) for member in "ab"),
            gone(group.metadata(0)),
            classic(GROUP, second, "a"),
        ],
    ]


def _absent_share_group(chance: random.Random) -> Log:
    group = Share(GROUP)
    return [[gone(group.member(chance.choice("ab")))], [group.metadata(1)]]


def _newer_type(chance: random.Random) -> Log:
    return [[replace(Consumer(GROUP).metadata(1), number=chance.randrange(60, 90))]]


KINDS: Mapping[str, Kind] = {
    "healthy": Kind(_healthy, [LOADS] * 3),
    "deleted, then classic": Kind(_deleted, [LOADS] * 3),
    "KAFKA-19862 beside the cleaner": Kind(
        _owner_beside_the_cleaner,
        [(COMPACTED, "PartitionHasOwner"), (COMPACTED, "PartitionHasOwner"), LOADS],
    ),
    "a stale owner that joins again": Kind(
        _owner_that_joins_again, [(COMPACTED, "PartitionHasOwner")] * 3
    ),
    "two owners, the newer one last": Kind(
        _two_owners, [(FAILS, "PartitionHasOwner"), (FAILS, "PartitionHasOwner"), LOADS]
    ),
    "two owners in one epoch": Kind(_two_owners_in_one_epoch, [(FAILS, "PartitionHasOwner")] * 3),
    "KAFKA-20254": Kind(_offsets_before_streams, [FORGOTTEN, (FAILS, "GroupHasOtherType"), LOADS]),
    "two processes of one task": Kind(
        _two_processes, [FORGOTTEN, (FAILS, "TaskHasProcess"), LOADS]
    ),
    "version of a value": Kind(_unknown_version, [(FAILS, "Unreadable")] * 3),
    "cut off": Kind(_cut_off, [(FAILS, "Unreadable")] * 3),
    "member's tombstone first": Kind(
        _member_before_its_assignment, [(FAILS, "MemberHasEpoch")] * 3
    ),
    "member's tombstone before its target's": Kind(
        _member_before_its_target, [(FAILS, "MemberHasTarget")] * 3
    ),
    "group's tombstone, with members": Kind(_group_with_members, [(FAILS, "GroupHasMembers")] * 3),
    "group's tombstone before its targets'": Kind(
        _group_before_its_targets, [(FAILS, "GroupHasAssignmentEpoch")] * 3
    ),
    "targets' tombstone, with targets": Kind(_targets_with_members, [(FAILS, "TargetsRemain")] * 3),
    "classic and consumer": Kind(_classic_and_consumer, [(FAILS, "GroupHasOtherType")] * 3),
    "upgraded and downgraded beside the cleaner": Kind(
        _downgraded, [(COMPACTED, "GroupHasOtherType")] * 3
    ),
    "KAFKA-19453": Kind(_absent_share_group, [(FAILS, "ShareGroupIsAbsent"), LOADS, LOADS]),
    "a type of record that nobody knows": Kind(_newer_type, [FORGOTTEN] * 3),
}


def _among_others(chance: random.Random, log: Log) -> list[Batch | TransactionBatch]:
    """The log with batches of other groups between its own."""
    other = Consumer("other")
    others: list[Batch | TransactionBatch] = [
        [classic("first", 1, "m")],
        other.join("x", 1),
        [offset("first", 0, chance.randrange(100))],
        TransactionBatch(7, [offset("first", 1, chance.randrange(100))]),
        TransactionBatch(7, (), chance.random() < 0.5),
        [other.current("x", 2, 0)],
        other.leave("x", 3),
    ]
    mixed = list(log)
    places = sorted(chance.randrange(len(log) + 1) for _ in others)
    for place, batch in reversed(list(zip(places, others, strict=True))):
        mixed.insert(place, batch)
    return mixed


def test_there_are_enough() -> None:
    assert len(KINDS) >= 10
    assert len(KINDS) * len(SEEDS) >= 100


@pytest.mark.parametrize("number", range(len(RELEASES)), ids=RELEASES)
def test_every_planted_log_gets_its_answer(
    number: int, writer: LogWriter, specifications: Specifications, tmp_path: Path
) -> None:
    release = RELEASES[number]
    jars, wrong = kafka_jars(release).classpath, list[str]()
    for name, kind in KINDS.items():
        for seed in SEEDS:
            chance = random.Random(f"{name} {seed}")
            batches = _among_others(chance, kind.make(chance))
            log = read_partition(writer.write(tmp_path / f"{name} {seed}", batches))
            with release_classes(release) as classes:
                verdict = judge_release(log, release, jars, specifications, classes)
            groups = {unit.name: unit for unit in verdict.units}
            planted = groups.pop(GROUP)
            if _given(planted) != kind.expected[number]:
                wrong.append(f"{name} {seed}: {_given(planted)}")
            wrong += [f"{name} {seed}: {_given(g)}" for g in groups.values() if _given(g) != LOADS]
            wrong += [f"{name} {seed}: {text}" for text in verdict.disagreements]

    assert not wrong, "\n".join(wrong)


def _given(group: UnitVerdict) -> Expected:
    return group.answer, group.faults[0].rule if group.faults else ""
