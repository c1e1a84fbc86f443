"""A broker on which groups are driven that KIP-848's members may join."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.address import Address
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.probes import (
    answers_tell_interval,
    await_topic,
    find_coordinator,
)
from conformance.systems.wire.consumer.requests import Description, MemberGroup, ReadTopic
from conformance.systems.wire.consumer.settings import SessionSettings


class GroupBroker:
    """A topic for each of the model's, and the session timeouts of groups.

    `regexes`: the model's regular expressions, which match names of its topics.
    """

    def __init__(
        self,
        port: WireBroker,
        topics: Sequence[ModelTopic],
        partitions: int,
        address: Address,
        regexes: Collection[str] = (),
    ) -> None:
        self.port = port
        self._prefix = f"kconform-{port.run}-" if regexes else ""
        sent_as = {regex: f"{self._prefix}(?:{regex})" for regex in regexes}
        self._group = MemberGroup("", tuple(map(self._made, topics)), sent_as)
        await_topic(port, self._group, partitions)
        self.sessions = SessionSettings(port)
        self.sets_sessions = port.entry.offers("incremental_alter_configs")
        if address.session and self.sets_sessions:
            self.sessions.try_interval(
                lambda: answers_tell_interval(port, self._group, self.sessions)
            )

    def _made(self, topic: ModelTopic) -> ReadTopic:
        name = self._prefix and f"{self._prefix}{topic.name}"
        made = self.port.make_topic(topic.size, name)
        assert made is not None, "CreateTopics is among what was demanded"
        return ReadTopic(topic, *made)

    def new_group(self) -> tuple[MemberGroup, Description]:
        """A group id that nobody has used, and the group as its coordinator knows it."""
        group = replace(self._group, group_id=self.port.new_group_id())
        description = find_coordinator(self.port, group)
        self.port.leaders.look(again=False)
        return group, description
