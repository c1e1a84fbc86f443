"""Logs of coordinators' topics, whose records Kafka's own serialisers write."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from conformance.kafka.batches import keyed_batch, sealed
from conformance.kafka.schemas import Schemas
from conformance.systems.external import AdapterChannel

FIRST_MS = 1_767_225_600_000
TRANSACTIONAL, CONTROL = 0x10, 0x20
SEGMENT = "00000000000000000000.log"


@dataclass(frozen=True)
class Written:
    """A record that Kafka's classes serialise: the key's schema without `Key`, and fields that
    differ from their defaults. `cut` bytes are taken from the value's end; `prefix` takes the place
    of its version."""

    type: str
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None = None
    version: int = 0
    cut: int = 0
    prefix: bytes = b""
    number: int | None = None
    """The type in front of the key, if it is not that of the schema."""


Batch = Sequence[Written]


@dataclass(frozen=True)
class TransactionBatch:
    """Records in a transaction; without records its marker."""

    producer: int
    records: Batch = ()
    commit: bool = True


@dataclass
class LogWriter:
    """Writes with the classes of one release."""

    channel: AdapterChannel
    schemas: Schemas
    cache: dict[str, tuple[bytes, bytes | None]] = field(default_factory=dict)

    def write(self, folder: Path, batches: Sequence[Batch | TransactionBatch]) -> Path:
        """One segment with these batches."""
        folder.mkdir(parents=True)
        (folder / SEGMENT).write_bytes(self.segment(batches))
        return folder

    def segment(self, batches: Sequence[Batch | TransactionBatch]) -> bytes:
        """The bytes of a segment."""
        data, offset = bytearray(), 0
        for batch in batches:
            producer, attributes = -1, 0
            if isinstance(batch, TransactionBatch):
                producer, attributes = batch.producer, TRANSACTIONAL
                records = self.serialised(batch.records)
                if not records:
                    attributes |= CONTROL
                    records = [(bytes([0, 0, 0, int(batch.commit)]), bytes(6))]
            else:
                records = self.serialised(batch)
            data += sealed(
                keyed_batch(
                    records,
                    first_ms=FIRST_MS + offset,
                    base_offset=offset,
                    leader_epoch=0,
                    producer_id=producer,
                    attributes=attributes,
                )
            )
            offset += len(records)
        return bytes(data)

    def serialised(self, records: Batch) -> list[tuple[bytes, bytes | None]]:
        """Keys and values."""
        asked = [self._json(record) for record in records]
        answers = self.channel.ask("load_write", records=asked) if asked else []
        return [
            _bent(record, base64.b64decode(key), None if value is None else base64.b64decode(value))
            for record, (key, value) in zip(
                records, cast("list[tuple[str, str | None]]", answers), strict=True
            )
        ]

    def _json(self, record: Written) -> dict[str, object]:
        keys = self.schemas.message(f"{record.type}Key")
        value = record.value
        if value is not None:
            layout = self.schemas.message(f"{record.type}Value").layout(record.version)
            value = _plain({**layout.defaults(), **value})
        return {
            "type": record.type,
            "number": keys.api_key,
            "version": record.version,
            "key": record.key,
            "value": value,
        }


def _plain(value: Any) -> Any:
    """As Kafka's JSON has it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _bent(record: Written, key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
    if record.number is not None:
        key = record.number.to_bytes(2, "big") + key[2:]
    if value is not None:
        value = record.prefix + value[len(record.prefix) : len(value) - record.cut]
    return key, value


# ---- records of groups, short ----------------------------------------------------------------

TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass(frozen=True)
class Consumer:
    """Records of a consumer group."""

    group: str

    def metadata(self, epoch: int) -> Written:
        return Written("ConsumerGroupMetadata", {"groupId": self.group}, {"epoch": epoch})

    def member(self, name: str, instance: str | None = None) -> Written:
        value = {
            "instanceId": instance,
            "clientId": "c",
            "clientHost": "/10.0.0.1",
            "subscribedTopicNames": ["t"],
        }
        return Written("ConsumerGroupMemberMetadata", self._member(name), value)

    def targets(self, epoch: int) -> Written:
        return Written(
            "ConsumerGroupTargetAssignmentMetadata",
            {"groupId": self.group},
            {"assignmentEpoch": epoch},
        )

    def target(self, name: str, *partitions: int) -> Written:
        value = {"topicPartitions": _topics(partitions)}
        return Written("ConsumerGroupTargetAssignmentMember", self._member(name), value)

    def current(self, name: str, epoch: int, *partitions: int) -> Written:
        value = {
            "memberEpoch": epoch,
            "previousMemberEpoch": epoch - 1,
            "assignedPartitions": _topics(partitions),
        }
        return Written("ConsumerGroupCurrentMemberAssignment", self._member(name), value)

    def regex(self, pattern: str) -> Written:
        key = {"groupId": self.group, "regularExpression": pattern}
        return Written("ConsumerGroupRegularExpression", key, {"topics": ["t"], "version": 1})

    def join(self, name: str, epoch: int) -> list[Written]:
        """What the coordinator writes when a member joins."""
        return [
            self.member(name),
            self.metadata(epoch),
            self.target(name),
            self.targets(epoch),
            self.current(name, epoch),
        ]

    def leave(self, name: str, epoch: int) -> list[Written]:
        """What it writes when a member leaves."""
        return [*self.leavings(name), self.metadata(epoch)]

    def leavings(self, name: str) -> list[Written]:
        """A member's tombstones in their order."""
        return [*map(gone, (self.current(name, 0), self.target(name), self.member(name)))]

    def deletion(self) -> list[Written]:
        """The tombstones of a group without members."""
        return [gone(self.targets(0)), gone(self.metadata(0))]

    def _member(self, name: str) -> dict[str, str]:
        return {"groupId": self.group, "memberId": name}


def _topics(partitions: Sequence[int]) -> list[dict[str, object]]:
    return [{"topicId": TOPIC, "partitions": list(partitions)}] if partitions else []


@dataclass(frozen=True)
class Streams:
    """Records of a streams group."""

    group: str

    def metadata(self, epoch: int) -> Written:
        return Written("StreamsGroupMetadata", {"groupId": self.group}, {"epoch": epoch})

    def member(self, name: str, process: str, instance: str | None = None) -> Written:
        value = {
            "instanceId": instance,
            "clientId": "c",
            "clientHost": "/10.0.0.1",
            "processId": process,
        }
        return Written("StreamsGroupMemberMetadata", self._member(name), value)

    def current(self, name: str, epoch: int, *tasks: int) -> Written:
        active = [{"subtopologyId": "s", "partitions": list(tasks)}] if tasks else []
        value = {"memberEpoch": epoch, "previousMemberEpoch": epoch - 1, "activeTasks": active}
        return Written("StreamsGroupCurrentMemberAssignment", self._member(name), value)

    def target(self, name: str) -> Written:
        return Written("StreamsGroupTargetAssignmentMember", self._member(name), {})

    def targets(self, epoch: int) -> Written:
        key, value = {"groupId": self.group}, {"assignmentEpoch": epoch}
        return Written("StreamsGroupTargetAssignmentMetadata", key, value)

    def _member(self, name: str) -> dict[str, str]:
        return {"groupId": self.group, "memberId": name}


