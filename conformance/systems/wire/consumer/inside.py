"""A coordinator of KIP-848 that is seen from inside, whatever runs it: ConsumerGroup.tla's steps.

The members are ours. Each request is answered in its step, so every variable is seen after every
step. Where the specification leaves the target assignment open, the harness chooses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from conformance.systems.protocol import ActionRefused, Observation, SystemFailed
from conformance.systems.wire.consumer.inner_steps import INNER_STEPS
from conformance.systems.wire.consumer.member import (
    NO_EPOCH,
    REQUESTS,
    Commit,
    CommitAnswer,
    ConsumerProcess,
    Heartbeat,
    HeartbeatAnswer,
    WireMember,
    is_of_a_member,
    step_of_member,
)
from conformance.systems.wire.consumer.observation import member_values
from conformance.systems.wire.consumer.reach import (
    NO_ASSIGNOR,
    TOPIC_CHANGES,
    ConsumerSettings,
    HearOfTopic,
    TopicSizes,
)
from conformance.systems.wire.consumer.regexes import (
    REGEX_VARIABLES,
    Resolved,
    resolved_value,
)
from conformance.tla import Action, Fn, Value

_NOTHING: frozenset[int] = frozenset()
_STATES: Mapping[str, str] = MappingProxyType(
    {
        "STABLE": "Stable",
        "UNREVOKED_PARTITIONS": "UnrevokedPartitions",
        "UNRELEASED_PARTITIONS": "UnreleasedPartitions",
    }
)
"""MemberState, by Kafka's name."""


class MemberInside(NamedTuple):
    """A member as the coordinator has it: a row of numbers and sets of partitions."""

    state: str = "None"
    """Kafka's name."""
    epoch: int = NO_EPOCH
    previous_epoch: int = NO_EPOCH
    assigned: frozenset[int] = _NOTHING
    pending_revocation: frozenset[int] = _NOTHING
    described: frozenset[int] = _NOTHING
    target: frozenset[int] = _NOTHING
    reads: frozenset[str] = frozenset()
    assignor: str = NO_ASSIGNOR
    """What it names."""
    kept: frozenset[int] = _NOTHING
    """Of its commit that is under way, what was its own in the commit's epoch already."""


class GroupInside(NamedTuple):
    """The group as the coordinator has it; the members by name, who is there."""

    epoch: int = 0
    assignment_epoch: int = 0
    members: tuple[tuple[str, MemberInside], ...] = ()
    resolved: Resolved = ()
    resolution: str = "None"
    """Of its regular expressions: "None", "Scheduled", "Run"."""
    preferred: str = NO_ASSIGNOR
    """What ConsumerGroupDescribe shows; none of a group without members."""
    assigned_by: str = NO_ASSIGNOR
    """Who made the target."""
    interval_runs: bool = False
    """Whether the target is too new for another one."""


OF_MEMBER: Mapping[str, Callable[[MemberInside], Value]] = MappingProxyType(
    {
        "target": lambda member: _values(member.target),
        "memberState": lambda member: _STATES.get(member.state, member.state),
        "memberEpoch": lambda member: member.epoch,
        "previousMemberEpoch": lambda member: member.previous_epoch,
        "assignedPartitions": lambda member: _values(member.assigned),
        "partitionsPendingRevocation": lambda member: _values(member.pending_revocation),
        "subscribed": lambda member: frozenset(member.reads),
        "described": lambda member: _values(member.described),
        "serverAssignor": lambda member: member.assignor,
        "keptSince": lambda member: _values(member.kept),
    }
)
"""The specification's variables that are functions of the members, seen inside."""


VARIABLES = (
    "groupEpoch",
    "assignmentEpoch",
    "topics",
    *OF_MEMBER,
    "preferred",
    "assignedBy",
    "intervalRuns",
    "consumer",
    "channel",
    "commit",
)
"""All that is seen inside. What a hash is made of and whether it is to be made again are not."""


