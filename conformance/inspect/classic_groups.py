"""Groups of the classic protocol, judged by spec/GroupMembership.tla.

A record is written when a generation is complete, when a group becomes empty, when a static member
is replaced, and as a tombstone. Between two records the shortest way of the classic protocol is
taken; the formulas judge every step of it. Where there is none, the step from one record to the
next is judged as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.inspect.formulas import state_of
from conformance.inspect.groups import (
    GroupLog,
    GroupRecordCopy,
    GroupRow,
    GroupTruths,
    JudgedGroup,
    Topics,
    member_constants,
)
from conformance.modelcheck.specifications import Specification
from conformance.tla import Spec, State, Value, make_function

_EAGER = frozenset({"range", "roundrobin", "sticky"})
"""Assignors that give every partition to somebody in every generation."""
_FAR = 3
"""Generations further apart are judged as if they were so far apart."""
_NOBODY, _NONE = "", "none"


@dataclass(frozen=True, slots=True)
class ClassicMember:
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
    members: tuple[ClassicMember, ...]
    tombstone: bool = False

    @property
    def state(self) -> str:
        """The group's state when the record was written (GroupMetadata's names)."""
        if self.tombstone:
            return "Dead"
        return "Stable" if self.members else "Empty"


@dataclass(slots=True)
class ClassicGroups:
    """Judges groups one after the other."""

    specification: Specification
    topics: Topics

    def judge(self, log: GroupLog) -> JudgedGroup:
        """A group with all that the formulas say of its records."""
        records = tuple(map(_record, log.records))
        formulas = (*self.specification.invariants, *self.specification.properties)
        case = _ClassicGroupCase(self, GroupTruths(log, _WORDS, dict.fromkeys(formulas)))
        for number, record in enumerate(records):
            case.judge_record(record)
            if number:
                case.judge_step(records[number - 1], record)
        return case.answers.judged(tuple(map(_row, records)))

    def spec(self, instances: tuple[str, ...], partitions: int) -> Spec:
        """Bound for members m1, m2, ... with these instance ids, and partitions 0, 1, ..."""
        return self.specification.bound(_constants(instances, partitions))


def _constants(instances: tuple[str, ...], partitions: int) -> dict[str, Value]:
    """Those that are the records'."""
    names = [f"m{number}" for number in range(1, len(instances) + 1)]
    return {
        **member_constants(instances, partitions),
        "MemberIds": tuple(make_function({"id": name, "member": name}) for name in names),
        "Protocols": frozenset({_NONE}),
        "MaxSize": len(names),
        "ProtocolsOf": make_function(dict.fromkeys(names, frozenset[Value]())),
    }


def _record(stored: GroupRecordCopy) -> GroupRecord:
    value = stored.value
    if value is None:
        return GroupRecord(stored.offset, stored.time, 0, "", _NONE, _NOBODY, (), tombstone=True)
    return GroupRecord(
        stored.offset,
        stored.time,
        value["generation"],
        value["protocolType"],
        value["protocol"] or _NONE,
        value["leader"] or _NOBODY,
        tuple(map(_member, value["members"])),
    )


def _member(value: Mapping[str, Any]) -> ClassicMember:
    subscription, assignment = value["subscription"], value["assignment"]
    topics, assigned = frozenset[str](), frozenset[str]()
    if isinstance(subscription, dict):
        topics = frozenset(subscription.get("topics", ()))  # bytes that are no subscription: none
    if isinstance(assignment, dict):
        assigned = frozenset(
            f"{part['topic']}-{number}"
            for part in assignment.get("assignedPartitions", ())
            for number in part["partitions"]
        )
    instance = value.get("groupInstanceId") or _NONE
    return ClassicMember(value["memberId"], instance, bool(subscription), topics, assigned)


def _row(record: GroupRecord) -> GroupRow:
    return GroupRow(
        record.offset,
        record.time,
        record.state,
        record.generation,
        record.protocol,
        record.leader,
        {member.id: member.assigned for member in record.members},
    )


@dataclass(slots=True)
class _ClassicGroupCase:
    """One group while it is judged."""

    groups: ClassicGroups
    answers: GroupTruths
    known_topics: set[str] = field(default_factory=set)

    def judge_record(self, record: GroupRecord) -> None:
        """What a record says of its generation."""
        partitions, why = self._partitions(record)
        for formula in self.groups.specification.invariants:
            if formula == "AssignmentIsComplete" and why:
                if why != "no members":
                    self.answers.unjudged(formula, f"{why} (offset {record.offset})")
                continue
            naming = _ClassicNaming.of((record,), partitions)
            spec = self.groups.spec(naming.instances, len(partitions))
            state = state_of(spec, naming.values(record, record.state, record.generation))
            self._ask(spec, formula, record, state)
        self.known_topics |= {p.rpartition("-")[0] for m in record.members for p in m.assigned}

    def judge_step(self, before: GroupRecord, after: GroupRecord) -> None:
        """The way from one record to the next."""
        naming = _ClassicNaming.of((before, after), ())
        spec = self.groups.spec(naming.instances, 0)
        states = [state_of(spec, values) for values in _way(naming, before, after)]
        for formula in self.groups.specification.properties:
            for pair, other in itertools.pairwise(states):
                if not self._ask(spec, formula, after, pair, other):
                    break

    def _ask(self, spec: Spec, formula: str, record: GroupRecord, *states: State) -> bool:
        report = (
            f"The record has generation {record.generation}, {len(record.members)} members "
            f"({', '.join(m.id for m in record.members)}), protocol {record.protocol}, leader "
            f"{record.leader or 'none'}."
        )
        offsets = (record.offset, record.offset + 1)
        return self.answers.ask(spec, formula, offsets, report, *states)

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
        wanted = assigned.union(
            *(self.groups.topics.known_since(topic, record.time) for topic in topics & known)
        )
        return tuple(sorted(wanted)), ""


_WORDS = {
    "MembersOfAGenerationAgreeOnProtocol": "A member has no subscription for the protocol.",
    "AssignmentIsComplete": "Some partitions are assigned to nobody, or to two members.",
    "LeaderIsMember": "The leader is no member.",
    "OneMemberPerInstance": "Two members have one group.instance.id.",
    "GenerationsNeverFall": "The generation fell: what was stored later is older.",
    "LegalTransitionsOnly": "No way of the protocol leads from the record before to this one.",
}


@dataclass(frozen=True, slots=True)
class _ClassicNaming:
    """Short names for members and partitions, so that groups of one shape share a specification."""

    members: Mapping[str, str]
    instances: tuple[str, ...]
    partitions: Mapping[str, int]
    generations: Mapping[int, int]

    @classmethod
    def of(cls, records: Sequence[GroupRecord], partitions: Sequence[str]) -> _ClassicNaming:
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


def _way(
    naming: _ClassicNaming, before: GroupRecord, after: GroupRecord
) -> Iterator[dict[str, Value]]:
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
            entries = naming.values(after, "PreparingRebalance", 0, before)
            yield entries | {"generation": current}
            current += 1
            if current < numbers[after.generation] or after.members:
                entries = naming.values(after, "CompletingRebalance", 0, before)
                yield entries | {"generation": current}
    yield naming.values(after, after.state, after.generation)
