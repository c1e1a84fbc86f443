"""Which timers of a path have to run out, and how long they must be so that just these do.

A session's timer starts again with each heartbeat, and its length is a setting of the group. So it
is made short for the one heartbeat after which nothing more is heard of the member, and long for
all others. A rebalance's timer is the member's own: each of its heartbeats says how long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.systems.wire.address import Address
from conformance.tla import Action

SESSION, REBALANCE = "ExpireSession", "ExpireRebalance"
EXPIRIES = frozenset({SESSION, REBALANCE})
_RESTARTS = frozenset({"HandleHeartbeat", SESSION, REBALANCE, "HandleLeave"})
"""After these a member's session timer is another one, or none."""


@dataclass(frozen=True, slots=True)
class ConsumerTimers:
    """By number of a path's step: the session (ms) that a heartbeat handled there begins, if it is
    to expire; by member its rebalance timeout (ms), if that is to run out."""

    sessions: Mapping[int, int] = field(default_factory=dict)
    rebalances: Mapping[str, int] = field(default_factory=dict)


def foresight(actions: Sequence[Action], address: Address) -> ConsumerTimers:
    """Timeouts that run out in the path's order."""
    sessions: dict[int, int] = {}
    rebalances: dict[str, int] = {}
    for at, action in enumerate(actions):
        if action.name == REBALANCE:
            rebalances[str(action.args[0])] = address.rebalance
        if action.name == SESSION:
            begun = _last(actions, at, action.args[0])
            waited = sum(_length(action, address) for action in actions[begun:at])
            sessions[begun] = address.session + waited
    return ConsumerTimers(sessions, rebalances)


def _last(actions: Sequence[Action], end: int, member: object) -> int:
    """The step before `end` that started the member's session timer."""
    return max(
        (
            at
            for at in range(end)
            if actions[at].name in _RESTARTS and actions[at].args[0] == member
        ),
        default=0,
    )


def _length(action: Action, address: Address) -> int:
    if action.name == SESSION:
        return address.session
    return address.rebalance if action.name == REBALANCE else 0
