"""The controller's history: what a log, snapshots and several copies of them tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.inspect.evidence import METADATA, Evidence
from conformance.inspect.history import MetadataHistory, controller, is_unclean
from conformance.inspect.store import PartWriter

TOPIC = ("TopicRecord", {"name": "t", "topicId": "id"})
CREATED = (
    "PartitionRecord",
    {
        "topicId": "id", "partitionId": 0, "leader": 1, "leaderEpoch": 0, "isr": [1, 2],
        "partitionEpoch": 0, "replicas": [1, 2, 3],
    },
)  # fmt: skip


def change(**body: Any) -> tuple[str, dict[str, Any]]:
    return "PartitionChangeRecord", {"topicId": "id", "partitionId": 0, **body}


def replayed(tmp_path: Path, *rows: dict[str, Any]) -> MetadataHistory:
    columns = dict.fromkeys(METADATA.names)
    with PartWriter(tmp_path, 0) as writer:
        for row in rows:
            writer.row("metadata", columns | row)
    return controller(Evidence(tmp_path, {"brokers": ["b1", "b2"]}))


def row(offset: int, record: tuple[str, dict[str, Any]], **further: Any) -> dict[str, Any]:
    return {
        "broker": "b1", "offset": offset, "epoch": 1, "timestamp": 1000 + offset,
        "type": record[0], "version": 0, "body": json.dumps(record[1]), "committed": True,
        "source": "log", "path": "p", "sequence": 0,
    } | further  # fmt: skip


def test_both_epochs_are_counted_over_changes(tmp_path: Path) -> None:
    found = replayed(
        tmp_path,
        row(0, TOPIC),
        row(1, CREATED),
        row(2, change(isr=[1])),
        row(3, change(leader=2, isr=[2])),
        row(4, change(leader=-1, isr=[])),
    )
    told = [
        (one.offset, one.leader, one.leader_epoch, one.isr, one.partition_epoch)
        for one in found.partitions["t", 0].registrations
    ]
    assert told == [
        (1, 1, 0, (1, 2), 0),
        (2, 1, 0, (1,), 1),
        (3, 2, 1, (2,), 2),
        (4, -1, 2, (), 3),
    ]
    assert [one.offset for one in found.partitions["t", 0].unclean] == [3]


def test_an_eligible_leader_is_no_unclean_one(tmp_path: Path) -> None:
    found = replayed(
        tmp_path,
        row(0, TOPIC),
        row(1, CREATED),
        row(2, change(leader=-1, isr=[], eligibleLeaderReplicas=[2])),
        row(3, change(leader=2, isr=[2])),
    )
    before, after = found.partitions["t", 0].registrations[1:]
    assert before.electable == (2,)
    assert not is_unclean(before, after)


def test_what_was_not_committed_and_what_was_aborted_never_was(tmp_path: Path) -> None:
    found = replayed(
        tmp_path,
        row(0, TOPIC),
        row(1, CREATED),
        row(2, ("BeginTransactionRecord", {})),
        row(3, change(isr=[1])),
        row(4, ("AbortTransactionRecord", {})),
        row(5, change(isr=[2]), committed=False),
    )
    assert [one.offset for one in found.partitions["t", 0].registrations] == [1]


@pytest.mark.parametrize(("epoch", "differ"), [(1, False), (4, True)])
def test_a_snapshot_is_held_against_the_log(tmp_path: Path, epoch: int, differ: bool) -> None:
    kind, body = CREATED
    later = (kind, body | {"isr": [1], "partitionEpoch": epoch})
    found = replayed(
        tmp_path,
        row(0, TOPIC),
        row(1, CREATED),
        row(2, change(isr=[1])),
        row(2, later, source="snapshot", path="s"),
        row(3, ("NoOpRecord", {})),
    )
    assert bool(found.snapshots) == differ


def test_a_log_that_begins_late_goes_on_from_a_snapshot(tmp_path: Path) -> None:
    found = replayed(
        tmp_path,
        row(9, TOPIC, source="snapshot", path="s"),
        row(9, CREATED, source="snapshot", path="s"),
        row(8, change(isr=[3])),
        row(10, change(isr=[1])),
    )
    elections = found.partitions["t", 0]
    assert [one.offset for one in elections.registrations] == [9, 10]
    assert not elections.whole


def test_copies_that_disagree_are_told(tmp_path: Path) -> None:
    found = replayed(
        tmp_path,
        row(0, TOPIC),
        row(0, ("TopicRecord", {"name": "T", "topicId": "id"}), broker="b2"),
    )
    (one,) = found.disagreements
    assert one.offset == 0
