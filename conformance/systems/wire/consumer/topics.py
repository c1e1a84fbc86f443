"""Topics of one test of KIP-848's groups that its path changes: made, grown, deleted by requests.

Nothing of a group shows that its coordinator has heard of a change, as none changes before the next
heartbeat. A group beside it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from kio.schema.errors import ErrorCode

from conformance.errors import UserError
from conformance.kafka.entities import make, milliseconds, module_of
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.admin import delete_topics
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.probes import await_heard
from conformance.systems.wire.consumer.reach import GONE, TopicSizes
from conformance.systems.wire.consumer.requests import MemberGroup, ReadTopic
from conformance.systems.wire.port import Port
from conformance.tla import Action

_NO_ID = UUID(int=0)
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class TopicSet:
    """Topics for one test: `ids` of those that there are, by the model's key."""

    prefix: str
    ids: Mapping[str, UUID]

    def name(self, topic: ModelTopic) -> str:
        """At the broker."""
        return f"{self.prefix}{topic.name}"

    def sent_as(self, regex: str) -> str:
        """A regular expression of the model, so that it matches the names of these topics only."""
        return f"{self.prefix}(?:{regex})"


def make_sets(port: Port, topics: Sequence[ModelTopic], prefixes: Sequence[str]) -> list[TopicSet]:
    """A set for each prefix, of the topics that are there at first. SystemFailed if refused."""
    sizes = {
        (prefix, topic.key): (f"{prefix}{topic.name}", topic.size)
        for prefix in prefixes
        for topic in topics
        if topic.is_there
    }
    ids = _create(port, dict(sizes.values()))
    return [
        TopicSet(prefix, {key: ids[name] for (of, key), (name, _) in sizes.items() if of == prefix})
        for prefix in prefixes
    ]


class ChangingTopics:
    """Of one test. `group`: what it reads, as it is now."""

    def __init__(
        self, broker: WireBroker, group: MemberGroup, made: TopicSet, topics: tuple[ModelTopic, ...]
    ) -> None:
        self._broker = broker
        self.made = made
        self._sizes = TopicSizes(topics)
        read = (ReadTopic(each, made.name(each), made.ids.get(each.key, _NO_ID)) for each in topics)
        sent_as = {regex: made.sent_as(regex) for regex in group.regexes}
        self.group = replace(group, topics=tuple(read), regexes=sent_as)

    @property
    def partitions(self) -> frozenset[int]:
        """Those that there are."""
        return frozenset(
            number
            for topic in self.group.topics
            for number in topic.of_model.numbers[: max(self._sizes[topic.of_model.key], 0)]
        )

    def change(self, action: Action) -> None:
        """Take a step of `TOPIC_CHANGES`; the group's coordinator has heard of it then."""
        topic, size = self._sizes.change(action)
        name, port = self.made.name(topic), self._broker.entry
        if size == GONE:
            delete_topics(port, (name,))
        elif action.name == "CreateTopic":
            self._appears(topic.key, _create(port, {name: size})[name])
        else:
            _grow(port, name, size)
        self.await_heard()

    def await_heard(self) -> None:
        """Until the group's coordinator knows the topics as they are."""
        await_heard(self._broker, self.group, self.partitions)

    def _appears(self, key: str, topic_id: UUID) -> None:
        topics = (
            replace(topic, topic_id=topic_id) if topic.of_model.key == key else topic
            for topic in self.group.topics
        )
        self.group = replace(self.group, topics=tuple(topics))

    def delete(self) -> None:
        """What is left of them."""
        left = {topic.topic for topic in self.group.topics if self._sizes[topic.of_model.key] > 0}
        if left:
            delete_topics(self._broker.entry, tuple(sorted(left)))


def _create(port: Port, sizes: Mapping[str, int]) -> dict[str, UUID]:
    """Topics of so many partitions, by name: their ids."""
    module = module_of("create_topics", port.versions["create_topics"], "request")
    topics = tuple(
        make(
            module.CreatableTopic,
            name=name,
            num_partitions=size,
            replication_factor=-1,
            assignments=(),
            configs=(),
        )
        for name, size in sizes.items()
    )
    wait = milliseconds(_SECONDS * 1000)
    request = make(module.CreateTopicsRequest, topics=topics, timeout=wait, validate_only=False)
    results = port.ask_body(request, 2 * _SECONDS, at_once=False).topics
    for result in results:
        if result.error_code is not ErrorCode.none:
            raise UserError(
                f"The broker at {port.address} does not create the topic {result.name}: "
                f"{error_name(result.error_code)}. Allow it."
            )
    return {str(result.name): result.topic_id for result in results}


def _grow(port: Port, name: str, size: int) -> None:
    module = module_of("create_partitions", port.versions["create_partitions"], "request")
    topic = make(module.CreatePartitionsTopic, name=name, count=size, assignments=None)
    wait = milliseconds(_SECONDS * 1000)
    request = make(
        module.CreatePartitionsRequest, topics=(topic,), timeout=wait, validate_only=False
    )
    (result,) = port.ask_body(request, 2 * _SECONDS, at_once=False).results
    if result.error_code is not ErrorCode.none:
        raise SystemFailed(
            f"CreatePartitions of {name} was answered {error_name(result.error_code)}"
        )
