"""The system under test: Kafka's classic consumer, driven by ConsumerCommits.tla's actions.

The consumer, its coordinator, its positions and its heartbeat thread are Kafka's. The application,
the network and the group's coordinator are played (java/consumer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps, record
from conformance.systems.protocol import Observation, SystemFailed
from conformance.tla import Fn, Value

_STEPS: BridgeSteps = MappingProxyType(
    {
        "Subscribe": ("commits_subscribe", ()),
        "Assign": ("commits_assign", ()),
        "Poll": ("commits_poll", ()),
        "Begin": ("commits_begin", ()),
        "Consume": ("commits_consume", ()),
        "CallCommitAsync": ("commits_async", ("id",)),
        "CallCommitSync": ("commits_sync", ()),
        "Unsubscribe": ("commits_unsubscribe", ()),
        "Close": ("commits_close", ()),
        "Wakeup": ("commits_wakeup", ()),
        "PassInterval": ("commits_pass_interval", ()),
        "PassBackoff": ("commits_pass_backoff", ()),
        "PassRebalanceTimeout": ("commits_pass_rebalance_timeout", ()),
        "PassCallTimeout": ("commits_pass_call_timeout", ()),
        "AnswerLookup": ("commits_answer_lookup", ("succeeds",)),
        "AnswerCommit": ("commits_answer_commit", ("error",)),
        "Disconnect": ("commits_disconnect", ("taken",)),
        "AnswerJoin": ("commits_answer_join", ()),
        "HearRebalance": ("commits_hear_rebalance", ()),
        "HearEnd": ("commits_hear_end", ()),
        "OverrunPollInterval": ("commits_overrun", ()),
        "EndHeartbeatThread": ("commits_end_heartbeat_thread", ("failure",)),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""

BACKOFF_MS = 100_000
"""ClassicConsumer.BACKOFF_MS of the bridge."""

_MODES = {"NONE": "none", "AUTO_TOPICS": "group", "USER_ASSIGNED": "manual"}
_STATES = {"PREPARING_REBALANCE": "PREPARING"}
_JOINING = {"done": "answered"}
_LOOKUP = {"failed": "done"}
_OUTCOMES: Mapping[str, str] = MappingProxyType(
    {
        "NONE": "NONE",
        "RetriableCommitFailedException": "RETRIABLE",
        "CoordinatorLoadInProgressException": "RETRIABLE",
        "CoordinatorNotAvailableException": "RETRIABLE",
        "DisconnectException": "RETRIABLE",
        "NotCoordinatorException": "RETRIABLE",
        "RebalanceInProgressException": "REBALANCING",
        "CommitFailedException": "FAILED",
        "SaslAuthenticationException": "FAILED",
        "TopicAuthorizationException": "FAILED",
        "TimeoutException": "TIMEOUT",
        "WakeupException": "WAKEUP",
    }
)
"""How a commit or a call ended, by the exception's class."""


class _Completion(NamedTuple):
    """A commit that is over."""

    id: int
    offset: int
    error: str


class _Call(NamedTuple):
    """The call in which the application stands still."""

    type: str
    offset: int
    waits: str


class _BridgeCommitsView(msgspec.Struct, frozen=True, array_like=True):
    """A consumer as the bridge writes it: ConsumerCommitsView.java."""

    closed: bool
    subscription: str
    state: str
    generation: int
    rejoin_needed: bool
    needs_join_prepare: bool
    heartbeats: str
    joining: str
    owned: bool
    position: int
    pending_revocation: bool
    coordinator_known: bool
    lookup: str
    waiting: tuple[tuple[int, int], ...]
    sent: tuple[tuple[str, int, int], ...]
    queue: tuple[_Completion, ...]
    outcomes: tuple[_Completion, ...]
    timer_ms: int
    pre_join: str
    overdue: bool
    wakeup: bool
    call: _Call
    result: str
    callback: str


_as_view = msgspec.json.Decoder(_BridgeCommitsView).decode


def _outcome(name: str) -> str:
    """SystemFailed for an exception that no commit and no call of the specification ends with."""
    if name not in _OUTCOMES:
        raise SystemFailed(f"the consumer raised {name}")
    return _OUTCOMES[name]


