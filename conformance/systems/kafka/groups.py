"""The system under test: Kafka's own group coordinators, driven by GroupMembership.tla's actions.

The members are ours (`systems/group`) or Kafka's own Java consumers (`members`). Either way, where
the specification lets the coordinator handle a request, it goes to the JVM as the frame that the
client sends. Time stands still, so every variable is seen after every step.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from conformance.kafka.entities import (
    NEWEST,
    SIZE_BYTES,
    Entity,
    MalformedFrame,
    api_of,
    class_of,
    in_version,
    read_response,
    request_frame,
)
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.kafka.members import KafkaProcess
from conformance.systems.protocol import ActionRefused, Observation, SystemFailed
from conformance.systems.shared.group.exchange import Exchange, kind_of
from conformance.systems.shared.group.observation import VARIABLES, GroupObserver
from conformance.systems.shared.group.port_member import PortMember
from conformance.systems.shared.group.settings import INITIAL_DELAY_MS, TOPIC, GroupSettings
from conformance.systems.shared.group.steps import (
    OF_A_PROCESS,
    REQUESTS_OF_CHANNEL,
    REQUESTS_OF_HEARTBEAT,
    SeenProcess,
)
from conformance.systems.shared.group.threads import SESSIONS
from conformance.systems.shared.group.views import (
    GroupMemberView,
    GroupView,
    MemberRecord,
    ProcessView,
    RecordView,
)
from conformance.systems.wire.ids import MemberIds
from conformance.tla import Action, Value

_VERSIONS: Mapping[str, int] = MappingProxyType(
    {"sync_group": 5, "heartbeat": 4, "leave_group": 5, "offset_commit": 9}
)
"""Of requests, but for JoinGroup: there a member says which it speaks."""

_TIMERS: Mapping[str, str] = MappingProxyType(
    {"ExpireInitialDelay": "INITIAL_JOIN", "ExpireRebalance": "JOIN", "ExpireSync": "SYNC"}
)
"""Timers of the group as a whole, by the bridge's names (Coordinator.Kind)."""
_HEARTBEAT = "HEARTBEAT"
_JOIN_TIMERS = {None: None, "INITIAL_JOIN": "initial join", "JOIN": "join"}
_GROUP = "group"
"""As the bridge calls the only group (Groups.java); its partition of the offsets topic is there."""


class _BridgeMember(msgspec.Struct, frozen=True, array_like=True):
    """A member of the group; `request` is the number of the one that is parked."""

    member_id: str
    protocols: tuple[str, ...]
    assignment: bytes
    awaits_join: bool
    awaits_sync: bool
    is_new: bool
    request: int | None


class BridgeGroup(msgspec.Struct, frozen=True, array_like=True):
    """The group as the bridge writes it: GroupView.java."""

    state: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[_BridgeMember, ...]
    pending: tuple[str, ...]
    static: tuple[tuple[str, str], ...]
    pending_sync: tuple[str, ...]
    join_timer: str | None
    remaining_ms: int
    new_member_added: bool


class _StoredGroup(msgspec.Struct, frozen=True, array_like=True):
    """The last GroupMetadataValue; members as (member id, instance id, assignment)."""

    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[tuple[str, str | None, bytes], ...]


class _BridgeGroupStep(msgspec.Struct, frozen=True, array_like=True):
    """What has become of a step: answers as (number of the request, frame)."""

    answered: tuple[tuple[int, bytes], ...]
    group: BridgeGroup | None
    stored: _StoredGroup | None


_as_view = msgspec.json.Decoder(_BridgeGroupStep).decode


