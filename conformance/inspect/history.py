"""What the controller decided, and when: each partition's registrations from the metadata log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow.compute as pc

from conformance.inspect.evidence import Evidence

NO_LEADER = -1
_UNCHANGED = -2
_RECOVERING = 1
_TOPIC_CONFIG = 2

Key = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What the controller had of a partition from one metadata record on.

    Brokers are by their ids. Source: org.apache.kafka.metadata.PartitionRegistration.
    """

    offset: int
    """Of the record in `__cluster_metadata`."""
    time: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    recovering: bool = False
    """An unclean election has made this leader, and it has not recovered (KIP-704)."""
    eligible: tuple[int, ...] = ()
    """Eligible leader replicas: may be elected although they are not in the ISR (KIP-966)."""
    source: str = "log"
    directories: tuple[str, ...] = ()
    """Directory ids in the order of the replicas (KIP-858); empty where they are not known."""

    @property
    def electable(self) -> tuple[int, ...]:
        """Whom the controller may elect cleanly: the specification's ISR.

        That is Kafka's ISR. Where KIP-966 lets it become empty, it is the eligible leaders.
        """
        return self.isr or self.eligible

    def changed(self, body: Mapping[str, Any], offset: int, time: int) -> Registration:
        """After a PartitionChangeRecord: a delta, in which both epochs are counted, not stated."""
        leader = body.get("leader", _UNCHANGED)
        isr, replicas = body.get("isr"), body.get("replicas")
        recovery = body.get("leaderRecoveryState", -1)
        eligible, directories = body.get("eligibleLeaderReplicas"), body.get("directories")
        return Registration(
            offset,
            time,
            self.leader if leader == _UNCHANGED else leader,
            self.leader_epoch + (leader != _UNCHANGED),
            self.isr if isr is None else tuple(isr),
            self.partition_epoch + 1,
            self.replicas if replicas is None else tuple(replicas),
            self.recovering if recovery < 0 else recovery == _RECOVERING,
            self.eligible if eligible is None else tuple(eligible),
            directories=tuple(self.directories if directories is None else directories),
        )


def is_unclean(before: Registration | None, after: Registration) -> bool:
    """Whether `after` elected a replica that was neither in the ISR nor an eligible leader."""
    if before is None or after.leader_epoch == before.leader_epoch or after.leader < 0:
        return False
    return after.leader not in (*before.isr, *before.eligible)


@dataclass(frozen=True, slots=True)
class Elections:
    """A partition's registrations, from the first that is known on."""

    topic_id: str
    registrations: tuple[Registration, ...]
    whole: bool
    """Whether the first is the partition's creation."""

    @property
    def last(self) -> Registration:
        """The newest."""
        return self.registrations[-1]

    @property
    def ever(self) -> frozenset[int]:
        """Who was a replica at any time."""
        return frozenset(
            node for registration in self.registrations for node in registration.replicas
        )

    def leader_of(self, epoch: int) -> int | None:
        """Who led in an epoch; None if that is not known."""
        result = [
            registration.leader
            for registration in self.registrations
            if registration.leader_epoch == epoch
        ]
        return result[0] if result else None

    def began(self, epoch: int) -> Registration | None:
        """The registration with which an epoch began."""
        return next(
            (
                registration
                for registration in self.registrations
                if registration.leader_epoch == epoch
            ),
            None,
        )

    @property
    def elections(self) -> tuple[Registration, ...]:
        """The registrations that began an epoch."""
        registrations: dict[int, Registration] = {}
        for registration in self.registrations:
            registrations.setdefault(registration.leader_epoch, registration)
        return tuple(registrations.values())

    @property
    def unclean(self) -> tuple[Registration, ...]:
        """The elections of a replica outside the ISR."""
        pairs = zip(self.registrations, self.registrations[1:], strict=False)
        registrations = [after for before, after in pairs if is_unclean(before, after)]
        first = self.registrations[0]
        return (
            (first, *registrations) if first.recovering and not self.whole else tuple(registrations)
        )


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two copies of the metadata log, or a log and a snapshot, that tell different things."""

    offset: int
    detail: str


@dataclass(frozen=True, slots=True)
class MetadataHistory:
    """The committed history of the cluster's metadata, as far as the copies reach."""

    partitions: Mapping[Key, Elections]
    counts: Mapping[str, int]
    """Partitions of each topic."""
    compacted: frozenset[str]
    """Topics whose cleanup.policy says so."""
    last_offset: int
    last_time: int
    disagreements: tuple[Disagreement, ...] = ()
    uncommitted: int = 0
    """Records of which too few copies are here to tell whether they were committed."""
    snapshots: Mapping[Key, tuple[Registration, ...]] = field(default_factory=dict)
    """What snapshots say of partitions, in the places where a log was replayed up to them."""


