"""Consumer groups by their records in __consumer_offsets, judged by spec/GroupMembership.tla.

A record is written when a generation is complete, when a group becomes empty, when a static member
is replaced, and as a tombstone. Between two records the shortest way of the classic protocol is
taken; the formulas judge every step of it. Where there is none, the step from one record to the
next is judged as it is.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from conformance.errors import SpecError
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import Discovery, Notes, Unjudged
from conformance.inspect.formulas import module, state_of
from conformance.inspect.history import Controller
from conformance.story.behaviour import account
from conformance.tla import ModelConfig, Spec, State, Value, bind, make_function

STATE_FORMULAS = (
    "MembersOfAGenerationAgreeOnProtocol",
    "AssignmentIsComplete",
    "LeaderIsMember",
    "OneMemberPerInstance",
)
STEP_FORMULAS = ("GenerationsNeverFall", "LegalTransitionsOnly")
_EAGER = frozenset({"range", "roundrobin", "sticky"})
"""Assignors that give every partition to somebody in every generation."""
_FAR = 3
"""Generations further apart are judged as if they were so far apart."""
_METADATA_AGE = 300_000
"""metadata.max.age.ms: a leader may not know of a younger partition yet."""
_NOBODY, _NONE = "", "none"

GROUP_SCHEMA = pa.schema(
    [
        ("group", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
        ("time", pa.int64()), ("state", pa.string()), ("generation", pa.int32()),
        ("protocol", pa.string()), ("leader", pa.string()), ("members", pa.list_(pa.string())),
        ("assigned", pa.list_(pa.string())),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Member:
    """A member as a record has it."""

    id: str
    instance: str
    supports: bool
    """Whether the record holds a subscription of its for the selected protocol."""
    topics: frozenset[str]
    assigned: frozenset[str]


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A GroupMetadataValue; a tombstone has no generation and no members."""

    offset: int
    time: int
    generation: int
    protocol_type: str
    protocol: str
    leader: str
    members: tuple[Member, ...]
    tombstone: bool = False

    @property
    def state(self) -> str:
        """The group's state when the record was written (GroupMetadata's names)."""
        if self.tombstone:
            return "Dead"
        return "Stable" if self.members else "Empty"


@dataclass(frozen=True, slots=True)
class JudgedGroup:
    """A group's records and what the formulas say of them."""

    name: str
    partition: int
    broker: str
    """Whose copy was judged: the longest."""
    records: tuple[GroupRecord, ...]
    truths: Mapping[str, bool | None]
    notes: Notes


@dataclass(slots=True)
class _Formulas:
    """The specification for so many members and partitions, under short names."""

    _specs: dict[tuple[object, ...], Spec] = field(default_factory=dict)

    def spec(self, instances: tuple[str, ...], partitions: int) -> Spec:
        """Bound for members m1, m2, ... with these instance ids, and partitions 0, 1, ..."""
        key = (instances, partitions)
        if key not in self._specs:
            if len(self._specs) > 200:
                self._specs.clear()
            self._specs[key] = bind(module("GroupMembership"), _constants(instances, partitions))
        return self._specs[key]


def _constants(instances: tuple[str, ...], partitions: int) -> ModelConfig:
    names = [f"m{number}" for number in range(1, len(instances) + 1)]
    never = ("Commits", "Heartbeats", "Timeouts", "Losses", "LateRequests", "Restarts", "Leaves")
    constants: dict[str, Value] = {
        **dict.fromkeys((*never, "Rejoins", "StoreFailures"), False),
        "FailOvers": True,
        "Deletes": True,
        "Members": frozenset(names),
        "InstanceOf": make_function(dict(zip(names, instances, strict=True))),
        "MemberIds": tuple(make_function({"id": name, "member": name}) for name in names),
        "Generations": frozenset({0}),
        "Partitions": frozenset(range(partitions)),
        "Protocols": frozenset({_NONE}),
        "MaxSize": len(names),
        "InitialDelays": 0,
        "RequireKnownMemberId": False,
        "ProtocolsOf": make_function(dict.fromkeys(names, frozenset[Value]())),
        "ProtocolSets": frozenset(),
        "FailureLimit": -1,
    }
    return ModelConfig(constants=constants, source="inspect")


