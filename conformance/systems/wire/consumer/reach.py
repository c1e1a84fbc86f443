"""Which brokers and states a port can drive of ConsumerGroup.tla, and what its constants say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.errors import UserError
from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.address import Address
from conformance.systems.wire.consumer.regexes import regexes_of
from conformance.systems.wire.port import Port, not_offered
from conformance.systems.wire.range_assignor import is_range
from conformance.tla import Action, Fn, Value

SPECIFICATION = "ConsumerGroup"
"""The root module that says what the actions are."""
SIGN = "NamesWhileReconciling"
"""A constant that its models have, and others do not."""
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
_NEEDED_TO_CHANGE: Mapping[str, tuple[str, int]] = MappingProxyType(
    {"create_partitions": ("CreatePartitions", 0), "delete_topics": ("DeleteTopics", 1)}
)
"""The same, where topics change."""
_NO_INSTANCE = "none"
NO_ASSIGNOR = "none"
"""Of who names no assignor, and of a group in which nobody is."""
SHORTEST_INTERVAL_MS = 500
"""A path takes a few of its steps within an assignment interval, on a machine that is busy."""


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


DELETE_TOPIC = "DeleteTopic"
TOPIC_CHANGES = frozenset({"CreateTopic", "AddPartition", "MoveLeader", DELETE_TOPIC})
"""Steps that change what a coordinator knows of a topic."""
GONE = -1


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

    def __getitem__(self, key: str) -> int:
        return self._sizes[key]

    def change(self, action: Action) -> tuple[ModelTopic, int]:
        """Take a step of `TOPIC_CHANGES`: the topic, and its size from now on."""
        key = str(action.args[0])
        size = {
            "CreateTopic": self._topics[key].size,
            "AddPartition": self._sizes[key] + 1,
            "MoveLeader": self._sizes[key],
            DELETE_TOPIC: GONE,
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
        has_interval(constants),
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


def beyond(constants: Mapping[str, Value], address: Address) -> str:
    """Why no such broker can show the model; empty if it can."""
    settings = settings_of(constants)
    return (
        _other_limit(settings, address)
        or _other_interval(settings, address)
        or _other_default(settings, address)
        or _beyond_assignors(settings)
    )


def has_interval(constants: Mapping[str, Value]) -> bool:
    """Whether a model has an assignment interval; of no constants, not."""
    return constants.get("AssignmentInterval") is True


def limit_of(constants: Mapping[str, Value]) -> int:
    """The group.consumer.max.size that a model needs; 0 if it needs none: all may join."""
    settings = settings_of(constants)
    size = settings.maximum_size
    return size if size < len(settings.instances) else 0


def default_assignor_of(constants: Mapping[str, Value]) -> str:
    """The assignor that must be the broker's first one for a model; empty if any may be. A member
    that brings a regular expression only makes no new epoch, unless it names another assignor than
    the broker's first one (KAFKA-20434)."""
    return _default_assignor(settings_of(constants))


def _default_assignor(settings: ConsumerSettings) -> str:
    return settings.assignors[0] if settings.regexes else ""


def _other_default(settings: ConsumerSettings, address: Address) -> str:
    assignor = _default_assignor(settings)
    if assignor in ("", address.assignor):
        return ""
    return (
        f"it needs group.consumer.assignors that begin with {assignor}: if your broker's do, say "
        f"assignor={assignor}"
    )


def _other_limit(settings: ConsumerSettings, address: Address) -> str:
    size = settings.maximum_size
    if len(settings.instances) <= size or size == address.consumer_max_size:
        return ""
    return (
        f"it needs group.consumer.max.size={size}: if your broker is set so, say "
        f"consumer-max-size={size}"
    )


def _other_interval(settings: ConsumerSettings, address: Address) -> str:
    """An interval that is shorter than a few steps would be over before a path comes to that."""
    interval = address.assignment_interval
    if settings.has_interval and interval < SHORTEST_INTERVAL_MS:
        return (
            f"it needs a group.consumer.assignment.interval.ms of {SHORTEST_INTERVAL_MS} or more "
            "(KAFKA-20291): if your broker has one, say assignment-interval= with its milliseconds"
        )
    if interval and not settings.has_interval:
        return "it needs group.consumer.assignment.interval.ms=0: no target of it is kept waiting"
    return ""


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


def lacking(port: Port, settings: ConsumerSettings) -> str:
    """Why a broker's KIP-848 groups cannot be driven; empty if they can."""
    stay = all(topic.stays for topic in settings.topics)
    return not_offered(port, _NEEDED if stay else {**_NEEDED, **_NEEDED_TO_CHANGE})


def passes(constants: Mapping[str, Value], state: Mapping[str, Value]) -> str:
    """Why no group comes into this state whose members ask for the range assignor: it gives each
    member a range of a topic, in the order of their names, nobody a larger one than those before
    him. Who has gone has left a gap; who has come since the target was made has no part of it."""
    target, states = state["target"], state["memberState"]
    assert isinstance(target, Fn), "a function of the members"
    assert isinstance(states, Fn), "a function of the members"
    present = sorted(str(name) for name, member_state in states.items() if member_state != "None")
    if _has_appeared(settings_of(constants), state["topics"]):
        return (
            "a topic that appears is news to the regular expressions of all groups: tests side by "
            "side would disturb each other"
        )
    is_old = state["assignmentEpoch"] != state["groupEpoch"]
    reads = _topics_read(state)
    for topic in settings_of(constants).topics:
        parts = {name: _numbers(target[name]) & {*topic.numbers} for name in present}
        readers = [
            name for name in present if parts[name] or (topic.name in reads[name] and not is_old)
        ]
        if not is_range([parts[name] for name in readers]):
            return "the range assignor, for which the members ask, gives another target"
    return ""


def _has_appeared(settings: ConsumerSettings, topics: Value) -> bool:
    """Whether there is a topic that was not there at first, in a model with regular expressions."""
    assert isinstance(topics, Fn), "a function of the topics"
    later = (topic.key for topic in settings.topics if not topic.is_there)
    return bool(settings.regexes) and any(topics[key] != 0 for key in later)


def _topics_read(state: Mapping[str, Value]) -> Mapping[str, frozenset[str]]:
    """By member, the names of topics in its subscription, and those that its regular expression is
    known to match."""
    subscribed, resolved = state["subscribed"], state["resolved"]
    assert isinstance(subscribed, Fn), "a function of the members"
    matched = resolved if isinstance(resolved, Fn) else Fn({})  # no function has an empty domain
    return {
        str(member): frozenset(
            str(name)
            for read in _set(names)
            for name in (_set(matched[read]) if read in matched else (read,))
        )
        for member, names in subscribed.items()
    }


def _numbers(value: Value) -> frozenset[int]:
    return frozenset(map(_number, _set(value)))


def _number(value: Value) -> int:
    assert isinstance(value, int), "partitions are numbers"
    return value
