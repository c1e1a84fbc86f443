"""MixedGroup.tla's steps on a coordinator, whatever runs it. The consumers are ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from conformance.systems.protocol import ActionRefused, Observation, SystemFailed
from conformance.systems.shared.mixed.client import NO_ERROR, MixedClient
from conformance.systems.shared.mixed.coordinator import (
    HeartbeatOf848,
    MixedAnswer,
    MixedCoordinator,
    MixedMember,
    MixedView,
)
from conformance.systems.shared.mixed.settings import MixedSettings, Partitions
from conformance.tla import Action, Fn, Value, make_function

VARIABLES = (
    "type",
    "phase",
    "epoch",
    "assignmentEpoch",
    "target",
    "member",
    "listed",
    "described",
    "parked",
    "client",
)
_NOTHING: Partitions = frozenset()
_LEAVE_EPOCH = -1


class MixedGroupSystem:
    """One coordinator, one group, and its consumers."""

    variables: tuple[str, ...] = VARIABLES

    def __init__(self, settings: MixedSettings, coordinator: MixedCoordinator) -> None:
        self._settings = settings
        self._coordinator = coordinator
        self._clients: dict[str, MixedClient] = {}
        self._before_first = 0
        """How many epochs the coordinator passed over before that of the first members."""
        self._steps: Mapping[str, Callable[[str], None]] = {
            "ConsumerJoin": self._consumer_join,
            "ConsumerHeartbeat": self._consumer_heartbeat,
            "ConsumerLeave": self._consumer_leave,
            "Crash": self._crash,
            "ExpireSession": coordinator.expire,
            "ClassicJoin": self._classic_join,
            "ClassicRejoin": self._classic_join,
            "ClassicSync": self._classic_sync,
            "ClassicHeartbeat": self._classic_heartbeat,
            "ClassicLeave": self._classic_leave,
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    def _begin(self) -> None:
        """The group that is there at first, and its consumers."""
        self._clients = dict.fromkeys(self._settings.instances, MixedClient())
        self._before_first = 0
        self._coordinator.begin_group()
        if self._settings.first.keys() <= self._settings.classic:
            self._begin_classic_group()
        else:
            (name,) = self._settings.first
            self._consumer_join(name)
            client = self._clients[name]
            self._before_first = client.epoch - 1
            self._clients[name] = client._replace(epoch=1)

    def _begin_classic_group(self) -> None:
        settings = self._settings
        for name in settings.first:
            if self._coordinator.join_group(name, _NOTHING) is not None:
                raise SystemFailed(f"{name} does not wait for the others")
        self._coordinator.end_initial_delay()
        answers = self._coordinator.joins_answered()
        if {*answers} != {*settings.first} or any(answer.epoch != 1 for answer in answers.values()):
            raise SystemFailed(f"the first members are not in generation 1: {answers}")
        for name in settings.first:
            self._coordinator.sync_group(name, 1, settings.first)
        for name, given in settings.first.items():
            answer = self._coordinator.sync_group(name, 1, {})
            if answer.partitions != given:
                raise SystemFailed(f"{name} is assigned {answer.partitions}, not {given}")
            self._clients[name] = MixedClient("on", 1, given)

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the coordinator cannot."""
        step = self._steps.get(action.name)
        if step is None:
            raise ActionRefused(f"the adapter knows no action {action}")
        step(str(action.args[0]))
        self._take_joins()

    def _take_joins(self) -> None:
        """What consumers make of answers to joins that waited."""
        for name, answer in self._coordinator.joins_answered().items():
            self._after_join(name, answer)

    def observe(self) -> Observation:
        """The observed variables as they are now, without those that are not seen now."""
        self._take_joins()
        view = self._coordinator.view()
        if strangers := sorted({*view.members} - {*self._clients}):
            raise SystemFailed(f"The group has members that nobody sent: {strangers}")
        seen = self._values(view)
        return Observation(
            {name: value for name in self.variables if (value := seen[name]) is not None}
        )

    def _values(self, view: MixedView) -> Mapping[str, Value | None]:
        members = {
            name: member._replace(epoch=self._ours(member.epoch))
            for name in self._clients
            for member in [view.members.get(name, MixedMember())]
        }
        return {
            "type": view.type,
            "phase": view.phase,
            "epoch": None if view.epoch is None else self._ours(view.epoch),
            "assignmentEpoch": self._ours(view.assignment_epoch),
            "target": make_function({name: _values(m.target) for name, m in members.items()}),
            "member": make_function({name: _member(m) for name, m in members.items()}),
            "listed": frozenset(view.members),
            "described": _described(members),
            "parked": frozenset(view.parked),
            "client": make_function({name: c.value for name, c in self._clients.items()}),
        }

    def _ours(self, epoch: int) -> int:
        """The epoch as the specification counts it: from that of the first members."""
        return epoch - self._before_first if epoch > 0 else epoch

    def _theirs(self, epoch: int) -> int:
        """The epoch as the coordinator counts it."""
        return epoch + self._before_first if epoch > 0 else epoch

    # ---- consumers of KIP-848 --------------------------------------------------------------

    def _consumer_join(self, name: str) -> None:
        self._send_heartbeat(name, HeartbeatOf848(0, self._settings.reads[name], _NOTHING))

    def _consumer_heartbeat(self, name: str) -> None:
        client = self._clients[name]
        self._send_heartbeat(name, HeartbeatOf848(client.epoch, frozenset(), client.owned))

    def _send_heartbeat(self, name: str, sent: HeartbeatOf848) -> None:
        client = self._clients[name]
        answer = self._coordinator.heartbeat_of_848(
            name, sent._replace(epoch=self._theirs(sent.epoch))
        )
        self._clients[name] = (
            client.given(self._ours(answer.epoch), answer.partitions)
            if answer.error == NO_ERROR
            else client.refused(answer.error)
        )

    def _consumer_leave(self, name: str) -> None:
        answer = self._coordinator.heartbeat_of_848(
            name, HeartbeatOf848(_LEAVE_EPOCH, frozenset(), _NOTHING)
        )
        self._gone(name, answer)

    def _gone(self, name: str, answer: MixedAnswer) -> None:
        left = MixedClient() if answer.error == NO_ERROR else None
        self._clients[name] = left or self._clients[name].refused(answer.error)

    def _crash(self, name: str) -> None:
        self._clients[name] = MixedClient()

    # ---- consumers of the classic protocol -------------------------------------------------

    def _classic_join(self, name: str) -> None:
        client = self._clients[name]
        owned = client.owned if self._settings.is_cooperative else _NOTHING
        if client.does == "out":
            self._coordinator.forget(name)
        self._clients[name] = client._replace(owned=owned)
        answer = self._coordinator.join_group(name, owned)
        if answer is None:
            self._clients[name] = self._clients[name]._replace(does="wait", epoch=0)
        else:
            self._after_join(name, answer)

    def _after_join(self, name: str, answer: MixedAnswer) -> None:
        client = self._clients[name]
        self._clients[name] = (
            client.joined(self._ours(answer.epoch))
            if answer.error == NO_ERROR
            else client.refused(answer.error)
        )

    def _classic_sync(self, name: str) -> None:
        client = self._clients[name]
        answer = self._coordinator.sync_group(name, self._theirs(client.epoch), {})
        self._clients[name] = (
            client.synchronized(answer.partitions or _NOTHING)
            if answer.error == NO_ERROR
            else client.refused(answer.error)
        )

    def _classic_heartbeat(self, name: str) -> None:
        client = self._clients[name]
        answer = self._coordinator.heartbeat(name, self._theirs(client.epoch))
        if answer.error != NO_ERROR:
            self._clients[name] = client.refused(answer.error)

    def _classic_leave(self, name: str) -> None:
        self._gone(name, self._coordinator.leave_group(name))


def _member(member: MixedMember) -> Value:
    return Fn(
        {
            "state": member.state,
            "epoch": member.epoch,
            "assigned": _values(member.assigned),
            "revoking": _values(member.revoking),
        }
    )


def _described(members: Mapping[str, MixedMember]) -> Value | None:
    """What descriptions show; None unless they show it of all."""
    if any(member.described is None for member in members.values()):
        return None
    return make_function(
        {
            name: Fn({"epoch": member.epoch, "assignment": _values(member.described or ())})
            for name, member in members.items()
        }
    )


def _values(partitions: Iterable[int]) -> frozenset[Value]:
    return frozenset(partitions)
