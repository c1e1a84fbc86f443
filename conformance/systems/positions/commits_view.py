"""What a consumer's objects hold, as the spec's values: the mapping of ConsumerCommits.tla."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.systems.positions.client import BACKOFF_MS, PARTITION, outcome
from conformance.tla import Fn, Value
from impl.group.client.consumer_coordinator import Offsets
from impl.group.client.generation import MemberState
from impl.group.messages import OffsetCommitRequest

if TYPE_CHECKING:
    from conformance.systems.positions.commits import CommitsSystem

NO_OFFSET = -1
_NO_GENERATION = 0
_STATES = {
    MemberState.UNJOINED: "UNJOINED",
    MemberState.PREPARING_REBALANCE: "PREPARING",
    MemberState.COMPLETING_REBALANCE: "COMPLETING",
    MemberState.STABLE: "STABLE",
}


@dataclass(frozen=True, slots=True)
class CallbackOutcome:
    """What a callback of commitAsync was called with."""

    id: int
    offsets: Offsets
    error: Exception | None


def _entry(number: int, offsets: Offsets, error: Exception | None) -> Value:
    position = offsets.get(PARTITION)
    offset = NO_OFFSET if position is None else position.offset
    return Fn({"id": number, "offset": offset, "error": outcome(error)})


def _mode(system: CommitsSystem) -> Value:
    subscriptions = system.client.subscriptions
    if system.client.coordinator.has_left and subscriptions.has_subscription:
        return _closing_mode(system)
    if not subscriptions.has_subscription:
        return "none"
    return "group" if subscriptions.has_auto_assigned_partitions else "manual"


def _closing_mode(system: CommitsSystem) -> Value:
    if not system.is_closed:
        return "group" if system.client.subscriptions.has_auto_assigned_partitions else "manual"
    return "closed"


def _generation(system: CommitsSystem) -> Value:
    coordinator = system.client.coordinator
    if coordinator.has_generation_reset(coordinator.generation):
        return _NO_GENERATION
    return coordinator.generation.generation_id


def _heartbeats(system: CommitsSystem) -> Value:
    thread = system.client.coordinator.heartbeat_thread
    if thread is None:
        return "none"
    if thread.has_failed:
        return "failed"
    return "enabled" if thread.enabled else "disabled"


def _joining(system: CommitsSystem) -> Value:
    future = system.client.coordinator.join_future
    if future is None:
        return "none"
    if not future.is_done:
        return "sent"
    return "failed" if future.failed else "answered"


def _position(system: CommitsSystem) -> Value:
    position = system.client.subscriptions.all_consumed().get(PARTITION)
    return NO_OFFSET if position is None else position.offset


def _is_pending(system: CommitsSystem) -> Value:
    return system.client.subscriptions.is_pending_revocation(PARTITION)


def _lookup(system: CommitsSystem) -> Value:
    future = system.client.coordinator._find_coordinator_future
    if future is None:
        return "none"
    return "done" if future.is_done else "sent"


def _sent(system: CommitsSystem) -> Value:
    requests = [request for _, request in system.client.in_flight(OffsetCommitRequest)]
    kinds = [_kind(system, request) for request in requests]
    own = [number for number, (kind, _) in enumerate(kinds) if kind == "auto"]
    if own and _waits(system) == "answer" and system.call[0] == "close":
        kinds[own[-1]] = ("sync", 0)
    elif own and _pre_join(system) == "sent":
        kinds[own[-1]] = ("join", 0)
    return tuple(
        _commit(kind, number, request)
        for (kind, number), request in zip(kinds, requests, strict=True)
    )


def _kind(system: CommitsSystem, request: OffsetCommitRequest) -> tuple[str, int]:
    """Who has committed; the consumer itself says nothing."""
    kind, _, number = request.partitions[0].committed_metadata.partition(" ")
    if kind == "async":
        return kind, int(number)
    if kind == "sync":
        newest = [each for _, each in system.client.in_flight(OffsetCommitRequest)][-1]
        awaited = system.call[0] == "sync" and request is newest
        return ("sync" if awaited else "abandoned"), 0
    return "auto", 0


def _commit(kind: str, number: int, request: OffsetCommitRequest) -> Value:
    return Fn(
        {
            "kind": kind,
            "id": number,
            "offset": request.partitions[0].committed_offset,
            "generation": max(request.generation_id, _NO_GENERATION),
        }
    )


def _queue(system: CommitsSystem) -> Value:
    return tuple(
        _entry(getattr(each.callback, "id", 0), each.offsets, each.error)
        for each in system.client.coordinator._completed_commits
    )


def _timer(system: CommitsSystem) -> Value:
    timer = system.client.coordinator._next_auto_commit
    timer.update()
    if timer.is_expired and system.commits_automatically:
        return "due"
    return "backoff" if 0 < timer.remaining_ms <= BACKOFF_MS else "interval"


def _pre_join(system: CommitsSystem) -> Value:
    coordinator = system.client.coordinator
    future = coordinator._auto_commit_future
    if future is None:
        return "none" if coordinator._join_prepare_timer is None else "again"
    if not future.is_done:
        return "sent"
    return outcome(future.exception) if future.failed else "NONE"


def _is_overdue(system: CommitsSystem) -> Value:
    timer = system.client.coordinator._join_prepare_timer
    if timer is None:
        return False
    timer.update()
    return timer.is_expired


def _waits(system: CommitsSystem) -> str:
    """What the application stands still for."""
    kind, offset = system.call
    coordinator = system.client.coordinator
    if kind == "none":
        return "none"
    if kind == "close" and coordinator.has_left:
        return "pending"
    if offset == NO_OFFSET:
        return "callbacks"
    return "lookup" if coordinator.coordinator_unknown() else "answer"


def _call(system: CommitsSystem) -> Value:
    kind, offset = system.call
    return Fn({"type": kind, "waits": _waits(system), "offset": offset})


OF_CONSUMER: dict[str, Callable[[CommitsSystem], Value]] = {
    "mode": _mode,
    "state": lambda system: _STATES[system.client.coordinator.state],
    "generation": _generation,
    "rejoinNeeded": lambda system: system.client.coordinator.rejoin_needed,
    "needsJoinPrepare": lambda system: system.client.coordinator.needs_join_prepare,
    "heartbeats": _heartbeats,
    "joining": _joining,
    "owned": lambda system: PARTITION in system.client.subscriptions.assigned_partitions,
    "position": _position,
    "pendingRevocation": _is_pending,
    "coordinator": lambda system: (
        "unknown" if system.client.coordinator.coordinator_unknown() else "known"
    ),
    "lookup": _lookup,
    "sent": _sent,
    "queue": _queue,
    "told": lambda system: tuple(_entry(t.id, t.offsets, t.error) for t in system.outcomes),
    "timer": _timer,
    "preJoin": _pre_join,
    "overdue": _is_overdue,
    "wakeup": lambda system: system.client.network.is_woken,
    "call": _call,
    "result": lambda system: system.client.result,
    "callback": lambda system: system.client.callbacks.last,
}
"""Each variable, and how the objects show it."""

VARIABLES = tuple(OF_CONSUMER)
"""Observed: all but what listens to a look-up, the coordinator's own, and the ghost."""
