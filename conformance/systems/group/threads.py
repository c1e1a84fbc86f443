"""The threads of a coordinator: which actions are whose, and which of them can meet."""

from __future__ import annotations

from conformance.tla import Action

SESSIONS = frozenset({"ExpireSession", "ExpireNewMember", "ExpirePendingMember"})
"""A member's one timer, by what the member is when it fires."""

REQUESTS = frozenset(
    {
        "HandleJoinGroup",
        "HandleSyncGroup",
        "HandleLeaveGroup",
        "HandleHeartbeat",
        "HandleOffsetCommit",
        "DeleteGroup",
    }
)
"""Steps of the coordinator's request handlers, each of which may have a thread of its own."""

TIMERS = frozenset({"ExpireInitialDelay", "ExpireRebalance", "ExpireSync"})
"""The timers of the group as a whole."""


def concurrent(running: Action, between: Action) -> bool:
    """Whether two threads of the coordinator take these.

    Not of a member's timer: it is named by what the member is, which the other thread may change;
    nor a fail-over, which is two brokers' step; nor FailToStoreAssignment, for which the adapter
    makes the log refuse everybody's records.

    A join that has looked the group up and then finds it dead is told COORDINATOR_NOT_AVAILABLE
    and comes again. In the spec a join is one step, which makes a new group of a deleted one.
    """
    names = {running.name, between.name}
    return names <= REQUESTS | TIMERS and names != {"DeleteGroup", "HandleJoinGroup"}
