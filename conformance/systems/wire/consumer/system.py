"""Drives any broker's coordinator of KIP-848's consumer groups along ConsumerGroup.tla's actions.

The members are ours. Where the specification lets the coordinator handle a heartbeat, it goes out
and is answered at once; what ConsumerGroupDescribe shows afterwards is compared, and what the
members know. The target assignment is the coordinator's choice, which is followed.
"""

from __future__ import annotations

import itertools
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.tolerance import Tolerance
from conformance.systems.wire.address import Address
from conformance.systems.wire.admin import OFFSETS_TOPIC, delete_group, delete_topic, make_topic
from conformance.systems.wire.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_EPOCH,
    Commit,
    CommitAnswer,
    ConsumerState,
    Heartbeat,
    HeartbeatAnswer,
    WireMember,
)
from conformance.systems.wire.consumer.requests import (
    REBALANCE_MS,
    DescribedMember,
    Description,
    MemberGroup,
    NotCoordinator,
    commit,
    describe,
    heartbeat,
)
from conformance.systems.wire.consumer.settings import forget, interval_of, sessions_at
from conformance.systems.wire.consumer.timers import EXPIRIES, REBALANCE, ConsumerTimers, foresight
from conformance.systems.wire.leadership import Leaders
from conformance.systems.wire.pace import LONGEST_PAUSE, Pace
from conformance.systems.wire.port import COORDINATOR_SECONDS, Port, Ports
from conformance.systems.wire.security import Security
from conformance.tla import Action, Fn, Value

SPECIFICATION = "ConsumerGroup"
"""The root module that says what the actions are."""
_NEEDED: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "consumer_group_heartbeat": ("ConsumerGroupHeartbeat", 1),  # members choose ids (KIP-1082)
        "consumer_group_describe": ("ConsumerGroupDescribe", 0),
        "offset_commit": ("OffsetCommit", 9),  # has the member epoch
        "offset_fetch": ("OffsetFetch", 1),
        "create_topics": ("CreateTopics", 7),  # answers with the topic's id
        "metadata": ("Metadata", 1),
    }
)
"""Without these requests, of at least these versions, a broker cannot be driven."""
_SESSION_MS = 45_000
"""Of members that are not to expire: Kafka's own."""
_TELLING_SECONDS = 5.0
"""A coordinator hears of a setting within milliseconds; a busy machine takes longer."""
_NO_INSTANCE = "none"

OF_A_MEMBER: Mapping[str, Callable[[WireMember], None]] = MappingProxyType(
    {
        "Join": WireMember.join,
        "SendHeartbeat": WireMember.send_heartbeat,
        "Revoke": WireMember.revoke,
        "Assign": WireMember.assign,
        "Abandon": WireMember.abandon,
        "Leave": WireMember.leave,
        "ReceiveAnswer": WireMember.receive_answer,
        "LoseMessage": WireMember.lose_message,
        "SendCommit": WireMember.send_commit,
        "ReceiveCommit": WireMember.receive_commit,
        "LoseCommit": WireMember.lose_commit,
    }
)
"""Steps that leave the coordinator as it was."""
_REQUESTS = frozenset({"HandleHeartbeat", "RefuseHeartbeat", "HandleLeave", "HandleStaticLeave"})


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """A model's constants; `instances` by member, None for a dynamic one."""

    instances: Mapping[str, str | None]
    partitions: int
    names_while_reconciling: bool


def settings_of(constants: Mapping[str, Value]) -> ConsumerSettings:
    """Read a model's constants."""
    instances, partitions = constants["InstanceOf"], constants["Partitions"]
    if not isinstance(instances, Fn) or partitions != frozenset(range(len(_set(partitions)))):
        raise UserError("A model of ConsumerGroup has named members, and partitions from 0 on.")
    return ConsumerSettings(
        {
            str(member): None if instance == _NO_INSTANCE else str(instance)
            for member, instance in sorted(instances.items(), key=lambda pair: str(pair[0]))
        },
        len(_set(partitions)),
        constants["NamesWhileReconciling"] is True,
    )


