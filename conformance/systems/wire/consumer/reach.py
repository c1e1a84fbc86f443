"""Which brokers and states a port can drive of ConsumerGroup.tla, and what its constants say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.errors import UserError
from conformance.systems.wire.port import Port, not_offered
from conformance.tla import Fn, Value

SPECIFICATION = "ConsumerGroup"
"""The root module that says what the actions are."""
_NEEDED: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "consumer_group_heartbeat": ("ConsumerGroupHeartbeat", 1),  # members choose ids (KIP-1082)
        "consumer_group_describe": ("ConsumerGroupDescribe", 0),
        "offset_commit": ("OffsetCommit", 9),  # has the member epoch
        "offset_fetch": ("OffsetFetch", 1),
        "create_topics": ("CreateTopics", 7),  # answers with the topic's id
        "metadata": ("Metadata", 1),
    }
)
"""Without these requests, of at least these versions, a broker cannot be driven."""
_NO_INSTANCE = "none"


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """A model's constants; `instances` by member, None for a dynamic one."""

    instances: Mapping[str, str | None]
    partitions: int
    names_while_reconciling: bool


def settings_of(constants: Mapping[str, Value]) -> ConsumerSettings:
    """Read a model's constants."""
    instances, partitions = constants["InstanceOf"], constants["Partitions"]
    if not isinstance(instances, Fn) or partitions != frozenset(range(len(_set(partitions)))):
        raise UserError("A model of ConsumerGroup has named members, and partitions from 0 on.")
    return ConsumerSettings(
        {
            str(member): None if instance == _NO_INSTANCE else str(instance)
            for member, instance in sorted(instances.items(), key=lambda pair: str(pair[0]))
        },
        len(_set(partitions)),
        constants["NamesWhileReconciling"] is True,
    )


def _set(value: Value) -> frozenset[Value]:
    return value if isinstance(value, frozenset) else frozenset()


def lacking(port: Port) -> str:
    """Why a broker's KIP-848 groups cannot be driven; empty if they can."""
    return not_offered(port, _NEEDED)


def passes(state: Mapping[str, Value]) -> str:
    """Why no group comes into this state whose members ask for the range assignor: it gives each
    member a range, in the order of their names, nobody a larger one than those before him. Who has
    gone has left a gap."""
    target = state["target"]
    assert isinstance(target, Fn), "a function of the members"
    named = sorted((str(name), _set(given)) for name, given in target.items())
    parts = [sorted(map(_number, given)) for _, given in named if given]
    ordered = all(before[-1] < after[0] for before, after in itertools.pairwise(parts))
    even = all(len(before) >= len(after) for before, after in itertools.pairwise(parts))
    if ordered and even:
        return ""
    return "the range assignor, for which the members ask, gives another target"


def _number(value: Value) -> int:
    assert isinstance(value, int), "partitions are numbers"
    return value
