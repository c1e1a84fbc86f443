"""What the constants of a model of MixedGroup.tla say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.errors import UserError
from conformance.systems.shared.topics import ModelTopic
from conformance.tla import Fn, Value

_CLASSIC = "classic"
_NO_INSTANCE = "none"
Partitions = frozenset[int]


@dataclass(frozen=True, slots=True)
class MixedSettings:
    """All by member; `instances`: None of a dynamic one; `first`: of the group's first members."""

    instances: Mapping[str, str | None]
    classic: frozenset[str]
    """Who speaks the classic protocol."""
    malformed: frozenset[str]
    reads: Mapping[str, frozenset[str]]
    first: Mapping[str, Partitions]
    topics: tuple[ModelTopic, ...]
    policy: str
    is_cooperative: bool

    def by_topic(self, partitions: Partitions) -> dict[str, frozenset[int]]:
        """The partitions' places in their topics."""
        return {
            topic.name: frozenset(
                number - topic.first for number in partitions.intersection(topic.numbers)
            )
            for topic in self.topics
        }

    def numbers(self, topic: str, place: int) -> int:
        """What the model calls a partition."""
        (first,) = (each.first for each in self.topics if each.name == topic)
        return first + place


def settings_of(constants: Mapping[str, Value]) -> MixedSettings:
    """Read a model's constants. UserError if a topic's partitions do not follow each other."""
    instances = _function(constants["InstanceOf"])
    return MixedSettings(
        {
            name: None if instance == _NO_INSTANCE else str(instance)
            for name, instance in sorted(instances.items())
        },
        frozenset(
            name for name, kind in _function(constants["Protocol"]).items() if kind == _CLASSIC
        ),
        frozenset(map(str, _set(constants["Malformed"]))),
        {
            name: frozenset(map(str, _set(topics)))
            for name, topics in _function(constants["Reads"]).items()
        },
        {name: numbers_in(given) for name, given in sorted(_function(constants["First"]).items())},
        _topics(constants["TopicOf"]),
        str(constants["Policy"]),
        constants["Cooperative"] is True,
    )


def _topics(value: Value) -> tuple[ModelTopic, ...]:
    assert isinstance(value, Fn), "a function of the partitions"
    numbers: dict[str, list[int]] = {}
    for number, topic in value.items():
        assert isinstance(number, int), "partitions are numbers"
        numbers.setdefault(str(topic), []).append(number)
    topics = []
    for name, some in numbers.items():
        first, size = min(some), len(some)
        if max(some) != first + size - 1:
            raise UserError(
                "A topic of a model of MixedGroup has partitions that follow each other."
            )
        topics.append(ModelTopic(name, name, first, size, size, is_there=True, stays=True))
    return tuple(sorted(topics, key=lambda topic: topic.first))


def _function(value: Value) -> dict[str, Value]:
    assert isinstance(value, Fn), "a function of the members"
    return {str(name): result for name, result in value.items()}


def _set(value: Value) -> frozenset[Value]:
    assert isinstance(value, frozenset), "a set"
    return value


def numbers_in(value: Value) -> Partitions:
    """A set of partitions."""
    return frozenset(number for number in _set(value) if isinstance(number, int))
