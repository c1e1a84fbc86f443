"""The system under test: a member of a classic group, driven by ConsumerTopics.tla's actions.

What it subscribes to, knows of topics, owns and calls back is Kafka's. The application, the
network, the cluster and the group are played (java/consumer).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps
from conformance.systems.kafka.consumer_positions import plain
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value

_STEPS: BridgeSteps = MappingProxyType(
    {
        "Poll": ("topics_poll", ()),
        "Subscribe": ("topics_subscribe", ("topics",)),
        "SubscribePattern": ("topics_subscribe_pattern", ("topics",)),
        "FailCallback": ("topics_fail_callback", ()),
        "AddPartition": ("topics_add_partition", ("topic",)),
        "UpdateMetadata": ("topics_update_metadata", ()),
        "AnswerJoin": ("topics_answer_join", ("role", "share")),
        "HearRebalance": ("topics_hear_rebalance", ()),
        "HearEnd": ("topics_hear_end", ()),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""

_ABSENT = 0
_NO_SNAPSHOT = -1
_NOT_JOINED = frozenset({"none"})

_Partitions = frozenset[tuple[str, int]]


class _BridgeTopicsView(msgspec.Struct, frozen=True, array_like=True):
    """A member as the bridge writes it: ConsumerTopics.java. Partitions count from 0."""

    subscription: frozenset[str]
    pattern: frozenset[str]
    joined: frozenset[str] | None
    claimed: _Partitions
    watched: frozenset[str]
    snapshot: dict[str, int] | None
    leads: bool
    gone: bool
    joining: str
    rejoin_needed: bool
    needs_join_prepare: bool
    owned: _Partitions
    calls: tuple[tuple[str, _Partitions], ...]
    granted: _Partitions


_as_view = msgspec.json.Decoder(_BridgeTopicsView).decode


def _counted(partitions: _Partitions) -> Value:
    """As the specification counts them: from 1."""
    return frozenset((topic, number + 1) for topic, number in partitions)


def _observed(names: tuple[str, ...], text: bytes) -> Observation:
    view = _as_view(text)
    missing = _NO_SNAPSHOT if view.snapshot is None else _ABSENT
    return Observation(
        {
            "subscription": view.subscription,
            "pattern": view.pattern,
            "joined": _NOT_JOINED if view.joined is None else view.joined,
            "claimed": _counted(view.claimed),
            "watched": view.watched,
            "snapshot": Fn({topic: (view.snapshot or {}).get(topic, missing) for topic in names}),
            "leads": view.leads,
            "gone": view.gone,
            "joining": view.joining,
            "rejoinNeeded": view.rejoin_needed,
            "needsJoinPrepare": view.needs_join_prepare,
            "owned": _counted(view.owned),
            "calls": tuple((name, _counted(partitions)) for name, partitions in view.calls),
            "granted": _counted(view.granted),
        }
    )


class KafkaTopicsSystem(BridgedSystem):
    """A member in a JVM, with its heartbeat thread."""

    numbered = "Topics"
    variables = (
        *("subscription", "pattern", "joined", "claimed", "watched", "snapshot", "leads", "gone"),
        *("joining", "rejoinNeeded", "needsJoinPrepare", "owned", "calls", "granted"),
    )

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, "topics_view", _observed)
        self._settings = {
            "topics": plain(constants["Topics"]),
            "others": plain(constants["Others"]),
            "cooperative": constants["Cooperative"],
        }

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A member that knows its coordinator. There is one initial state."""
        self._run("topics_reset", self._settings)

    def _argument(self, value: Value) -> object:
        return plain(value)
