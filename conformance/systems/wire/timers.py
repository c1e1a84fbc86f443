"""Which timers a path lets expire, and what its members must ask for so that just these do.

A coordinator's timers are real. A path that lets a session, a rebalance or a pending SyncGroup
time out gives the members concerned a short timeout, all others one that outlasts every test; a
session that is to expire later is kept alive by heartbeats until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from conformance.systems.wire.address import Address
from conformance.tla import Action
from impl.group.messages import JoinGroupRequest

SESSIONS = frozenset({"ExpireSession", "ExpirePendingMember"})
"""The timer of one member id: its heartbeats, or its second JoinGroup, did not come."""
REBALANCES = frozenset({"ExpireRebalance", "ExpireSync"})
"""The timer of the group: members did not join, or did not send SyncGroup, in time."""
_REASONS = {
    "ExpireNewMember": "ExpireNewMember takes five minutes (NewMemberJoinTimeoutMs)",
    "FailOver": "FailOver needs a way to move the coordinator",
    "FailToStoreAssignment": "FailToStoreAssignment needs a log that refuses an append",
}


@dataclass(frozen=True, slots=True)
class Foresight:
    """The timers of one path: the spec's ids whose session expires; whether a rebalance does."""

    sessions: frozenset[str] = frozenset()
    rebalances: bool = False

    def asking(self, request: JoinGroupRequest, id: str, address: Address) -> JoinGroupRequest:
        """The request of the member with this id of the spec, with timeouts for this path."""
        if id in self.sessions:
            request = replace(request, session_timeout_ms=address.session)
        if self.rebalances:
            request = replace(request, rebalance_timeout_ms=address.rebalance)
        return request


def not_drivable(actions: Sequence[Action], address: Address) -> str:
    """Why a port does not let this path happen; empty if it does."""
    for action in actions:
        if action.name in _REASONS:
            return _REASONS[action.name]
        if action.name in SESSIONS and not address.session:
            return (
                f"{action.name} needs a short session: if the broker's "
                "group.min.session.timeout.ms allows it, say session=150"
            )
    return _beneath_initial_delay(actions, address)


def _beneath_initial_delay(actions: Sequence[Action], address: Address) -> str:
    """Why a member cannot expire while the initial delay runs, if that would be over first.

    Only one whose id was given and not used yet can: the others have their JoinGroup parked.
    """
    names = [action.name for action in actions]
    delays = [number for number, name in enumerate(names) if name == "ExpireInitialDelay"]
    early = delays and "ExpirePendingMember" in names[: delays[-1]]
    if not early or address.session < address.initial_delay:
        return ""
    return (
        "ExpirePendingMember before the initial delay is over needs session to be less than "
        "initial-delay"
    )


def foresight(actions: Sequence[Action]) -> Foresight:
    """What this path lets expire."""
    return Foresight(
        frozenset(str(action.args[0]) for action in actions if action.name in SESSIONS),
        any(action.name in REBALANCES for action in actions),
    )
