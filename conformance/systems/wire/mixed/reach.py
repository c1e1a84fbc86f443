"""Which brokers, models and states of MixedGroup.tla a port can drive."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.systems.shared.mixed.settings import MixedSettings, settings_of
from conformance.systems.shared.mixed.settings import numbers_in as _numbers
from conformance.systems.shared.mixed.system import VARIABLES
from conformance.systems.wire.address import Address
from conformance.systems.wire.port import Port, not_offered
from conformance.systems.wire.range_assignor import is_range
from conformance.tla import Fn, Value

SPECIFICATION = "MixedGroup"
"""The root module that says what the actions are."""
SIGN = "Malformed"
"""A constant that its models have, and others do not."""
ASSIGNOR = "range"
"""Whose targets are known before. Members of KIP-848 name none: it must be the broker's first."""
_UPGRADING = frozenset({"bidirectional", "upgrade"})
_NEEDED: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "consumer_group_heartbeat": ("ConsumerGroupHeartbeat", 1),  # members choose ids (KIP-1082)
        "consumer_group_describe": ("ConsumerGroupDescribe", 0),
        "join_group": ("JoinGroup", 5),  # has an instance id (KIP-345)
        "describe_groups": ("DescribeGroups", 0),
        "create_topics": ("CreateTopics", 7),  # answers with the topic's id
        "metadata": ("Metadata", 1),
    }
)


def policy_of(constants: Mapping[str, Value]) -> str:
    """The group.consumer.migration.policy that a model needs; empty of other specifications."""
    return str(constants["Policy"]) if SIGN in constants else ""


def observed(settings: MixedSettings) -> tuple[str, ...]:
    """The variables that a port shows at some time. Nothing shows a member's state and what it is
    to revoke, and nothing a generation of a group that stays a classic one."""
    stays = settings.first.keys() <= settings.classic and settings.policy not in _UPGRADING
    hidden = {"member", "epoch"} if stays else {"member"}
    return tuple(name for name in VARIABLES if name not in hidden)


def lacking(port: Port) -> str:
    """Why a broker's groups cannot be driven; empty if they can."""
    return not_offered(port, _NEEDED)


def beyond(constants: Mapping[str, Value], address: Address) -> str:
    """Why no such broker can show the model; empty if it can."""
    settings, policy = settings_of(constants), policy_of(constants)
    if policy != address.migration_policy:
        return (
            f"it needs group.consumer.migration.policy={policy}: if your broker is set so, say "
            f"migration-policy={policy}"
        )
    if address.assignor != ASSIGNOR:
        return (
            f"its targets are foreseen with the {ASSIGNOR} assignor only: if your broker's "
            f"group.consumer.assignors begins with it, say assignor={ASSIGNOR}"
        )
    dynamic = [name for name in settings.classic if settings.instances[name] is None]
    if len(dynamic) > 1:
        return "coordinators choose ids of classic members, which are assigned in their order"
    return ""


def passes(constants: Mapping[str, Value], state: Mapping[str, Value]) -> str:
    """Why the range assignor leads no group into this state: it gives each member a range of a
    topic, nobody a larger one than those before him. Who has gone has left a gap."""
    settings, target = settings_of(constants), state["target"]
    assert isinstance(target, Fn), "a function of the members"
    present = sorted(_names(state["listed"]), key=lambda name: _place(settings, name))
    for topic in settings.topics:
        numbers = frozenset(topic.numbers)
        readers = [name for name in present if topic.name in settings.reads[name]]
        if not is_range([_numbers(target[name]) & numbers for name in readers]):
            return "the range assignor gives another target"
    return ""


def _place(settings: MixedSettings, name: str) -> tuple[bool, str, bool, str]:
    """Where RangeAssignor.sortMemberIds puts it: static members first, by instance; others by id,
    of which ours come last (`member_id`)."""
    instance = settings.instances[name]
    return instance is None, instance or "", name not in settings.classic, name


def member_id(name: str, run: str) -> str:
    """Of a member of KIP-848: after all ids of classic members, which coordinators choose."""
    return f"~{name}-{run}"


def _names(value: Value) -> frozenset[str]:
    assert isinstance(value, frozenset), "a set of members"
    return frozenset(map(str, value))