def _entries(completions: Sequence[_Completion]) -> Value:
    return tuple(
        record(each._fields, (each.id, each.offset, _outcome(each.error))) for each in completions
    )


def _pre_join(view: _BridgeCommitsView) -> str:
    is_under_way = view.pre_join in ("none", "again", "sent")
    return view.pre_join if is_under_way else _outcome(view.pre_join)


def _timer(view: _BridgeCommitsView) -> str:
    if view.timer_ms <= 0:
        return "due"
    return "backoff" if view.timer_ms <= BACKOFF_MS else "interval"


def _kinds(view: _BridgeCommitsView) -> list[tuple[str, int]]:
    """Who has committed what is in flight; of its own commits the consumer says nothing."""
    kinds = [_kind(view, at, note) for at, (note, _, _) in enumerate(view.sent)]
    own = [at for at, (kind, _) in enumerate(kinds) if kind == "auto"]
    if own and view.call.type == "close" and view.call.waits == "answer":
        kinds[own[-1]] = ("sync", 0)
    elif own and view.pre_join == "sent":
        kinds[own[-1]] = ("join", 0)
    return kinds


def _kind(view: _BridgeCommitsView, at: int, note: str) -> tuple[str, int]:
    kind, _, number = note.partition(" ")
    if kind == "async":
        return kind, int(number)
    if kind == "sync":
        is_awaited = view.call.type == "sync" and at == len(view.sent) - 1
        return ("sync" if is_awaited else "abandoned"), 0
    return "auto", 0


def _commit(kind: str, number: int, offset: int, generation: int) -> Value:
    return Fn(
        {"kind": kind, "id": number, "offset": offset, "generation": max(generation, 0)},
    )


def _sent(view: _BridgeCommitsView) -> Value:
    return tuple(
        _commit(*kind, offset, generation)
        for kind, (_, offset, generation) in zip(_kinds(view), view.sent, strict=True)
    )


def _waiting(view: _BridgeCommitsView) -> Value:
    return tuple(
        _commit("async" if number else "auto", number, offset, 0) for number, offset in view.waiting
    )


def _observed(_names: tuple[str, ...], text: bytes) -> Observation:
    view = _as_view(text)
    return Observation(
        {
            "mode": "closed" if view.closed else _MODES[view.subscription],
            "state": _STATES.get(view.state, view.state),
            "generation": max(view.generation, 0),
            "rejoinNeeded": view.rejoin_needed,
            "needsJoinPrepare": view.needs_join_prepare,
            "heartbeats": view.heartbeats,
            "joining": _JOINING.get(view.joining, view.joining),
            "owned": view.owned,
            "position": view.position,
            "pendingRevocation": view.pending_revocation,
            "coordinator": "known" if view.coordinator_known else "unknown",
            "lookup": _LOOKUP.get(view.lookup, view.lookup),
            "waiting": _waiting(view),
            "sent": _sent(view),
            "queue": _entries(view.queue),
            "told": _entries(view.outcomes),
            "timer": _timer(view),
            "preJoin": _pre_join(view),
            "overdue": view.overdue,
            "wakeup": view.wakeup,
            "call": record(view.call._fields, view.call),
            "result": "none" if view.result == "none" else _outcome(view.result),
            "callback": view.callback,
        }
    )


class KafkaCommitsSystem(BridgedSystem):
    """A consumer in a JVM, with its heartbeat thread."""

    numbered = ""
    variables = (
        *("mode", "state", "generation", "rejoinNeeded", "needsJoinPrepare", "heartbeats"),
        *("joining", "owned", "position", "pendingRevocation", "coordinator", "lookup", "waiting"),
        *("sent", "queue", "told", "timer", "preJoin", "overdue", "wakeup", "call", "result"),
        "callback",
    )

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, "commits_view", _observed)
        self._settings = {"auto_commit": constants["AutoCommit"] is True}

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A consumer that was just constructed. There is one initial state."""
        self._run("commits_reset", self._settings)
