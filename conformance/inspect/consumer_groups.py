"""Groups of the protocol of KIP-848, judged by spec/ConsumerGroup.tla.

The records are replayed as GroupMetadataManager does when it loads a partition. What a coordinator
makes of one request is in one batch, so the group is judged after each batch, and from one batch to
the next. In a part of the log that was compacted, values that were overwritten later are missing:
the group is judged from the end of that part on. Of the consumers nothing is stored: formulas about
what they own are not asked. Nor is the group's size limit, which is the coordinator's setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
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
from conformance.tla import Fn, Spec, State, Value, make_function

_STATES = {0: "Stable", 1: "UnrevokedPartitions", 2: "UnreleasedPartitions"}
"""org.apache.kafka.coordinator.group.modern.MemberState, by the specification's names."""
_MEMBER = {
    "memberState": "state",
    "memberEpoch": "epoch",
    "previousMemberEpoch": "previous",
    "assignedPartitions": "assigned",
    "partitionsPendingRevocation": "revoking",
    "subscribed": "reads",
    "serverAssignor": "assignor",
}
"""Variables that have a part of every member, and that part as the operator Member has it."""
_COMPLETE = frozenset({None, "", "uniform", "range"})
"""Assignors of the coordinator that give every partition to somebody; None: the default."""
_TARGET = "TargetIsComplete"
_DONE = "StableIsAssigned"
_NONE = "none"

Partitions = frozenset[str]


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """A ConsumerGroupCurrentMemberAssignmentValue."""

    epoch: int
    previous: int
    state: str
    assigned: Partitions
    revoking: Partitions


@dataclass(frozen=True, slots=True)
class Subscription:
    """What of a ConsumerGroupMemberMetadataValue bears on the assignment."""

    instance: str
    topics: frozenset[str]
    by_name: bool
    """Whether no regular expression and no assignor of the user's decides."""
    has_regex: bool


@dataclass(frozen=True, slots=True)
class ConsumerGroupState:
    """A group as its records leave it."""

    epoch: int | None = None
    """None: there is no such group."""
    assignment_epoch: int = 0
    targets: Mapping[str, Partitions] = field(default_factory=dict)
    members: Mapping[str, ConsumerGroupMember] = field(default_factory=dict)
    subscriptions: Mapping[str, Subscription] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """ConsumerGroup.ConsumerGroupState."""
        if self.epoch is None:
            return "Dead"
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(
            member.state == "Stable" and member.epoch == self.assignment_epoch
            for member in self.members.values()
        )
        return "Stable" if settled else "Reconciling"

    @property
    def has_regex(self) -> bool:
        """Whether a member subscribes to a regular expression."""
        return any(subscription.has_regex for subscription in self.subscriptions.values())

    def after(self, record: GroupRecordCopy, topics: Mapping[str, str]) -> ConsumerGroupState:
        """The group after a record; `topics` are names by ids."""
        value = record.value
        match record.type:
            case "ConsumerGroupMetadataKey":
                return replace(self, epoch=None if value is None else value["epoch"])
            case "ConsumerGroupTargetAssignmentMetadataKey":
                epoch = 0 if value is None else value["assignmentEpoch"]
                return replace(self, assignment_epoch=epoch)
            case "ConsumerGroupTargetAssignmentMemberKey":
                target = value and _partitions(value["topicPartitions"], topics)
                return replace(self, targets=_put(self.targets, record, target))
            case "ConsumerGroupCurrentMemberAssignmentKey":
                member = value and _member(value, topics)
                return replace(self, members=_put(self.members, record, member))
            case "ConsumerGroupMemberMetadataKey":
                known = value and _subscription(value)
                return replace(self, subscriptions=_put(self.subscriptions, record, known))
        return self  # partition metadata and regular expressions follow from the others


def _put(known: Mapping[str, Any], record: GroupRecordCopy, value: Any) -> dict[str, Any]:
    """With a member's value, or without it after a tombstone."""
    name = record.key["memberId"]
    kept = {member: member_value for member, member_value in known.items() if member != name}
    return kept if value is None else {**kept, name: value}


def _partitions(parts: list[Mapping[str, Any]], topics: Mapping[str, str]) -> Partitions:
    return frozenset(
        f"{topics.get(part['topicId'], part['topicId'])}-{number}"
        for part in parts
        for number in part["partitions"]
    )


def _member(value: Mapping[str, Any], topics: Mapping[str, str]) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        value["memberEpoch"],
        value["previousMemberEpoch"],
        _STATES.get(value["state"], f"state {value['state']}"),
        _partitions(value["assignedPartitions"], topics),
        _partitions(value["partitionsPendingRevocation"], topics),
    )


