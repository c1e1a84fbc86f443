"""The specification's steps of a member process, as calls of it: the same whoever coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from conformance.kafka.entities import Entity
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.exchange import Exchange
from conformance.systems.shared.group.views import ProcessView
from conformance.tla import Value


class MemberProcess(Protocol):
    """A member process, whoever's consumer it runs: `member.Process` tells what each step is.

    A step raises ActionRefused where the consumer would not take it.
    """

    name: str
    channel: Exchange | None
    heartbeat: Exchange | None

    def send_join_group(self) -> None: ...
    def complete_join(self) -> None: ...
    def send_heartbeat(self) -> None: ...
    def send_offset_commit(self) -> None: ...
    def leave_group(self) -> None: ...
    def request_rejoin(self) -> None: ...
    def change_protocols(self, names: frozenset[str]) -> None: ...
    def restart(self) -> None: ...
    def process(self, exchange: Exchange | None) -> None: ...
    def lose(self, exchange: Exchange | None) -> None: ...
    def abandon(self) -> None: ...
    def end(self) -> None: ...


class SeenProcess(MemberProcess, Protocol):
    """A member process whose messages are kio's, in the newest version."""

    def at_most(self, message: Entity) -> int | None:
        """The newest version in which it sends this request; None: no member minds."""

    def view(self) -> ProcessView:
        """The process as the specification's variables see it."""


def _change_protocols(process: MemberProcess, args: Sequence[Value]) -> None:
    if not isinstance(args[1], frozenset):
        raise ActionRefused("protocols are a set of names")
    process.change_protocols(frozenset([str(each) for each in args[1]]))


OF_A_PROCESS: Mapping[str, Callable[[MemberProcess, Sequence[Value]], None]] = MappingProxyType(
    {
        "SendJoinGroup": lambda process, _: process.send_join_group(),
        "ProcessJoinGroup": lambda process, _: process.process(process.channel),
        "ProcessSyncGroup": lambda process, _: process.process(process.channel),
        "CompleteJoin": lambda process, _: process.complete_join(),
        "SendHeartbeat": lambda process, _: process.send_heartbeat(),
        "ProcessHeartbeat": lambda process, _: process.process(process.heartbeat),
        "SendOffsetCommit": lambda process, _: process.send_offset_commit(),
        "ProcessOffsetCommit": lambda process, _: process.process(process.heartbeat),
        "LeaveGroup": lambda process, _: process.leave_group(),
        "RequestRejoin": lambda process, _: process.request_rejoin(),
        "ChangeProtocols": _change_protocols,
        "RestartProcess": lambda process, _: process.restart(),
        "LoseMessage": lambda process, _: process.lose(process.channel),
        "AbandonRequest": lambda process, _: process.abandon(),
        "LoseHeartbeat": lambda process, _: process.lose(process.heartbeat),
    }
)
"""Steps that leave the coordinator as it was."""

REQUESTS_OF_CHANNEL = frozenset({"HandleJoinGroup", "HandleSyncGroup", "HandleLeaveGroup"})
"""The coordinator handles what the process has in `channel`."""
REQUESTS_OF_HEARTBEAT = frozenset({"HandleHeartbeat", "HandleOffsetCommit"})
"""The coordinator handles what the process has in `heartbeat`."""