def judge_groups(evidence: Evidence, controller: Controller) -> tuple[JudgedGroup, ...]:
    """Every group of which a copy of __consumer_offsets has a record of the classic protocol."""
    records, newer = _records(evidence)
    formulas = _Formulas()
    judged = [
        _Judging(formulas, controller, name, partition, *_longest(copies)).judged()
        for (name, partition), copies in sorted(records.items())
    ]
    for name, partition in sorted(newer - records.keys()):
        notes = Notes()
        why = "its records are of the protocol of KIP-848, which the specification does not have"
        notes.unjudged.append(Unjudged(f"group {name}", "the group", why))
        judged.append(JudgedGroup(name, partition, "", (), dict.fromkeys(STEP_FORMULAS), notes))
    return tuple(judged)


def group_rows(group: JudgedGroup) -> Iterator[dict[str, Any]]:
    """Rows of the table `groups`."""
    for one in group.records:
        yield {
            "group": group.name,
            "partition": group.partition,
            "offset": one.offset,
            "time": one.time,
            "state": one.state,
            "generation": one.generation,
            "protocol": one.protocol,
            "leader": one.leader,
            "members": [member.id for member in one.members],
            "assigned": sorted({p for member in one.members for p in member.assigned}),
        }


_Copies = dict[str, list[GroupRecord]]


def _records(
    evidence: Evidence,
) -> tuple[dict[tuple[str, int], _Copies], set[tuple[str, int]]]:
    found: dict[tuple[str, int], _Copies] = {}
    newer: set[tuple[str, int]] = set()
    for row in evidence.rows("group_records"):
        if row["state"] or row["type"] == "OffsetCommitKey":
            continue
        key = json.loads(row["key"])
        name = key.get("group") or key.get("groupId") or ""
        place = (name, row["partition"])
        if row["type"] != "GroupMetadataKey":
            newer.add(place)
            continue
        value = None if row["value"] is None else json.loads(row["value"])
        record = _record(row["offset"], row["timestamp"], value)
        found.setdefault(place, {}).setdefault(row["broker"], []).append(record)
    for copies in found.values():
        for broker in copies:
            copies[broker].sort(key=lambda one: one.offset)
    return found, newer


def _longest(copies: _Copies) -> tuple[str, tuple[GroupRecord, ...]]:
    broker = max(sorted(copies), key=lambda name: copies[name][-1].offset)
    return broker, tuple(copies[broker])


def _record(offset: int, time: int, value: Mapping[str, Any] | None) -> GroupRecord:
    if value is None:
        return GroupRecord(offset, time, 0, "", _NONE, _NOBODY, (), tombstone=True)
    return GroupRecord(
        offset,
        time,
        value["generation"],
        value["protocolType"],
        value["protocol"] or _NONE,
        value["leader"] or _NOBODY,
        tuple(map(_member, value["members"])),
    )


def _member(value: Mapping[str, Any]) -> Member:
    subscription, assignment = value["subscription"], value["assignment"]
    topics, assigned = frozenset[str](), frozenset[str]()
    if isinstance(subscription, dict):
        topics = frozenset(subscription["topics"])
    if isinstance(assignment, dict):
        assigned = frozenset(
            f"{part['topic']}-{number}"
            for part in assignment["assignedPartitions"]
            for number in part["partitions"]
        )
    instance = value.get("groupInstanceId") or _NONE
    return Member(value["memberId"], instance, bool(subscription), topics, assigned)