class CoordinatorInside(ABC):
    """One coordinator, and the members of one group."""

    of_member: Mapping[str, Callable[[MemberInside], Value]] = OF_MEMBER
    """What of it is observed."""
    variables: tuple[str, ...] = VARIABLES
    """All that is observed; of a group with regular expressions more."""

    def __init__(self, settings: ConsumerSettings, hear_of_topic: HearOfTopic) -> None:
        self._settings = settings
        self._hear_of_topic = hear_of_topic
        self.members: dict[str, ConsumerProcess] = {}
        """The consumers, by name."""
        self._commits = 0
        self._sizes = TopicSizes(settings.topics)
        self._known: dict[object, Observation] = {}
        if settings.regexes:
            self.variables = (*self.variables, *REGEX_VARIABLES)

    # ---- what runs the coordinator decides -------------------------------------------------

    @abstractmethod
    def _heartbeat(self, member: ConsumerProcess, sent: Heartbeat) -> HeartbeatAnswer:
        """Let the coordinator answer a heartbeat."""

    @abstractmethod
    def _commit(self, member: ConsumerProcess, sent: Commit, offset: int) -> CommitAnswer:
        """Let it answer a commit of this offset of each partition."""

    @abstractmethod
    def _go_on(self, step: str, member: ConsumerProcess | None) -> None:
        """Take one of `INNER_STEPS`, or let a timer of the member run out.

        ActionRefused if there is no such step, nothing to be run or written, or no such timer.
        """

    @abstractmethod
    def _choose(self, target: Mapping[str, frozenset[int]] | None) -> None:
        """What the assignor is to give; None: what it would give."""

    @abstractmethod
    def _group(self) -> GroupInside:
        """The group now."""

    # ---- SystemUnderTest, Choosing ---------------------------------------------------------

    def _begin(self) -> None:
        """New members, who have not joined."""
        self.members = {
            name: self._new_member(name, instance)
            for name, instance in self._settings.instances.items()
        }
        self._commits = 0
        self._sizes = TopicSizes(self._settings.topics)

    def _new_member(self, name: str, instance: str | None) -> ConsumerProcess:
        """A consumer of ours; what runs the coordinator may have others."""
        names = self._settings.names_while_reconciling
        reads = self._settings.reads[name]
        assignor = self._settings.named_assignors[name]
        return WireMember(name, instance, reads, names_while_reconciling=names, assignor=assignor)

    def choose(self, wanted: Mapping[str, Value]) -> None:
        """The target that the next heartbeat is to lead to, if it leads to a new one."""
        target = wanted["target"]
        assert isinstance(target, Fn), "a function of the members"
        self._choose({str(name): _numbers(given) for name, given in target.items()})

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the coordinator or a member cannot."""
        name = action.name
        if name in TOPIC_CHANGES:
            self._hear_of_topic(*self._sizes.change(action))
            return
        if name in INNER_STEPS:
            self._go_on(name, None)
            return
        member = self.members[str(action.args[0])]
        if is_of_a_member(action):
            step_of_member(member, action)
        elif name in REQUESTS:
            self._handle_heartbeat(member)
        elif name == "HandleCommit":
            self._handle_commit(member)
        else:
            self._go_on(name, member)
        self._choose(None)

    def _handle_heartbeat(self, member: ConsumerProcess) -> None:
        sent = member.channel
        if not isinstance(sent, Heartbeat):
            raise ActionRefused(f"no request of {member.name} is under way")
        member.channel = self._heartbeat(member, sent)

    def _handle_commit(self, member: ConsumerProcess) -> None:
        """What is committed is this commit's number, so that the offsets tell which it was."""
        sent = member.commit
        if not isinstance(sent, Commit):
            raise ActionRefused(f"no commit of {member.name} is under way")
        self._commits += 1
        member.commit = self._commit(member, sent, self._commits)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now; the same object for the same."""
        members = tuple(self.members.values())
        group = self._group()
        state = (
            group,
            self._sizes.value,
            *((member.consumer, member.channel, member.commit) for member in members),
        )
        known = self._known.get(state)
        if known is None:
            values = {
                **_group_values(group, self.of_member, self.members),
                **_regex_values(group, self._settings.regexes),
                "topics": self._sizes.value,
                **member_values(members),
            }
            known = self._known[state] = Observation(values)
        return known


def _regex_values(group: GroupInside, regexes: Collection[str]) -> dict[str, Value]:
    if not regexes:
        return {}
    return {"resolved": resolved_value(regexes, group.resolved), "resolution": group.resolution}


def _group_values(
    group: GroupInside,
    of_member: Mapping[str, Callable[[MemberInside], Value]],
    names: Collection[str],
) -> dict[str, Value]:
    """The group's variables. SystemFailed if it has a member that nobody sent."""
    present = dict(group.members)
    if strangers := sorted({*present} - {*names}):
        raise SystemFailed(f"The group has members that nobody sent: {strangers}")
    nobody = MemberInside()
    of_members = {
        variable: Fn({name: value(present.get(name, nobody)) for name in names})
        for variable, value in of_member.items()
    }
    return {
        "groupEpoch": group.epoch,
        "assignmentEpoch": group.assignment_epoch,
        "preferred": group.preferred,
        "assignedBy": group.assigned_by,
        "intervalRuns": group.interval_runs,
        **of_members,
    }


def _numbers(value: Value) -> frozenset[int]:
    assert isinstance(value, frozenset), "partitions are numbers"
    return frozenset(number for number in value if isinstance(number, int))


def _values(partitions: Iterable[int]) -> frozenset[Value]:
    return frozenset(partitions)
