"""Which brokers and states a port can drive of ConsumerGroup.tla, and what its constants say."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.errors import UserError
from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.consumer.regexes import regexes_of
from conformance.systems.wire.port import Port, not_offered
from conformance.tla import Action, Fn, Value

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
NO_ASSIGNOR = "none"
"""Of who names no assignor, and of a group in which nobody is."""


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """A model's constants; `instances` by member, None for a dynamic one; `reads` the names of the
    topics and the regular expressions that a member subscribes to as it joins, `maximum_size` of
    the group; `assignors` of the coordinator, the first its default, and the one that each member
    names, if it names any; `regexes` all regular expressions that occur."""

    instances: Mapping[str, str | None]
    topics: tuple[ModelTopic, ...]
    reads: Mapping[str, frozenset[str]]
    maximum_size: int
    names_while_reconciling: bool
    assignors: tuple[str, ...]
    named_assignors: Mapping[str, str | None]
    has_interval: bool
    """Whether a new target stays for an assignment interval (KAFKA-20291)."""
    regexes: frozenset[str] = frozenset()

    @property
    def partitions(self) -> int:
        """How many there can be."""
        return sum(topic.most for topic in self.topics)


TOPIC_CHANGES = frozenset({"CreateTopic", "AddPartition", "MoveLeader", "DeleteTopic"})
"""Steps that change what a coordinator knows of a topic."""
_GONE = -1


HearOfTopic = Callable[[ModelTopic, int], object]
"""Lets a coordinator hear of a topic, which has so many partitions now: as `TopicSizes`."""


class TopicSizes:
    """How many partitions each topic has: 0 before it is created, -1 after it is deleted."""

    def __init__(self, topics: tuple[ModelTopic, ...]) -> None:
        self._topics = {topic.key: topic for topic in topics}
        self._set({topic.key: topic.size if topic.is_there else 0 for topic in topics})

    def _set(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes
        self.value = Fn(dict(sizes.items()))
        """As the specification's `topics`."""

    def change(self, action: Action) -> tuple[ModelTopic, int]:
        """Take a step of `TOPIC_CHANGES`: the topic, and its size from now on."""
        key = str(action.args[0])
        size = {
            "CreateTopic": self._topics[key].size,
            "AddPartition": self._sizes[key] + 1,
            "MoveLeader": self._sizes[key],
            "DeleteTopic": _GONE,
        }[action.name]
        self._set({**self._sizes, key: size})
        return self._topics[key], size


def settings_of(constants: Mapping[str, Value]) -> ConsumerSettings:
    """Read a model's constants."""
    instances, reads, topics = (constants[name] for name in ("InstanceOf", "Reads", "Topics"))
    if not (isinstance(instances, Fn) and isinstance(reads, Fn) and isinstance(topics, Fn)):
        raise UserError("A model of ConsumerGroup has named members and topics.")
    return ConsumerSettings(
        {
            str(member): None if instance == _NO_INSTANCE else str(instance)
            for member, instance in sorted(instances.items(), key=lambda pair: str(pair[0]))
        },
        tuple(
            sorted(map(_topic, *zip(*topics.items(), strict=True)), key=lambda topic: topic.first)
        ),
        {str(member): frozenset(map(str, _set(names))) for member, names in reads.items()},
        _number(constants["MaxSize"]),
        constants["NamesWhileReconciling"] is True,
        _assignors(constants["Assignors"]),
        _named_assignors(constants["NamedAssignor"]),
        constants["AssignmentInterval"] is True,
        regexes_of(constants),
    )


def _assignors(value: Value) -> tuple[str, ...]:
    assert isinstance(value, tuple), "a sequence of names"
    return tuple(map(str, value))


def _named_assignors(value: Value) -> dict[str, str | None]:
    assert isinstance(value, Fn), "a function of the members"
    return {
        str(member): None if name == NO_ASSIGNOR else str(name) for member, name in value.items()
    }


def _topic(key: Value, value: Value) -> ModelTopic:
    assert isinstance(value, Fn), "a record"
    numbers = sorted(map(_number, _set(value["partitions"])))
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise UserError(
            "A topic of a model of ConsumerGroup has partitions that follow each other."
        )
    size, is_there = _number(value["size"]), value["isThere"] is True
    may_change = value["mayGo"] is True or value["mayMove"] is True
    stays = is_there and size == len(numbers) and not may_change
    return ModelTopic(str(key), str(value["name"]), numbers[0], size, len(numbers), is_there, stays)


def _set(value: Value) -> frozenset[Value]:
    return value if isinstance(value, frozenset) else frozenset()


def beyond(constants: Mapping[str, Value]) -> str:
    """Why no port can show the model; empty if one can."""
    settings = settings_of(constants)
    if not all(topic.stays for topic in settings.topics):
        return "its topics change, and nothing shows when a coordinator has heard of that"
    if settings.regexes:
        return "a broker resolves regular expressions when it likes, and not when a step says so"
    if settings.maximum_size < len(settings.instances):
        return "its group is full before all have joined, and the limit is the broker's"
    if len(settings.topics) > 1 < len(settings.instances):
        return "a port shows several members of one topic, or one member of several topics"
    if settings.has_interval:
        return "its assignment interval is the broker's, and nothing shows whether it is over"
    return _beyond_assignors(settings)


def _beyond_assignors(settings: ConsumerSettings) -> str:
    """Two members at a time need an assignor whose targets are known before: range (`passes`)."""
    in_group = {
        instance or member
        for member, instance in settings.instances.items()
        if settings.named_assignors[member] in (None, *settings.assignors)
    }
    if len(settings.assignors) > 1 and len(in_group) > 1:
        return "its members name different assignors: what the uniform one gives is not foreseen"
    return ""


def lacking(port: Port) -> str:
    """Why a broker's KIP-848 groups cannot be driven; empty if they can."""
    return not_offered(port, _NEEDED)


def passes(state: Mapping[str, Value]) -> str:
    """Why no group comes into this state whose members ask for the range assignor: it gives each
    member a range, in the order of their names, nobody a larger one than those before him. Who has
    gone has left a gap."""
    target, states = state["target"], state["memberState"]
    assert isinstance(target, Fn), "a function of the members"
    assert isinstance(states, Fn), "a function of the members"
    present = sorted(str(name) for name, member_state in states.items() if member_state != "None")
    parts = [sorted(map(_number, _set(target[name]))) for name in present]
    given = [part for part in parts if part]
    ordered = all(before[-1] < after[0] for before, after in itertools.pairwise(given))
    even = all(len(before) >= len(after) for before, after in itertools.pairwise(parts))
    if ordered and even:
        return ""
    return "the range assignor, for which the members ask, gives another target"


def _number(value: Value) -> int:
    assert isinstance(value, int), "partitions are numbers"
    return value