def _set(value: Value) -> frozenset[Value]:
    return value if isinstance(value, frozenset) else frozenset()


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What a member was told to keep, and when (monotonic, s) it had asked."""

    given: frozenset[int]
    asked: float


class WireConsumerSystem:
    """One group of a broker at a time; a new one for each test."""

    variables = (
        "groupEpoch",
        "assignmentEpoch",
        "target",
        "memberEpoch",
        "described",
        "consumer",
        "channel",
        "commit",
    )

    def __init__(
        self, settings: ConsumerSettings, address: Address, security: Security, tolerance: Tolerance
    ) -> None:
        self.tolerance = tolerance
        self._settings = settings
        self._address = address
        self._ports = Ports(address, security)
        self._entry = self._ports.at(address.host, address.port)
        if reason := lacking(self._entry):
            raise UserError(
                f"The broker at {address} cannot be driven by {SPECIFICATION}: {reason}."
            )
        self._sessions = sessions_at(str(address))
        self._altered: list[str] = []
        """The groups whose settings were changed."""
        self._run = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)
        self._foresight = ConsumerTimers()
        self._members: dict[str, WireMember] = {}
        self._topic = f"kconform-{os.getpid()}-{self._run}"
        topic_id = make_topic(self._entry, self._topic, settings.partitions)
        assert topic_id is not None, "CreateTopics is among what was demanded"
        self._group = MemberGroup("", self._topic, topic_id)
        self._coordinator = self._entry
        self._leaders = Leaders(self._entry, OFFSETS_TOPIC)
        self._await_topic()
        self._interval_is_told = bool(address.session) and self._sessions.answers_tell(
            self._tells_interval
        )
        self._pace = Pace(address)
        self._running_out: dict[str, float] = {}
        self._reconciling: dict[str, Reconciliation] = {}
        self._mistimed = ""

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A group id that nobody has used, new members; what was before is left behind."""
        self._leave_behind()
        self._group = replace(self._group, group_id=f"kconform-{self._run}-{next(self._numbers)}")
        self._described: Description | None = self._find_coordinator()
        self._leaders.look(again=False)
        names = self._settings.names_while_reconciling
        self._members = {
            name: WireMember(name, instance, names_while_reconciling=names)
            for name, instance in self._settings.instances.items()
        }
        self._before_first: int | None = None
        self._step, self._commits = -1, 0
        self._session, self._session_used = _SESSION_MS, False
        self._running_out, self._reconciling, self._mistimed = {}, {}, ""
        self._pace.begin()
        self._coordinator.slowest = 0.0

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        self._step += 1
        self._pace.step()
        member = self._members[str(action.args[0])]
        if action.name in OF_A_MEMBER:
            OF_A_MEMBER[action.name](member)
        elif action.name in _REQUESTS:
            self._ask(member)
        elif action.name == "HandleCommit":
            self._commit(member)
        elif action.name in EXPIRIES:
            self._wait_for(action.name, member)
        else:
            raise ActionRefused(f"{action.name} cannot be brought about through a port")
        self._pace.window = self._pace.patience

    def observe(self) -> Mapping[str, Value]:
        """What can be seen now; what nothing can have changed is not asked for again."""
        if self._described is None:
            self._described = describe(self._coordinator, self._group)
            self._pace.seen_at = time.monotonic()
        return {**self._of_group(self._described), **self._of_members()}

    def foresee(self, actions: Sequence[Action]) -> str:
        """Which timers the next test lets expire."""
        self._foresight = foresight(actions, self._address)
        return ""

    # ---- Patient, Closeable ----------------------------------------------------------------

    @property
    def lanes(self) -> int:
        """Groups side by side."""
        return self._address.groups

    def be_alone(self) -> None:
        """Look for longer: nobody waits for this test to end."""
        self._pace.be_alone()

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again: an answer comes after its effect, so only
        timers are waited for."""
        return self._pace.patience

    def look_again(self, seconds: float) -> Mapping[str, Value]:
        """Observe after a moment: a timer shows in ConsumerGroupDescribe only."""
        time.sleep(min(seconds, LONGEST_PAUSE))
        self._described = None
        return self.observe()

    def close(self) -> None:
        """Delete what was made, and close the connections.

        A broker that fails even at that has been told of already, by the test before.
        """
        try:
            with suppress(SystemFailed):
                self._leave_behind()
                forget(self._entry, self._altered)
                delete_topic(self._entry, self._topic)
        finally:
            for port in self._ports:
                port.close()

    # ---- the coordinator -------------------------------------------------------------------

    def _await_topic(self) -> None:
        """Wait until coordinators assign the topic's partitions: they hear of it by themselves."""
        until = time.monotonic() + COORDINATOR_SECONDS
        for number in itertools.count(1):
            self._group = replace(self._group, group_id=f"kconform-{self._run}-probe-{number}")
            self._find_coordinator()
            join = Heartbeat(JOIN_EPOCH, frozenset())
            answer = heartbeat(self._coordinator, self._group, "probe", None, join)
            leave = Heartbeat(LEAVE_EPOCH)
            heartbeat(self._coordinator, self._group, "probe", None, leave)
            delete_group(self._coordinator, self._group.group_id)
            if answer.given == frozenset(range(self._settings.partitions)):
                return
            if time.monotonic() > until:
                raise SystemFailed(
                    f"A consumer that joins alone is given {answer}, and not all of its topic"
                )
            time.sleep(0.05)

    def _tells_interval(self) -> bool:
        """Whether the coordinator's answers follow a group's own heartbeat interval. Kafka's do, so
        they tell when it has heard of a setting; others are taken to use what they show."""
        self._group = replace(self._group, group_id=f"kconform-{self._run}-probe-interval")
        self._find_coordinator()
        self._altered.append(self._group.group_id)
        self._sessions.set(self._coordinator, self._group.group_id, _SESSION_MS)
        sent, until = Heartbeat(JOIN_EPOCH, frozenset()), time.monotonic() + _TELLING_SECONDS
        while True:
            answer = heartbeat(self._coordinator, self._group, "probe", None, sent)
            is_shown = answer.interval_ms == interval_of(_SESSION_MS)
            if is_shown or time.monotonic() > until:
                break
            sent = Heartbeat(answer.epoch)
            time.sleep(0.05)
        heartbeat(self._coordinator, self._group, "probe", None, Heartbeat(LEAVE_EPOCH))
        delete_group(self._coordinator, self._group.group_id)
        return is_shown

    def _find_coordinator(self) -> Description:
        """The group as its coordinator knows it, once there is one that has loaded its part of the
        offsets topic: the first group of all makes a broker create that."""
        until = time.monotonic() + COORDINATOR_SECONDS
        while True:
            self._coordinator = self._ports.at(*self._entry.find_coordinator(self._group.group_id))
            try:
                return describe(self._coordinator, self._group)
            except NotCoordinator:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def _id(self, member: WireMember) -> str:
        """Members are sorted by it, as their names are."""
        return f"{member.name}-{self._run}"

    def _ask(self, member: WireMember) -> None:
        sent = member.channel
        if not isinstance(sent, Heartbeat):
            raise ActionRefused(f"no request of {member.name} is under way")
        length = self._foresight.sessions.get(self._step, 0)
        self._use_session(length or _SESSION_MS)
        rebalance = self._foresight.rebalances.get(member.name, REBALANCE_MS)
        theirs = replace(sent, epoch=self._their_epoch(sent.epoch))
        asked = time.monotonic()  # its timers begin later
        answer = heartbeat(
            self._coordinator, self._group, self._id(member), member.instance, theirs, rebalance
        )
        self._described = describe(self._coordinator, self._group)
        self._pace.seen_at = time.monotonic()
        self._count_epochs(self._described)
        is_shown = answer.interval_ms in (0, interval_of(self._session))
        if self._session_used and self._interval_is_told and not is_shown:
            self._mistimed = "the coordinator had not heard of the group's session timeout yet"
        member.channel = replace(answer, epoch=self._our_epoch(answer.epoch))
        self._running_out.pop(member.name, None)
        if length:
            self._running_out[member.name] = asked + length / 1000
        self._note_reconciling(member, answer, asked)

    def _commit(self, member: WireMember) -> None:
        """What is committed is this commit's number, so that OffsetFetch tells which it was."""
        sent = member.commit
        if not isinstance(sent, Commit):
            raise ActionRefused(f"no commit of {member.name} is under way")
        self._commits += 1
        theirs = replace(sent, epoch=self._their_epoch(sent.epoch))
        id = self._id(member)
        member.commit = commit(
            self._coordinator, self._group, id, member.instance, theirs, self._commits
        )

    def _note_reconciling(self, member: WireMember, answer: HeartbeatAnswer, asked: float) -> None:
        """Who is told to give partitions up has its rebalance timeout for it, from then on."""
        before = self._reconciling.get(member.name)
        if answer.epoch <= LEAVE_EPOCH:
            self._reconciling.pop(member.name, None)
        if answer.given is None or (before is not None and before.given == answer.given):
            return
        self._reconciling.pop(member.name, None)
        if member.consumer.owned - answer.given:
            self._reconciling[member.name] = Reconciliation(answer.given, asked)

    def _count_epochs(self, group: Description) -> None:
        """A new group's first epoch is the specification's 1: Kafka has begun with 1, and begins
        with 2 since the field of a new group holds 1 (ModernGroup, seen in 4.4.0)."""
        if self._before_first is None and group.members is not None:
            self._before_first = group.group_epoch - 1

    def _our_epoch(self, theirs: int) -> int:
        return theirs - (self._before_first or 0) if theirs > 0 else theirs

    def _their_epoch(self, ours: int) -> int:
        return ours + (self._before_first or 0) if ours > 0 else ours

    def _use_session(self, milliseconds: int) -> None:
        if milliseconds == self._session:
            return
        if not self._session_used:
            self._altered.append(self._group.group_id)
        self._sessions.set(self._coordinator, self._group.group_id, milliseconds)
        self._session, self._session_used = milliseconds, True

    def _wait_for(self, timer: str, member: WireMember) -> None:
        """It runs out by itself; ConsumerGroupDescribe shows the member go."""
        self._described = None
        reconciling = self._reconciling.pop(member.name, None)
        over = self._running_out.pop(member.name, time.monotonic())
        if timer == REBALANCE and reconciling is not None:
            over = reconciling.asked + self._address.rebalance / 1000
        time.sleep(max(over - time.monotonic(), 0.0))
        self._pace.wait_for(0)

    @property
    def late(self) -> str:
        """Which timer may be over although the path has not come to it, or why too little time was
        left for what was looked for."""
        return (
            self._mistimed
            or self._timer_over()
            or self._pace.slow(self._coordinator.slowest)
            or self._leaders.changed()
        )

    def _timer_over(self) -> str:
        for name, over in self._running_out.items():
            if self._pace.seen_at > over:
                return f"the session of {name} was over"
        for name, timeout in self._foresight.rebalances.items():
            since = self._reconciling.get(name)
            if since is not None and (self._pace.seen_at - since.asked) * 1000 > timeout:
                return f"the rebalance timeout of {name} was over"
        return ""

    def _leave_behind(self) -> None:
        """Let all members of the last group leave, so that it can be deleted."""
        if not self._members:
            return
        names = {self._id(member): member for member in self._members.values()}
        group = describe(self._coordinator, self._group)
        for id in group.members or ():
            instance = names[id].instance if id in names else None
            heartbeat(self._coordinator, self._group, id, instance, Heartbeat(LEAVE_EPOCH))
        if group.members is not None:
            delete_group(self._coordinator, self._group.group_id)
        self._members = {}

    # ---- values ----------------------------------------------------------------------------

    def _of_group(self, group: Description) -> dict[str, Value]:
        members = group.members or {}
        known = {self._id(member): name for name, member in self._members.items()}
        strangers = sorted({*members} - {*known})
        if strangers:
            raise SystemFailed(f"ConsumerGroupDescribe shows members that nobody sent: {strangers}")
        shown = {known[id]: member for id, member in members.items()}
        return {
            "groupEpoch": self._our_epoch(group.group_epoch),
            "assignmentEpoch": self._our_epoch(group.assignment_epoch),
            "target": self._by_member(shown, lambda member: member.target, frozenset()),
            "memberEpoch": self._by_member(
                shown, lambda member: self._our_epoch(member.epoch), NO_EPOCH
            ),
            "described": self._by_member(shown, lambda member: member.assigned, frozenset()),
        }

    def _by_member(
        self,
        shown: Mapping[str, DescribedMember],
        value: Callable[[DescribedMember], Value],
        nothing: Value,
    ) -> Fn:
        return Fn(
            {name: value(shown[name]) if name in shown else nothing for name in self._members}
        )

    def _of_members(self) -> dict[str, Value]:
        members = self._members.values()
        return {
            "consumer": Fn({member.name: consumer_value(member.consumer) for member in members}),
            "channel": Fn({member.name: message_value(member.channel) for member in members}),
            "commit": Fn({member.name: commit_value(member.commit) for member in members}),
        }


