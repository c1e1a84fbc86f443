"""Topics of tests with groups of KIP-848: their names, and who makes and deletes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID

from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.requests import MemberGroup
from conformance.systems.wire.consumer.topic_pool import TopicPool, pool_of
from conformance.systems.wire.consumer.topics import ChangingTopics, TopicSet

A = ModelTopic("a", "a", first=0, size=1, most=2, is_there=True, stays=False)
AGAIN = ModelTopic("a2", "a", first=2, size=1, most=1, is_there=False, stays=False)
OURS = TopicSet("kconform-1-x-7-", {"a": UUID(int=7)})


class _Maker:
    """Makes sets of topics, and counts how often."""

    def __init__(self, sets: int) -> None:
        self.sets = sets
        self.times = 0

    def __call__(self) -> Sequence[TopicSet]:
        self.times += 1
        return [TopicSet(f"{self.times}-{number}-", {}) for number in range(self.sets)]


def test_a_regular_expression_matches_the_topics_of_its_own_test_only() -> None:
    sent = OURS.sent_as("[ab]|c+")
    others = TopicSet("kconform-1-x-8-", {})

    assert re.fullmatch(sent, OURS.name(A))
    assert re.fullmatch(sent, f"{OURS.prefix}cc")
    assert not re.fullmatch(sent, others.name(A))
    assert not re.fullmatch(sent, "c")


def test_a_topic_that_is_not_there_yet_has_its_name_and_no_partitions() -> None:
    group = MemberGroup("group", (), {"a+": ""})
    read = ChangingTopics(_nobody(), group, OURS, (A, AGAIN))

    assert {topic.topic for topic in read.group.topics} == {f"{OURS.prefix}a"}
    assert [topic.topic_id.int for topic in read.group.topics] == [7, 0]
    assert read.partitions == {0}
    assert read.group.regexes == {"a+": OURS.sent_as("a+")}


def _nobody() -> WireBroker:
    """Nothing is asked of it."""
    return WireBroker.__new__(WireBroker)


def test_topics_are_made_for_many_tests_and_nobody_gets_them_twice() -> None:
    pool, maker = TopicPool(), _Maker(3)

    taken = [pool.take(maker).prefix for _ in range(6)]

    assert maker.times == 2
    assert len({*taken}) == 6


def test_the_last_system_that_goes_gets_what_is_left() -> None:
    pool, maker = TopicPool(), _Maker(3)
    pool.enter()
    pool.enter()
    pool.take(maker)

    assert pool.leave() == ()
    assert len(pool.leave()) == 2


def test_a_pool_is_one_of_a_broker_and_a_model() -> None:
    assert pool_of("x:1", (A,)) is pool_of("x:1", (A,))
    assert pool_of("x:1", (A,)) is not pool_of("x:2", (A,))
    assert pool_of("x:1", (A,)) is not pool_of("x:1", (AGAIN,))