@dataclass(frozen=True)
class Share:
    """Records of a share group."""

    group: str

    def metadata(self, epoch: int) -> Written:
        return Written("ShareGroupMetadata", {"groupId": self.group}, {"epoch": epoch})

    def member(self, name: str) -> Written:
        value = {"clientId": "c", "clientHost": "/10.0.0.1", "subscribedTopicNames": ["t"]}
        return Written("ShareGroupMemberMetadata", self._member(name), value)

    def current(self, name: str, epoch: int) -> Written:
        value = {"memberEpoch": epoch, "previousMemberEpoch": epoch - 1}
        return Written("ShareGroupCurrentMemberAssignment", self._member(name), value)

    def target(self, name: str) -> Written:
        return Written("ShareGroupTargetAssignmentMember", self._member(name), {})

    def targets(self, epoch: int) -> Written:
        key, value = {"groupId": self.group}, {"assignmentEpoch": epoch}
        return Written("ShareGroupTargetAssignmentMetadata", key, value)

    def sharing(self) -> Written:
        return Written("ShareGroupStatePartitionMetadata", {"groupId": self.group}, {})

    def _member(self, name: str) -> dict[str, str]:
        return {"groupId": self.group, "memberId": name}


def offset(group: str, partition: int, at: int, topic: str = "t") -> Written:
    """A committed offset."""
    value = {"offset": at, "leaderEpoch": -1, "metadata": "", "commitTimestamp": FIRST_MS}
    key = {"group": group, "topic": topic, "partition": partition}
    return Written("OffsetCommit", key, value, version=3)


_SUBSCRIPTION = "AAAAAAABAAF0/////w=="
"""ConsumerProtocolSubscription version 0: topic t."""
_ASSIGNMENT = "AAAAAAABAAF0AAAAAQAAAAD/////"
"""ConsumerProtocolAssignment version 0: t-0."""


def classic(group: str, generation: int, *members: str) -> Written:
    """A generation of a classic group."""
    value = {
        "protocolType": "consumer",
        "generation": generation,
        "protocol": "range" if members else None,
        "leader": members[0] if members else None,
        "currentStateTimestamp": FIRST_MS,
        "members": [
            {
                "memberId": name,
                "groupInstanceId": None,
                "clientId": "c",
                "clientHost": "/10.0.0.1",
                "rebalanceTimeout": 60000,
                "sessionTimeout": 45000,
                "subscription": _SUBSCRIPTION,
                "assignment": _ASSIGNMENT,
            }
            for name in members
        ],
    }
    return Written("GroupMetadata", {"group": group}, value, version=3)


@dataclass(frozen=True)
class SharePartition:
    """Records of one partition of a share group."""

    group: str
    partition: int = 0

    def snapshot(self, epoch: int, leader: int, state: int, start: int = 0) -> Written:
        value = {
            "snapshotEpoch": epoch,
            "stateEpoch": state,
            "leaderEpoch": leader,
            "startOffset": start,
            "createTimestamp": FIRST_MS,
            "writeTimestamp": FIRST_MS,
            "stateBatches": [],
        }
        return Written("ShareSnapshot", self._key(), value)

    def update(self, epoch: int, leader: int, start: int, *acknowledged: int) -> Written:
        batches = [
            {"firstOffset": at, "lastOffset": at, "deliveryState": 2, "deliveryCount": 1}
            for at in acknowledged
        ]
        value = {
            "snapshotEpoch": epoch,
            "leaderEpoch": leader,
            "startOffset": start,
            "stateBatches": batches,
        }
        return Written("ShareUpdate", self._key(), value)

    def _key(self) -> dict[str, object]:
        return {"groupId": self.group, "topicId": TOPIC, "partition": self.partition}


def transaction(
    name: str, status: int, *partitions: int, listed: bool = True, at: int = 0, client: int = 2
) -> Written:
    """The state of a transactional id, in the version that transactions of version 2 have."""
    topics = [{"topic": "t", "partitionIds": list(partitions)}] if partitions else []
    value = {
        "producerId": 7,
        "producerEpoch": at,
        "transactionTimeoutMs": 60000,
        "transactionStatus": status,
        "transactionPartitions": topics if listed else None,
        "transactionLastUpdateTimestampMs": FIRST_MS + at,
        "transactionStartTimestampMs": FIRST_MS + at,
        "clientTransactionVersion": client,
    }
    return Written("TransactionLog", {"transactionalId": name}, value, version=1)


def gone(record: Written) -> Written:
    """The tombstone of a record's key."""
    return Written(record.type, record.key, None, record.version)
