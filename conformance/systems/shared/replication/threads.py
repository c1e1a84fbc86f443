"""The threads of a broker: which actions are whose, and which of them can meet."""

from __future__ import annotations

from conformance.tla import Action

_FETCHER = frozenset(
    {
        "TruncateToHighWatermark",
        "SendEpochRequest",
        "SendFetch",
        "ProcessEpochResponse",
        "ProcessFetchResponse",
        "LoseMessage",
    }
)
"""Steps of a follower's one fetcher thread. As of all steps here, the first argument is whose."""

_HANDLERS = frozenset(
    {
        "BecomeLeader",
        "BecomeFollower",
        "UpdateIsr",
        "AppendAsLeader",
        "HandleEpochRequest",
        "HandleFetch",
        "ExpandIsr",
        "ShrinkIsr",
        "SubmitExpandIsr",
        "SubmitShrinkIsr",
        "ProcessAlterPartition",
    }
)
"""Steps of request handlers and of the scheduler, each of which may have a thread of its own."""

_QUESTIONS = frozenset({"HandleEpochRequest", "HandleFetch"})
_OF_LOG_START = frozenset({"AdvanceLogStartOffset", *_QUESTIONS})
"""What a leader does with a log whose start moves; no thread of a follower takes part."""

_ELECTIONS = frozenset({"BecomeLeader", "BecomeFollower"})


def concurrent(running: Action, between: Action, *, restarts: bool) -> bool:
    """Whether two threads of one broker take these.

    A broker that has just started makes its Partition before that hears of its leader epoch, and
    answers a question in between with UNKNOWN_LEADER_EPOCH. In the spec, both are one step: where
    brokers restart, no question interrupts an election.
    """
    if restarts and running.name in _ELECTIONS and between.name in _QUESTIONS:
        return False
    if not {running.name, between.name} <= _FETCHER | _HANDLERS:
        return False
    if running.args[0] != between.args[0]:
        return False
    if {running.name, between.name} <= _FETCHER:
        return False
    # The second of two appends has another offset than the one that its action names.
    return not running.name == between.name == "AppendAsLeader"


def of_log_start(running: Action, between: Action) -> bool:
    """Whether two threads of one leader take these while the start of its log moves.

    A fetcher whose offset is reset waits for its leader with its lock held, so that its own steps
    are not interrupted.
    """
    names = {running.name, between.name}
    return (
        "AdvanceLogStartOffset" in names
        and len(names) > 1
        and names <= _OF_LOG_START
        and running.args[0] == between.args[0]
    )


_OF_FETCHES = frozenset({"BecomeLeader", "BecomeFollower", "ShrinkIsr", "SubmitShrinkIsr"})


def in_parts(running: Action, between: Action) -> bool:
    """Whether the other one of the two may come between the parts of a fetch's handling.

    Partition.fetchRecords reads under the lock, and counts the follower under the lock again: who
    stops to lead, or shrinks the ISR, in between answers a fetch that moves no high watermark, or
    tells of an older one. In the spec HandleFetch is one step.
    """
    names = {running.name, between.name}
    return "HandleFetch" in names and not names.isdisjoint(_OF_FETCHES)