def _subscription(value: Mapping[str, Any]) -> Subscription:
    names = value["subscribedTopicNames"] or ()
    has_regex = bool(value.get("subscribedTopicRegex"))
    by_name = not has_regex and value["serverAssignor"] in _COMPLETE
    return Subscription(value["instanceId"] or _NONE, frozenset(names), by_name, has_regex)


@dataclass(frozen=True, slots=True)
class GroupMoment:
    """A group after a batch that changed it."""

    first: int
    last: int
    """Offsets of the batch's first and last record of the group."""
    time: int
    group: ConsumerGroupState


def replayed(log: GroupLog, topics: Mapping[str, str]) -> Iterator[GroupMoment]:
    """The group after each batch that has records of it."""
    group = ConsumerGroupState()
    for _, batch in groupby(log.records, key=lambda copy: copy.batch):
        records = list(batch)
        for record in records:
            group = group.after(record, topics)
        yield GroupMoment(records[0].offset, records[-1].offset, records[-1].time, group)
        if group.epoch is None:
            group = ConsumerGroupState()


@dataclass(slots=True)
class ConsumerGroups:
    """Judges groups one after the other."""

    specification: Specification
    topics: Topics
    cleaned: Mapping[tuple[str, int], int]
    """By broker and partition of __consumer_offsets the offset below which it was compacted."""

    def judge(self, log: GroupLog) -> JudgedGroup:
        """A group with all that the formulas say of its records."""
        moments = list(replayed(log, self.topics.names))
        formulas = (*self.specification.invariants, *self.specification.properties)
        case = _ConsumerGroupCase(self, GroupTruths(log, _WORDS, dict.fromkeys(formulas)))
        since = self.cleaned.get((log.broker, log.partition), 0)
        before: GroupMoment | None = None
        for number, moment in enumerate(moments):
            following = moments[number + 1].first if number + 1 < len(moments) else since
            if following >= since and moment.group.epoch is not None:
                case.judge_moment(moment)
                if before is not None:
                    case.judge_step(before, moment)
                before = moment
            else:
                before = None
        return case.answers.judged(tuple(map(_row, moments)))

    def spec(self, instances: tuple[str, ...], partitions: int) -> Spec:
        """Bound for members m1, m2, ... with these instance ids, and partitions 0, 1, ..."""
        return self.specification.bound(member_constants(instances, partitions))


def _row(moment: GroupMoment) -> GroupRow:
    group = moment.group
    return GroupRow(
        moment.last,
        moment.time,
        group.state,
        group.epoch or 0,
        "",
        "",
        {name: member.assigned for name, member in group.members.items()},
    )


@dataclass(slots=True)
class _ConsumerGroupCase:
    """One group while it is judged."""

    groups: ConsumerGroups
    answers: GroupTruths
    known_topics: set[str] = field(default_factory=set)

    def judge_moment(self, moment: GroupMoment) -> None:
        """What holds after a batch."""
        wanted, why = self._wanted(moment)
        naming = _ConsumerNaming.of((moment.group,), wanted)
        spec = self.groups.spec(naming.instances, len(naming.partitions))
        state = state_of(spec, naming.values(spec, moment.group))
        for formula in self.groups.specification.invariants:
            if formula != _DONE or not moment.group.has_regex:
                self._ask(spec, formula, moment, state)
        if moment.group.has_regex:
            self.answers.unjudged(
                f"that who is done has its target (offset {moment.last})",
                "a member has nothing until its regular expression is resolved",
            )
        if why:
            self.answers.unjudged(
                f"that the target has every partition (offset {moment.last})", why
            )

    def judge_step(self, before: GroupMoment, after: GroupMoment) -> None:
        """What holds from one batch to the next."""
        naming = _ConsumerNaming.of((before.group, after.group), ())
        spec = self.groups.spec(naming.instances, 0)
        states = [state_of(spec, naming.values(spec, moment.group)) for moment in (before, after)]
        for formula in self.groups.specification.properties:
            self._ask(spec, formula, after, *states)

    def _ask(self, spec: Spec, formula: str, moment: GroupMoment, *states: State) -> None:
        group = moment.group
        members = "; ".join(
            f"{name} in epoch {member.epoch}, {member.state}, has {_words(member.assigned)}"
            + (f", gives back {_words(member.revoking)}" if member.revoking else "")
            for name, member in sorted(group.members.items())
        )
        report = (
            f"After the batch the group has epoch {group.epoch}, its target assignment is of epoch "
            f"{group.assignment_epoch}. Members: {members or 'none'}."
        )
        self.answers.ask(spec, formula, (moment.first, moment.last + 1), report, *states)

    def _wanted(self, moment: GroupMoment) -> tuple[tuple[str, ...], str]:
        """The partitions that the target must have; or those that it has, and why no more is known.

        A coordinator learns of topics as the metadata log tells it: the group's epoch grows then.
        """
        group = moment.group
        given = Partitions().union(*group.targets.values())
        subscriptions = group.subscriptions.values()
        self.known_topics |= {partition.rpartition("-")[0] for partition in given}
        if group.epoch != group.assignment_epoch or not group.members:
            return tuple(sorted(given)), ""
        if not all(subscription.by_name for subscription in subscriptions):
            why = "a regular expression or an assignor of the user's decides"
            return tuple(sorted(given)), why
        topics = (
            frozenset[str]().union(*(subscription.topics for subscription in subscriptions))
            & self.known_topics
        )
        known = (self.groups.topics.known_since(topic, moment.time) for topic in topics)
        return tuple(sorted(given.union(*known))), ""