class KafkaGroupSystem:
    """Two of Kafka's coordinators in a JVM, members, an environment that does what the actions say.

    `clients` is where Kafka's consumers run that are the members; None: they are ours.
    """

    variables = VARIABLES

    def __init__(
        self,
        channel: AdapterChannel,
        settings: GroupSettings,
        clients: AdapterChannel | None = None,
    ) -> None:
        self._channel = channel
        self._clients = clients
        self._settings = settings
        self._observer = GroupObserver(settings)
        self._real_ids = settings.real_ids()
        self._processes: dict[str, SeenProcess] = {}
        self._views: dict[str, ProcessView] = {}
        self._others: Mapping[str, Callable[[], None]] = {
            "FailOver": lambda: self._command("group_fail_over"),
            "DeleteGroup": lambda: self._command("group_delete"),
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, coordinators without a group, new processes."""
        for process in self._processes.values():
            process.end()
        self._ids = MemberIds(self._settings)
        self._processes = {name: self._start(name) for name in self._settings.members}
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[SeenProcess, Exchange, str, int]] = {}
        self._joining = ""
        self._views = {}
        self._command(
            "group_reset", max_size=self._settings.maximum_size, initial_delay_ms=INITIAL_DELAY_MS
        )

    def _start(self, name: str) -> SeenProcess:
        if self._clients is not None:
            return KafkaProcess(self._clients, name, self._settings)
        return PortMember(name, self._settings)

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if Kafka or a member cannot."""
        name, args = action
        if name in OF_A_PROCESS:
            self._views.pop(str(args[0]), None)
            OF_A_PROCESS[name](self._processes[str(args[0])], args)
            return
        self._views.clear()
        if name in REQUESTS_OF_CHANNEL or name == "FailToStoreAssignment":
            process = self._processes[str(args[0])]
            self._handle(process, process.channel, refuse=name == "FailToStoreAssignment")
        elif name in REQUESTS_OF_HEARTBEAT:
            process = self._processes[str(args[0])]
            self._handle(process, process.heartbeat)
        elif name in SESSIONS:
            real = self._real_ids[str(args[0])]
            self._command("group_fire", kind=_HEARTBEAT, member=self._ids.theirs(real))
        elif name in _TIMERS:
            self._command("group_fire", kind=_TIMERS[name], member=None)
        elif name in self._others:
            self._others[name]()
        else:
            raise ActionRefused(f"the adapter knows no action {name}")

    def observe(self) -> Observation:
        """The observed variables as the coordinator's and the members' objects have them now."""
        for name, process in self._processes.items():
            if name not in self._views:
                self._views[name] = process.view()
        return self._observer.observe(
            self._group, tuple(self._views[process] for process in self._processes)
        )

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        for process in self._processes.values():
            process.end()
        CHANNELS.give_back(self._channel)
        if self._clients is not None:
            CHANNELS.give_back(self._clients)

    # ---- requests --------------------------------------------------------------------------

    def _handle(
        self, process: SeenProcess, exchange: Exchange | None, *, refuse: bool = False
    ) -> None:
        if exchange is None or not exchange.is_under_way:
            raise ActionRefused(f"no request of {process.name} is under way")
        message = exchange.message
        if kind_of(message) == "JoinGroupRequest":
            self._joining = process.name
        number = next(self._numbers)
        api, version, frame = self._frame(message, number, process)
        self._waiting[number] = (process, exchange, api, version)
        if exchange.abandoned:
            process.channel = None
        self._command("group_request", number=number, frame=frame, refuse_append=refuse)
        if exchange.response is None:
            exchange.parked_under = self._parked.get(number, "")

    def _frame(self, message: Entity, number: int, process: SeenProcess) -> tuple[str, int, str]:
        """The API, its version, and the frame without its size in Base64."""
        api = api_of(message)
        version = process.at_most(message) or _VERSIONS[api]
        entity = in_version(self._ids.outgoing(message, _GROUP, TOPIC), version)
        frame = request_frame(entity, number, process.name)[SIZE_BYTES:]
        return api, version, base64.b64encode(frame).decode("ascii")

    def _command(self, command: str, **members: object) -> None:
        """Let the coordinator take a step, and take in what has become of it."""
        steps: list[dict[str, object]] = [
            {"command": command, **members},
            {"command": "group_view"},
        ]
        view = _as_view(self._channel.call(steps)[-1])
        self._learn(view.group)
        for number, frame in view.answered:
            self._take_in(number, frame)
        bridge_members = () if view.group is None else view.group.members
        self._parked = {
            member.request: self._ids.ours(member.member_id)
            for member in bridge_members
            if member.request is not None
        }
        self._group = self._group_view(view)

    def _take_in(self, number: int, frame: bytes) -> None:
        process, exchange, api, version = self._waiting.pop(number)
        try:
            _, body = read_response(frame, class_of(api, version, "response"))
        except MalformedFrame as error:
            raise SystemFailed(f"the answer to {api} {version} cannot be read: {error}") from error
        answer = in_version(body, NEWEST[api])
        if kind_of(answer) == "JoinGroupResponse":
            self._give(answer.member_id, process.name)
        if exchange in (process.channel, process.heartbeat):
            exchange.answer(self._ids.incoming(answer))

    # ---- member ids ------------------------------------------------------------------------

    def _learn(self, group: BridgeGroup | None) -> None:
        """A new member id belongs to the member that joined last."""
        if group is not None:
            for theirs in (*(member.member_id for member in group.members), *group.pending):
                self._give(theirs, self._joining)

    def _give(self, theirs: str, process: str) -> None:
        if theirs and not self._ids.knows(theirs):
            self._ids.give(theirs, process)

    # ---- the group -------------------------------------------------------------------------

    def _group_view(self, view: _BridgeGroupStep) -> GroupView:
        group, stored = view.group, self._stored(view.stored)
        if group is None:
            return GroupView(record=stored)
        ours = self._ids.ours
        return GroupView(
            group.state,
            group.generation,
            group.protocol,
            ours(group.leader) if group.leader else None,
            tuple([self._member(member_id) for member_id in group.members]),
            tuple([ours(member_id) for member_id in group.pending]),
            tuple([(instance, ours(id)) for instance, id in group.static]),
            tuple([ours(member_id) for member_id in group.pending_sync]),
            _JOIN_TIMERS[group.join_timer],
            -(-group.remaining_ms // INITIAL_DELAY_MS),
            group.new_member_added,
            stored,
        )

    def _member(self, member: _BridgeMember) -> GroupMemberView:
        return GroupMemberView(
            self._ids.ours(member.member_id),
            member.protocols,
            member.assignment,
            member.awaits_join,
            member.awaits_sync,
            member.is_new,
        )

    def _stored(self, stored: _StoredGroup | None) -> RecordView | None:
        if stored is None:
            return None
        ours = self._ids.ours
        members = tuple(
            [
                MemberRecord(ours(id), instance, assignment)
                for id, instance, assignment in stored.members
            ]
        )
        leader = ours(stored.leader) if stored.leader else None
        return RecordView(stored.generation, stored.protocol, leader, members)
