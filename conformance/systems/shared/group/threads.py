"""The threads of a coordinator and of a member: whose actions are which, and which can meet."""

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


APPLICATION = frozenset(
    {
        "SendJoinGroup",
        "CompleteJoin",
        "SendOffsetCommit",
        "LeaveGroup",
        "RequestRejoin",
        "ChangeProtocols",
    }
)
"""Steps of a member's application: KafkaConsumer's methods, in the one thread that calls them."""

CALLED_BACK = frozenset({"ProcessJoinGroup", "ProcessSyncGroup", "LoseMessage"})
"""Answers to what a member has in `channel`, or what takes their place."""

CALLED_BACK_TO_HEARTBEAT = frozenset({"ProcessHeartbeat", "ProcessOffsetCommit", "LoseHeartbeat"})
"""Answers to what a member has in `heartbeat`."""

_CALLBACKS = CALLED_BACK | CALLED_BACK_TO_HEARTBEAT
"""Run by whichever of a member's two threads polls the network first."""

_OF_HEARTBEAT_THREAD = frozenset({"SendHeartbeat"})

_FAILURES = frozenset(
    {"LeaveGroup", "RequestRejoin", "ChangeProtocols", "LoseMessage", "LoseHeartbeat"}
)
"""Of these a model allows so many in all: one more is out of its bounds."""

_BROKEN_OFF = frozenset({"LoseHeartbeat", "ProcessJoinGroup"})
"""With a heartbeat's connection the coordinator is lost, so that no sync can be sent before it is
looked up again. In the spec, losing and looking up are one step."""

_PREPARED_AND_SENT = frozenset({"SendJoinGroup", "ProcessOffsetCommit"})
"""Preparing a join and sending it are two sections. The answer to an old commit resets whom it
finds between them, but nobody who waits to join: neither order has what comes out."""

_ALONE = (
    APPLICATION,
    _OF_HEARTBEAT_THREAD,
    CALLED_BACK,
    CALLED_BACK_TO_HEARTBEAT,
    _FAILURES,
    _BROKEN_OFF,
    _PREPARED_AND_SENT,
)
"""Of each of these one at a time: steps of one thread, answers to one request, failures; and what
the spec has as one step, so that it says nothing of what comes in between."""


def concurrent(running: Action, between: Action) -> bool:
    """Whether two threads of the coordinator, or of a member, take these."""
    return _of_coordinator(running, between) or of_member(running, between)


def _of_coordinator(running: Action, between: Action) -> bool:
    """Whether two threads of the coordinator take these.

    Not of a member's timer: it is named by what the member is, which the other thread may change;
    nor a fail-over, which is two brokers' step; nor FailToStoreAssignment, for which the adapter
    makes the log refuse everybody's records.

    A join that has looked the group up and then finds it dead is told COORDINATOR_NOT_AVAILABLE
    and comes again. In the spec a join is one step, which makes a new group of a deleted one.
    """
    names = {running.name, between.name}
    return names <= REQUESTS | TIMERS and names != {"DeleteGroup", "HandleJoinGroup"}


def of_member(running: Action, between: Action) -> bool:
    """Whether the application's and the heartbeat thread of one member take these."""
    names = [running.name, between.name]
    if not set(names) <= APPLICATION | _CALLBACKS | _OF_HEARTBEAT_THREAD:
        return False
    if running.args[0] != between.args[0]:
        return False
    return not any(set(names) <= alone for alone in _ALONE)


def in_heartbeat_thread(action: Action, other: Action, *, interrupts: bool) -> bool:
    """In which of a member's threads an action is taken when it meets the other one.

    An answer is called back in the thread that the other action leaves free; of two answers, the
    one that interrupts in the heartbeat thread.
    """
    if action.name in _CALLBACKS and other.name in _CALLBACKS:
        return interrupts
    return action.name not in APPLICATION and other.name not in _OF_HEARTBEAT_THREAD


_RESETS = frozenset({"ProcessHeartbeat", "ProcessOffsetCommit"})
_OF_GENERATIONS = frozenset({"SendJoinGroup", "LeaveGroup"})


def in_parts(running: Action, between: Action) -> bool:
    """Whether a member may lose its generation between the parts of its application's step.

    Preparing a join (onJoinPrepare) and sending it (initiateJoinGroup) are two sections under the
    coordinator's lock: who is put out between them joins as nobody, and prepares the next join
    again. Who is put out before it leaves has nobody to tell, and forgets its member id all the
    same. In the spec SendJoinGroup is one step, and LeaveGroup none of who is put out.
    """
    names = {running.name, between.name}
    return not names.isdisjoint(_OF_GENERATIONS) and not names.isdisjoint(_RESETS)