@dataclass(slots=True)
class _Replay:
    """The image that grows with the records."""

    names: dict[str, str] = field(default_factory=dict)
    elections: dict[tuple[str, int], list[Registration]] = field(default_factory=dict)
    whole: dict[tuple[str, int], bool] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    transaction: list[tuple[Mapping[str, Any], str]] | None = None
    """Records of a metadata transaction that has not ended (KIP-868)."""

    def add(self, row: Mapping[str, Any], source: str) -> None:
        """Take a record; those of a transaction count when it ends."""
        match row["type"]:
            case "BeginTransactionRecord":
                self.transaction = []
            case "AbortTransactionRecord":
                self.transaction = None
            case "EndTransactionRecord":
                pending, self.transaction = self.transaction or [], None
                for entry, where in pending:
                    self._apply(entry, where)
            case _ if self.transaction is not None:
                self.transaction.append((row, source))
            case _:
                self._apply(row, source)

    def _apply(self, row: Mapping[str, Any], source: str) -> None:
        body = json.loads(row["body"])
        match row["type"]:
            case "TopicRecord":
                self.names[body["topicId"]] = body["name"]
            case "RemoveTopicRecord":
                self.removed.add(body["topicId"])
            case "PartitionRecord":
                key = (body["topicId"], body["partitionId"])
                self.elections.setdefault(key, []).append(registered(body, row, source))
                self.whole.setdefault(key, source == "log")
            case "PartitionChangeRecord":
                key = (body["topicId"], body["partitionId"])
                known = self.elections.get(key)
                if known:
                    known.append(known[-1].changed(body, row["offset"], row["timestamp"]))
            case "ConfigRecord" if body.get("name") == "cleanup.policy":
                if body.get("resourceType") == _TOPIC_CONFIG:
                    self.policies[body["resourceName"]] = body.get("value") or ""


def registered(body: Mapping[str, Any], row: Mapping[str, Any], source: str) -> Registration:
    """What a PartitionRecord says."""
    return Registration(
        row["offset"],
        row["timestamp"],
        body["leader"],
        body["leaderEpoch"],
        tuple(body["isr"]),
        body["partitionEpoch"],
        tuple(body["replicas"]),
        body.get("leaderRecoveryState", 0) == _RECOVERING,
        tuple(body.get("eligibleLeaderReplicas") or ()),
        source,
        tuple(body.get("directories") or ()),
    )


