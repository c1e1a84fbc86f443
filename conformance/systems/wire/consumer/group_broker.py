"""A broker on which groups are driven that KIP-848's members may join."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.address import Address
from conformance.systems.wire.admin import delete_topics
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.probes import (
    answers_tell_interval,
    await_topics,
    find_coordinator,
)
from conformance.systems.wire.consumer.requests import Description, MemberGroup
from conformance.systems.wire.consumer.settings import SessionSettings
from conformance.systems.wire.consumer.topic_pool import MANY, pool_of
from conformance.systems.wire.consumer.topics import ChangingTopics, TopicSet, make_sets


class GroupBroker:
    """A topic for each of the model's, and the session timeouts of groups.

    `regexes`: the model's regular expressions, which match names of its topics. Topics that stay
    are made once, others for each test.
    """

    def __init__(
        self,
        port: WireBroker,
        topics: Sequence[ModelTopic],
        address: Address,
        regexes: Collection[str] = (),
    ) -> None:
        self.port = port
        self._topics = tuple(topics)
        self._has_regexes = bool(regexes)
        self._is_alone = False
        self._unread = MemberGroup("", (), dict.fromkeys(regexes, ""))
        self._pool = pool_of(str(address), self._topics)
        self._pool.enter()
        self._own = self._made_once() if self._stay or not regexes else None
        """Of no test, unless all read them. Each topic that is made is news to regular expressions,
        so where tests with such have topics of their own there are no others."""
        self.sessions = SessionSettings(port)
        self.sets_sessions = port.entry.offers("incremental_alter_configs")
        if address.session and self.sets_sessions and self._own is not None:
            reading = self._own.group
            self.sessions.try_interval(lambda: answers_tell_interval(port, reading, self.sessions))

    def _made_once(self) -> ChangingTopics:
        (own,) = make_sets(self.port.entry, self._topics, [self.port.new_prefix()])
        topics = ChangingTopics(self.port, self._unread, own, self._topics)
        await_topics(self.port, topics.group, topics.partitions)
        return topics

    @property
    def _stay(self) -> bool:
        return all(topic.stays for topic in self._topics)

    def be_alone(self) -> None:
        """Nobody else takes topics."""
        self._is_alone = True

    def new_group(self) -> tuple[MemberGroup, Description]:
        """A group id that nobody has used, and the group as its coordinator knows it."""
        assert self._own is not None, "its topics stay"
        return self._begun(self._own.group)

    def _begun(self, reading: MemberGroup) -> tuple[MemberGroup, Description]:
        group = replace(reading, group_id=self.port.new_group_id())
        description = find_coordinator(self.port, group)
        self.port.leaders.look(again=False)
        return group, description

    def new_topics(self) -> tuple[ChangingTopics, Description]:
        """The same, with the topics of its own that it reads, if they do not stay."""
        shared = self._own if self._stay else None
        made = self._pool.take(self._more) if shared is None else shared.made
        group, description = self._begun(self._unread)
        topics = ChangingTopics(self.port, group, made, self._topics)
        if not self._stay:
            topics.await_heard()
        return topics, description

    def _more(self) -> Sequence[TopicSet]:
        count = MANY if self._has_regexes and not self._is_alone else 1
        prefixes = [self.port.new_prefix() for _ in range(count)]
        return make_sets(self.port.entry, self._topics, prefixes)

    def put_back(self, topics: ChangingTopics) -> None:
        """A test is over: topics of its own are deleted."""
        if not self._stay:
            topics.delete()

    def delete_topics(self) -> None:
        """Those of no test, too."""
        if self._own is not None:
            self._own.delete()
        for left in self._pool.leave():
            names = {left.name(topic) for topic in self._topics if topic.key in left.ids}
            delete_topics(self.port.entry, tuple(sorted(names)))