@dataclass(slots=True)
class _Judging:
    """One group while it is judged."""

    formulas: _Formulas
    controller: Controller
    name: str
    partition: int
    broker: str
    records: tuple[GroupRecord, ...]
    notes: Notes = field(default_factory=Notes)
    truths: dict[str, bool | None] = field(default_factory=dict)
    known_topics: set[str] = field(default_factory=set)

    def judged(self) -> JudgedGroup:
        """The group with all that the formulas say."""
        self.truths = dict.fromkeys((*STATE_FORMULAS, *STEP_FORMULAS))
        for number, record in enumerate(self.records):
            self._judge_record(record)
            if number:
                self._judge_step(self.records[number - 1], record)
        return JudgedGroup(
            self.name, self.partition, self.broker, self.records, self.truths, self.notes
        )

    def _judge_record(self, record: GroupRecord) -> None:
        partitions, why = self._partitions(record)
        for formula in STATE_FORMULAS:
            if formula == "AssignmentIsComplete" and why:
                if why != "no members":
                    self._unjudged(formula, f"{why} (offset {record.offset})")
                continue
            naming = _Naming.of((record,), partitions)
            spec = self.formulas.spec(naming.instances, len(partitions))
            state = state_of(spec, naming.values(record, record.state, record.generation))
            self._ask(spec, formula, record, state)
        self.known_topics |= {p.rpartition("-")[0] for m in record.members for p in m.assigned}

    def _judge_step(self, before: GroupRecord, after: GroupRecord) -> None:
        naming = _Naming.of((before, after), ())
        spec = self.formulas.spec(naming.instances, 0)
        states = [state_of(spec, values) for values in _way(naming, before, after)]
        for formula in STEP_FORMULAS:
            for one, other in itertools.pairwise(states):
                if not self._ask(spec, formula, after, one, other):
                    break

    def _ask(self, spec: Spec, formula: str, record: GroupRecord, *states: State) -> bool:
        one = spec.state_formula(formula) if len(states) == 1 else spec.action_formula(formula)
        try:
            holds = one(*states)
        except SpecError as error:
            self._unjudged(formula, f"it has no value at offset {record.offset}: {error}")
            return True
        if holds:
            if self.truths[formula] is None:
                self.truths[formula] = True
            return True
        self.truths[formula] = False
        reasons = account(f"Why {formula} is false:", spec.explain(formula, states[0], states[-1]))
        definition = spec.program.operator(formula, "a formula")
        self.notes.found.append(
            Discovery(
                formula,
                f"group {self.name}",
                f"group {self.name}: {formula} is false at offset {record.offset} of "
                f"__consumer_offsets-{self.partition}",
                f"{_WORDS[formula]} The record has generation {record.generation}, "
                f"{len(record.members)} members ({', '.join(m.id for m in record.members)}), "
                f"protocol {record.protocol}, leader {record.leader or 'none'}.",
                offsets=(record.offset, record.offset + 1),
                brokers=(self.broker,),
                formula=formula,
                location=str(definition.location),
                reasons=reasons,
                scale="members are named m1, m2, ..., partitions 0, 1, ..., each in their order",
                sources=(
                    f"{self.broker}: __consumer_offsets-{self.partition}, offset {record.offset}",
                ),
                topic="__consumer_offsets",
                partition=self.partition,
            )
        )
        return False

    def _partitions(self, record: GroupRecord) -> tuple[tuple[str, ...], str]:
        """The partitions that must be assigned; or why that is not known."""
        assigned = {partition for member in record.members for partition in member.assigned}
        if not record.members:
            return (), "no members"
        if record.protocol_type != "consumer" or record.protocol not in _EAGER:
            return tuple(sorted(assigned)), f"nothing is known of the assignor {record.protocol}"
        topics = {topic for member in record.members for topic in member.topics}
        known = self.known_topics | {partition.rpartition("-")[0] for partition in assigned}
        if not topics & known:
            return tuple(sorted(assigned)), "the leader may not have known the topics yet"
        wanted = set(assigned)
        for topic in topics & known:
            for number in range(self.controller.counts.get(topic, 0)):
                if self._existed(topic, number, record.time):
                    wanted.add(f"{topic}-{number}")
        return tuple(sorted(wanted)), ""

    def _existed(self, topic: str, number: int, time: int) -> bool:
        """Whether a leader that knew the topic must have known this partition of it."""
        created = self.controller.partitions[topic, number].registrations[0].time
        first = self.controller.partitions[topic, 0].registrations[0].time
        return created <= time - _METADATA_AGE or (created == first and created <= time)

    def _unjudged(self, formula: str, why: str) -> None:
        self.notes.unjudged.append(Unjudged(f"group {self.name}", formula, why))


_WORDS = {
    "MembersOfAGenerationAgreeOnProtocol": "A member has no subscription for the protocol.",
    "AssignmentIsComplete": "Some partitions are assigned to nobody, or to two members.",
    "LeaderIsMember": "The leader is no member.",
    "OneMemberPerInstance": "Two members have one group.instance.id.",
    "GenerationsNeverFall": "The generation fell: what was stored later is older.",
    "LegalTransitionsOnly": "No way of the protocol leads from the record before to this one.",
}