def consumer_value(consumer: ConsumerState) -> Fn:
    """As the specification's `consumer[m]`."""
    return Fn(
        {
            "state": consumer.state,
            "epoch": consumer.epoch,
            "given": _values(consumer.given),
            "owned": _values(consumer.owned),
            "local": _values(consumer.local),
            "named": consumer.named,
        }
    )


def message_value(message: Heartbeat | HeartbeatAnswer | None) -> Fn:
    """As the specification's `channel[m]`."""
    fields: dict[Value, Value] = {
        "type": "None",
        "epoch": NO_EPOCH,
        "named": False,
        "owned": frozenset(),
        "error": "NONE",
        "told": False,
        "given": frozenset(),
    }
    match message:
        case Heartbeat(epoch, owned):
            fields |= {"type": "Request", "epoch": epoch, "named": owned is not None}
            fields["owned"] = _values(owned or ())
        case HeartbeatAnswer(error, epoch, given):
            fields |= {"type": "Answer", "epoch": epoch, "error": error, "told": given is not None}
            fields["given"] = _values(given or ())
    return Fn(fields)


def commit_value(commit: Commit | CommitAnswer | None) -> Fn:
    """As the specification's `commit[m]`."""
    fields: dict[Value, Value] = {
        "type": "None",
        "epoch": NO_EPOCH,
        "partitions": frozenset(),
        "error": "NONE",
    }
    match commit:
        case Commit(epoch, partitions):
            fields |= {"type": "Request", "epoch": epoch, "partitions": _values(partitions)}
        case CommitAnswer(step, error):
            fields |= {"type": "Answer", "partitions": _values(step), "error": error}
    return Fn(fields)


def _values(partitions: Iterable[int]) -> frozenset[Value]:
    return frozenset(partitions)


def lacking(port: Port) -> str:
    """Why a broker's KIP-848 groups cannot be driven; empty if they can."""
    for api, (name, oldest) in _NEEDED.items():
        if port.versions[api] < oldest:
            return f"it needs {name} {oldest}, which the broker does not offer"
    return ""


# ---- what is reached --------------------------------------------------------------------------


def passes(state: Mapping[str, Value]) -> str:
    """Why no group comes into this state whose members ask for the range assignor: it gives each
    member a range, in the order of their names, nobody a larger one than those before him. Who has
    gone has left a gap."""
    target = state["target"]
    assert isinstance(target, Fn), "a function of the members"
    named = sorted((str(name), _set(given)) for name, given in target.items())
    parts = [sorted(map(_number, given)) for _, given in named if given]
    ordered = all(before[-1] < after[0] for before, after in itertools.pairwise(parts))
    even = all(len(before) >= len(after) for before, after in itertools.pairwise(parts))
    if ordered and even:
        return ""
    return "the range assignor, for which the members ask, gives another target"


def _number(value: Value) -> int:
    assert isinstance(value, int), "partitions are numbers"
    return value