def _words(partitions: Partitions) -> str:
    return ", ".join(sorted(partitions)) or "nothing"


_WORDS = {
    "HeldByOneMember": "Two members hold one partition.",
    "RevokedIsNotAssigned": "A member shall give a partition back that is assigned to it.",
    _TARGET: "In the target assignment partitions are nobody's, or two members'.",
    "StableIsAssigned": "A member that is done has not what the target assignment gives it.",
    "EpochsInOrder": "A member is ahead of the target assignment, or that is ahead of the group.",
    "OneMemberPerInstance": "Two members have one group.instance.id.",
    "EpochsNeverFall": "An epoch fell: what was stored later is older.",
}


@dataclass(frozen=True, slots=True)
class _ConsumerNaming:
    """Short names for members and partitions, so that groups of one shape share a specification.

    All partitions are of one topic, which every member reads.
    """

    members: Mapping[str, str]
    instances: tuple[str, ...]
    partitions: Mapping[str, int]
    hashed: frozenset[Value]
    """The partitions that the target must have: of these the group's hash is made."""

    @classmethod
    def of(cls, groups: tuple[ConsumerGroupState, ...], wanted: tuple[str, ...]) -> _ConsumerNaming:
        """Partitions that the target must have come first."""
        known = {
            name: subscription
            for group in groups
            for name, subscription in group.subscriptions.items()
        }
        names = sorted({name for group in groups for name in (*group.members, *group.targets)})
        shown = {_NONE: _NONE}
        for name in names:
            if name in known:
                shown.setdefault(known[name].instance, f"i{len(shown)}")
        instances = (shown[known[name].instance] if name in known else _NONE for name in names)
        further = {p for group in groups for p in _mentioned(group)} - {*wanted}
        numbers = {partition: n for n, partition in enumerate((*wanted, *sorted(further)))}
        members = {name: f"m{number}" for number, name in enumerate(names, 1)}
        return cls(members, tuple(instances), numbers, frozenset(range(len(wanted))))

    def values(self, spec: Spec, group: ConsumerGroupState) -> dict[str, Value]:
        """The coordinator's variables."""
        absent, topics, names = map(spec.value, ("NoMember", "Topics", "Names"))
        assert isinstance(absent, Fn), "a record"
        assert isinstance(topics, Fn), "a function"
        targets: dict[Value, Value] = {
            short: self._numbers(group.targets.get(name, Partitions()))
            for name, short in self.members.items()
        }
        members = {
            short: {**absent, **self._member(group.members[name]), "reads": names}
            if name in group.members
            else absent
            for name, short in self.members.items()
        }
        return {
            "groupEpoch": group.epoch or 0,
            "assignmentEpoch": group.assignment_epoch,
            "target": make_function(targets),
            "hashed": self.hashed,
            "topics": make_function(dict.fromkeys(topics, len(self.partitions))),
            "resolved": make_function({}),
            **{
                variable: make_function({short: member[part] for short, member in members.items()})
                for variable, part in _MEMBER.items()
            },
        }

    def _member(self, member: ConsumerGroupMember) -> Mapping[Value, Value]:
        return {
            "state": member.state,
            "epoch": member.epoch,
            "previous": member.previous,
            "assigned": self._numbers(member.assigned),
            "revoking": self._numbers(member.revoking),
        }

    def _numbers(self, partitions: Partitions) -> frozenset[Value]:
        return frozenset(self.partitions[partition] for partition in partitions)


def _mentioned(group: ConsumerGroupState) -> Iterator[str]:
    for target in group.targets.values():
        yield from target
    for member in group.members.values():
        yield from (*member.assigned, *member.revoking)
