"""Groups by their records in __consumer_offsets: what is read of them, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from conformance.errors import SpecError
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import Discovery, FindingNotes, UnjudgedSubject
from conformance.inspect.history import MetadataHistory
from conformance.story.why import why_false
from conformance.tla import Spec, State, Value, make_function

CLASSIC, CONSUMER, OTHER = "classic", "consumer", "other"
"""Protocols: that of JoinGroup, that of KIP-848, and those that no specification here has."""
_METADATA_AGE = 300_000
"""metadata.max.age.ms: whoever assigns may not know of a younger partition yet."""
_OFFSETS = frozenset({"OffsetCommitKey", "LegacyOffsetCommitKey"})

GROUP_SCHEMA = pa.schema(
    [
        ("group", pa.string()), ("type", pa.string()), ("partition", pa.int32()),
        ("offset", pa.int64()), ("time", pa.int64()), ("state", pa.string()),
        ("generation", pa.int32()), ("protocol", pa.string()), ("leader", pa.string()),
        ("members", pa.list_(pa.string())), ("assigned", pa.list_(pa.string())),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupRecordCopy:
    """A record of a group as a copy of __consumer_offsets has it."""

    offset: int
    batch: int
    """Base offset of its batch: what a coordinator writes at once is in one."""
    time: int
    type: str
    """The key's schema."""
    key: Mapping[str, Any]
    text: str | None
    """The value as JSON; None: a tombstone."""

    @property
    def value(self) -> Mapping[str, Any] | None:
        """The value; None: a tombstone."""
        if self.text is None:
            return None
        value: Mapping[str, Any] = json.loads(self.text)
        return value


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group from a record on, as it is shown."""

    offset: int
    time: int
    state: str
    generation: int
    """The group epoch of a consumer group."""
    protocol: str
    """The assignor."""
    leader: str
    assigned: Mapping[str, frozenset[str]]
    """By member id."""


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """A group's records and what the formulas say of them."""

    name: str
    type: str
    partition: int
    broker: str
    """Whose copy was judged: the longest."""
    rows: tuple[GroupRow, ...]
    truths: Mapping[str, bool | None]
    notes: FindingNotes


@dataclass(frozen=True, slots=True)
class GroupLog:
    """The records of one group and protocol in the longest copy of its partition."""

    name: str
    type: str
    partition: int
    broker: str
    records: tuple[GroupRecordCopy, ...]


def read_groups(evidence: Evidence) -> Iterator[GroupLog]:
    """Every group by its records, in the order of names; offsets that were committed are none."""
    result: dict[tuple[str, int, str], dict[str, list[GroupRecordCopy]]] = {}
    for row in evidence.rows("group_records"):
        if row["state"] or row["type"] in _OFFSETS:
            continue
        key = json.loads(row["key"])
        place = (key.get("group") or key.get("groupId") or "", row["partition"], _type(row["type"]))
        record = GroupRecordCopy(
            row["offset"], row["batch"], row["timestamp"], row["type"], key, row["value"]
        )
        result.setdefault(place, {}).setdefault(row["broker"], []).append(record)
    for (name, partition, kind), copies in sorted(result.items()):
        broker = max(sorted(copies), key=lambda name: max(r.offset for r in copies[name]))
        records = sorted(copies[broker], key=lambda copy: copy.offset)
        yield GroupLog(name, kind, partition, broker, tuple(records))


def _type(key: str) -> str:
    if key == "GroupMetadataKey":
        return CLASSIC
    return CONSUMER if key.startswith("ConsumerGroup") else OTHER


def group_rows(group: JudgedGroup) -> Iterator[dict[str, Any]]:
    """Rows of the table `groups`."""
    for row in group.rows:
        yield {
            "group": group.name,
            "type": group.type,
            "partition": group.partition,
            "offset": row.offset,
            "time": row.time,
            "state": row.state,
            "generation": row.generation,
            "protocol": row.protocol,
            "leader": row.leader,
            "members": sorted(row.assigned),
            "assigned": sorted({p for assigned in row.assigned.values() for p in assigned}),
        }


@dataclass(frozen=True)
class Topics:
    """What the controller's history says of the topics that groups subscribe to."""

    controller: MetadataHistory

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Of topics by their ids."""
        partitions = self.controller.partitions.items()
        return {elections.topic_id: topic for (topic, _), elections in partitions}

    def known_since(self, topic: str, time: int) -> frozenset[str]:
        """The partitions that whoever knows the topic at a time must know of: `orders-0`."""
        numbers = range(self.controller.counts.get(topic, 0))
        return frozenset(f"{topic}-{n}" for n in numbers if self._existed(topic, n, time))

    def _existed(self, topic: str, number: int, time: int) -> bool:
        created = self.controller.partitions[topic, number].registrations[0].time
        first = self.controller.partitions[topic, 0].registrations[0].time
        return created <= time - _METADATA_AGE or (created == first and created <= time)


@dataclass(slots=True)
class GroupTruths:
    """What formulas say of one group; a formula holds if it held of something and never failed."""

    log: GroupLog
    words: Mapping[str, str]
    """By formula what it means that it is false."""
    truths: dict[str, bool | None]
    notes: FindingNotes = field(default_factory=FindingNotes)

    def ask(
        self, spec: Spec, formula: str, offsets: tuple[int, int], text: str, *states: State
    ) -> bool:
        """Whether a state or a step is as the formula wants it; what is not becomes a finding."""
        item = spec.state_formula(formula) if len(states) == 1 else spec.action_formula(formula)
        try:
            holds = item(*states)
        except SpecError as error:
            self.unjudged(formula, f"it has no value at offset {offsets[0]}: {error}")
            return True
        if holds:
            if self.truths[formula] is None:
                self.truths[formula] = True
            return True
        self.truths[formula] = False
        self.notes.discoveries.append(self._discovery(spec, formula, offsets, text, *states))
        return False

    def _discovery(
        self, spec: Spec, formula: str, offsets: tuple[int, int], text: str, *states: State
    ) -> Discovery:
        reasons = why_false(spec, formula, states[0], states[-1])
        definition = spec.program.operator(formula, "a formula")
        log = self.log
        place = f"__consumer_offsets-{log.partition}"
        return Discovery(
            formula,
            f"group {log.name}",
            f"group {log.name}: {formula} is false at offset {offsets[0]} of {place}",
            f"{self.words[formula]} {text}",
            offsets=offsets,
            brokers=(log.broker,),
            formula=formula,
            location=str(definition.location),
            reasons=reasons,
            scale="members are named m1, m2, ..., partitions 0, 1, ..., each in their order",
            sources=(f"{log.broker}: {place}, offset {offsets[0]}",),
            topic="__consumer_offsets",
            partition=log.partition,
        )

    def unjudged(self, what: str, why: str) -> None:
        """Note what cannot be said."""
        self.notes.unjudged.append(UnjudgedSubject(f"group {self.log.name}", what, why))

    def judged(self, rows: tuple[GroupRow, ...]) -> JudgedGroup:
        """The group with all that was said of it."""
        log = self.log
        return JudgedGroup(
            log.name, log.type, log.partition, log.broker, rows, self.truths, self.notes
        )


def member_constants(instances: Sequence[str], partitions: int) -> dict[str, Value]:
    """What every specification of groups is bound with: members m1, m2, ... with these instance
    ids, and partitions 0, 1, ..."""
    names = [f"m{number}" for number in range(1, len(instances) + 1)]
    return {
        "Members": frozenset(names),
        "InstanceOf": make_function(dict(zip(names, instances, strict=True))),
        "Partitions": frozenset(range(partitions)),
    }