@dataclass(frozen=True, slots=True)
class _Naming:
    """Short names for members and partitions, so that groups of one shape share a specification."""

    members: Mapping[str, str]
    instances: tuple[str, ...]
    partitions: Mapping[str, int]
    generations: Mapping[int, int]

    @classmethod
    def of(cls, records: Sequence[GroupRecord], partitions: Sequence[str]) -> _Naming:
        members = {m.id: m.instance for record in records for m in record.members}
        names = {member: f"m{number}" for number, member in enumerate(sorted(members), 1)}
        shown: dict[str, str] = {_NONE: _NONE}
        for member in sorted(members):
            shown.setdefault(members[member], f"i{len(shown)}")
        real = sorted({0, *(record.generation for record in records)})
        generations, number = {}, 0
        for before, generation in zip((real[0], *real), real, strict=False):
            number += min(generation - before, _FAR)
            generations[generation] = number
        instances = tuple(shown[members[member]] for member in sorted(members))
        numbers = {partition: number for number, partition in enumerate(partitions)}
        return cls(names, instances, numbers, generations)

    def values(
        self,
        record: GroupRecord,
        state: str,
        generation: int,
        stored: GroupRecord | None = None,
    ) -> dict[str, Value]:
        """The group's variables with the content of a record; `stored` is what the log has."""
        content = self._content(record)
        log = self._content(stored or record)
        known = stored or record
        return {
            "groupState": state,
            "generation": self.generations.get(generation, generation),
            "protocolName": content["protocol"],
            "leader": content["leader"],
            "members": content["members"],
            "staticMembers": content["staticMembers"],
            "supported": content["supported"],
            "assignment": content["assignment"],
            "awaitingJoin": frozenset(),
            "awaitingSync": frozenset(),
            "groupRecord": make_function(
                {
                    "present": not known.tombstone,
                    "generation": self.generations[known.generation],
                    **log,
                }
            ),
        }

    def _content(self, record: GroupRecord) -> dict[Value, Value]:
        present = {member.id: member for member in record.members}
        protocol = record.protocol

        def each(of: Any) -> Value:
            return make_function(
                {
                    short: of(present[real]) if real in present else frozenset()
                    for real, short in self.members.items()
                }
            )

        shown = dict(zip(self.members, self.instances, strict=True))
        static: dict[Value, Value] = dict.fromkeys(self.instances, _NOBODY)
        for member in record.members:
            if member.instance != _NONE:
                static[shown[member.id]] = self.members[member.id]
        return {
            "protocol": protocol,
            "leader": self.members.get(record.leader, record.leader),
            "members": frozenset(self.members[member.id] for member in record.members),
            "staticMembers": make_function(static),
            "supported": each(lambda m: frozenset({protocol} if m.supports else ())),
            "assignment": each(
                lambda m: frozenset(self.partitions[p] for p in m.assigned if p in self.partitions)
            ),
        }


def _way(naming: _Naming, before: GroupRecord, after: GroupRecord) -> Iterator[dict[str, Value]]:
    """The states from one record to the next, by the shortest way that the protocol has.

    A group that is deleted becomes empty first, whether or not the cleaner has left the record.
    """
    numbers = naming.generations
    yield naming.values(before, before.state, before.generation)
    if after.tombstone and before.members:
        yield naming.values(before, "PreparingRebalance", before.generation)
        emptied = GroupRecord(
            after.offset, after.time, before.generation, before.protocol_type, _NONE, _NOBODY, ()
        )
        values = naming.values(emptied, "Empty", before.generation)
        yield values | {"generation": numbers[before.generation] + 1}
    elif not after.tombstone and after.generation > before.generation:
        current = numbers[before.generation]
        while current < numbers[after.generation]:
            held = naming.values(after, "PreparingRebalance", 0, before)
            yield held | {"generation": current}
            current += 1
            if current < numbers[after.generation] or after.members:
                held = naming.values(after, "CompletingRebalance", 0, before)
                yield held | {"generation": current}
    yield naming.values(after, after.state, after.generation)
