"""Which timers a path lets expire, and what its members must ask for so that just these do.

A coordinator's timers are real. A path that lets a session, a rebalance or a pending SyncGroup
time out gives the members concerned timeouts that run out in the path's own order, all others one
that outlasts every test; a session that is to expire later is kept alive by heartbeats until then.
A member whose id was given and not used yet has no heartbeats: its session is made as long as what
the path waits for until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from conformance.kafka.entities import Entity, milliseconds
from conformance.systems.wire.address import Address
from conformance.tla import Action

PENDING = "ExpirePendingMember"
SESSIONS = frozenset({"ExpireSession", PENDING})
"""The timer of one member id: its heartbeats, or its second JoinGroup, did not come."""
REBALANCES = frozenset({"ExpireRebalance", "ExpireSync"})
"""The timer of the group: members did not join, or did not send SyncGroup, in time."""
_INITIAL_DELAY = "ExpireInitialDelay"


@dataclass(frozen=True, slots=True)
class PathTimers:
    """The timers of one path, in ms: of the spec's ids whose session expires; of a rebalance that
    does, 0 if none does."""

    sessions: Mapping[str, int] = field(default_factory=dict)
    rebalance: int = 0

    def asking(self, request: Entity, id: str) -> Entity:
        """The JoinGroup of the member with this id of the spec, with timeouts for this path."""
        if id in self.sessions:
            request = replace(request, session_timeout=milliseconds(self.sessions[id]))
        if self.rebalance:
            request = replace(request, rebalance_timeout=milliseconds(self.rebalance))
        return request


def beyond_reach(address: Address) -> dict[str, str]:
    """The actions that no path through this port can take, and why."""
    result = {
        "ExpireNewMember": "it takes five minutes (NewMemberJoinTimeoutMs)",
    }
    if not address.fail_over:
        result["FailOver"] = "it needs --fail-over 'command' to move the coordinator"
    if not address.store_failures:
        result["FailToStoreAssignment"] = (
            "it needs a log that refuses an append: store-failures=1 lets kconform raise "
            "min.insync.replicas of the offsets topic for a moment"
        )
    if not address.session:
        why = (
            "it needs a short session: if group.min.session.timeout.ms (of KIP-848: "
            "group.consumer.min.session.timeout.ms) allows it, say session=400"
        )
        result.update(dict.fromkeys(sorted(SESSIONS), why))
    return result


def foresight(actions: Sequence[Action], address: Address) -> PathTimers:
    """Timeouts for which this path's timers expire in its order, and no others."""
    last = max((at for at, action in enumerate(actions) if action.name in REBALANCES), default=-1)
    before = sum(action.name in SESSIONS for action in actions[: last + 1])
    rebalance = address.rebalance + before * address.session if last >= 0 else 0
    waits = _Waits(actions, address, rebalance)
    sessions: dict[str, int] = {}
    for at, action in enumerate(actions):
        if action.name in SESSIONS:
            length = waits.pending(at) if action.name == PENDING else address.session
            id = str(action.args[0])
            sessions[id] = max(length, sessions.get(id, 0))
    return PathTimers(sessions, rebalance)


def not_drivable(actions: Sequence[Action], address: Address) -> str:
    """Why a port does not let this path happen, or not in time; empty if it does.

    While the initial delay runs only a member can expire whose id was given and not used yet (the
    others have their JoinGroup parked), and it must do so before the delay is over.
    """
    beyond = beyond_reach(address)
    for action in actions:
        if action.name in beyond:
            return f"{action.name}: {beyond[action.name]}"
    sessions = foresight(actions, address).sessions
    delays = [at for at, action in enumerate(actions) if action.name == _INITIAL_DELAY]
    for at, action in enumerate(actions):
        early = action.name == PENDING and bool(delays) and at < delays[-1]
        if early and sessions[str(action.args[0])] >= address.initial_delay:
            return (
                f"{PENDING} before the initial delay is over needs a session that is shorter: say "
                "min-session, the broker's group.min.session.timeout.ms, or lengthen its "
                "group.initial.rebalance.delay.ms"
            )
    return ""


@dataclass(frozen=True, slots=True)
class _Waits:
    """How long (ms) a path waits at its timers."""

    actions: Sequence[Action]
    address: Address
    rebalance: int

    def pending(self, at: int) -> int:
        """The session of the member that expires at this step: it starts with a JoinGroup of its
        process, the first at the earliest, and must outlast what is waited for until then."""
        process = str(self.actions[at].args[0]).rpartition("-")[0]
        joins = [
            number
            for number, action in enumerate(self.actions[:at])
            if action.name == "HandleJoinGroup" and str(action.args[0]) == process
        ]
        begun = joins[0] if joins else 0
        waited = sum(self._at(action.name) for action in self.actions[begun:at])
        return waited + self._shortest() if waited else self._shortest()

    def _shortest(self) -> int:
        """Half the initial delay where a session would outlast that, and the broker allows it."""
        address, half = self.address, self.address.initial_delay // 2
        if address.session < address.initial_delay or half < address.min_session:
            return address.session
        return half

    def _at(self, name: str) -> int:
        if name in SESSIONS:
            return self.address.session
        if name in REBALANCES:
            return self.rebalance
        # Each member that joins meanwhile may prolong it once; there are two or three.
        return 3 * self.address.initial_delay if name == _INITIAL_DELAY else 0