_TYPES = (
    "TopicRecord", "RemoveTopicRecord", "PartitionRecord", "PartitionChangeRecord",
    "ConfigRecord", "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord",
)  # fmt: skip
"""The records that the replay needs; most others only say that the controller is alive."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """How far the copies of the log reach; -1 where there is no log."""

    first: int = -1
    last: int = -1
    last_time: int = -1
    uncommitted: int = 0
    """Offsets of which nobody can tell whether they were committed."""


def _extent(evidence: Evidence) -> _Extent:
    columns = ["source", "offset", "timestamp", "committed"]
    extent, unknown = _Extent(), set[int]()
    where = pc.field("source") == "log"
    for whole in evidence.dataset("metadata").to_batches(columns=columns, filter=where):
        batch = whole.filter(pc.fill_null(whole.column("committed"), True))
        if batch.num_rows == 0:
            continue
        offsets = batch.column("offset")
        low, high = pc.min_max(offsets).as_py().values()
        time = pc.max(batch.column("timestamp")).as_py()
        unknown |= set(offsets.filter(batch.column("committed").is_null()).to_pylist())
        first = low if extent.first < 0 else min(extent.first, low)
        extent = _Extent(first, max(extent.last, high), max(extent.last_time, time))
    return replace(extent, uncommitted=len(unknown))


def controller(evidence: Evidence) -> MetadataHistory:
    """Replay the committed records: the newest snapshot that the logs need, then the log."""
    extent = _extent(evidence)
    rows = evidence.table("metadata", where=pc.field("type").isin(_TYPES)).to_pylist()
    logs, disagreements = _merged(row for row in rows if row["source"] == "log")
    snapshots = _snapshots(row for row in rows if row["source"] == "snapshot")
    base = _base(extent.first, snapshots)
    replay = _Replay()
    for row in snapshots.get(base, ()):
        replay.add(row, "snapshot")
    registrations: dict[Key, list[Registration]] = {}
    ends = sorted(offset for offset in snapshots if base < offset <= extent.last)
    for row in logs:
        while ends and row["offset"] > ends[0]:
            _compare(replay, snapshots[ends.pop(0)], registrations)
        if row["offset"] > base:
            replay.add(row, "log")
    for end in ends:
        _compare(replay, snapshots[end], registrations)
    return _controller(replay, extent, max(base, extent.last), disagreements, registrations)


def _controller(
    replay: _Replay,
    extent: _Extent,
    last_offset: int,
    disagreements: Sequence[Disagreement],
    registrations: Mapping[Key, list[Registration]],
) -> MetadataHistory:
    partitions: dict[Key, Elections] = {}
    counts: dict[str, int] = {}
    for (topic_id, number), election in replay.elections.items():
        name = replay.names.get(topic_id)
        if name is None or topic_id in replay.removed:
            continue
        partitions[name, number] = Elections(
            topic_id, tuple(election), replay.whole[topic_id, number]
        )
        counts[name] = max(counts.get(name, 0), number + 1)
    return MetadataHistory(
        MappingProxyType(partitions),
        MappingProxyType(counts),
        frozenset(name for name, policy in replay.policies.items() if "compact" in policy)
        | {"__consumer_offsets", "__transaction_state", "__share_group_state"},
        last_offset,
        extent.last_time,
        tuple(disagreements),
        extent.uncommitted,
        MappingProxyType({key: tuple(value) for key, value in registrations.items()}),
    )


def _merged(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[Disagreement]]:
    """Each committed offset once, from whichever copies have it; where these differ, told.

    Several records may share an offset's batch but not the offset itself. Records that are known
    not to be committed are left out: Raft truncates them.
    """
    result: dict[int, Mapping[str, Any]] = {}
    odd: list[Disagreement] = []
    for row in rows:
        if row["committed"] is False:
            continue
        known = result.setdefault(row["offset"], row)
        if (known["type"], known["body"]) != (row["type"], row["body"]) and row["committed"]:
            odd.append(
                Disagreement(
                    row["offset"],
                    f"{known['broker']} has {known['type']} {known['body']}, "
                    f"{row['broker']} has {row['type']} {row['body']}",
                )
            )
    return [result[offset] for offset in sorted(result)], odd


def _snapshots(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    """The records of each snapshot, by the offset up to which it tells; one copy of each."""
    snapshots: dict[int, tuple[tuple[str, str], list[Mapping[str, Any]]]] = {}
    for row in rows:
        copy = (row["broker"], row["path"])
        known = snapshots.setdefault(row["offset"], (copy, []))
        if known[0] == copy:
            known[1].append(row)
    return {offset: rows for offset, (_, rows) in snapshots.items()}


def _base(first: int, snapshots: Mapping[int, Sequence[Mapping[str, Any]]]) -> int:
    """The offset up to which a snapshot is needed; -1 where the logs begin at the beginning."""
    if first < 0:
        return max(snapshots, default=-1)
    if first == 0:
        return -1
    return min((offset for offset in snapshots if offset >= first - 1), default=-1)


def _compare(
    replay: _Replay, rows: Iterable[Mapping[str, Any]], registrations: dict[Key, list[Registration]]
) -> None:
    """Keep what a snapshot says of partitions whose history the log has told up to it."""
    for row in rows:
        if row["type"] != "PartitionRecord":
            continue
        body = json.loads(row["body"])
        key = (body["topicId"], body["partitionId"])
        known, name = replay.elections.get(key), replay.names.get(body["topicId"])
        if known and name is not None and key[0] not in replay.removed:
            registration = registered(body, row, "snapshot")
            if _facts(registration) != _facts(known[-1]):
                registrations.setdefault((name, body["partitionId"]), []).append(
                    replace(registration, time=known[-1].time)
                )


def _facts(registration: Registration) -> tuple[object, ...]:
    return (
        registration.leader,
        registration.leader_epoch,
        frozenset(registration.isr),
        registration.partition_epoch,
    )
