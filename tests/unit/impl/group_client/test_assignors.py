"""Range, round-robin and sticky: the examples of their documentation, and what they promise."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from impl.errors import KafkaException
from impl.group.client.assignors.assignor import Assigned, PartitionAssignor
from impl.group.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.assignors.round_robin import RoundRobinAssignor
from impl.group.client.assignors.sticky import StickyAssignor
from impl.group.client.buffer import ByteBuffer
from impl.group.client.consumer_protocol import (
    Assignment,
    Subscription,
    deserialize_assignment,
    deserialize_subscription,
    serialize_assignment,
    serialize_subscription,
)
from impl.group.consumer_protocol import subscribed_topics
from impl.types import TopicPartition

ALL = [RangeAssignor, RoundRobinAssignor, StickyAssignor]
Names = dict[str, list[str]]


def wish(*topics: str, instance: str | None = None) -> Subscription:
    return Subscription(topics, group_instance_id=instance)


def names(assigned: Assigned) -> Names:
    return {member: sorted(str(tp) for tp in owned) for member, owned in assigned.items()}


@pytest.mark.parametrize(
    ("assignor", "counts", "wishes", "expected"),
    [
        (
            RangeAssignor(),
            {"t0": 3, "t1": 3},
            {"C0": wish("t0", "t1"), "C1": wish("t0", "t1")},
            {"C0": ["t0-0", "t0-1", "t1-0", "t1-1"], "C1": ["t0-2", "t1-2"]},
        ),
        (
            RoundRobinAssignor(),
            {"t0": 3, "t1": 3},
            {"C0": wish("t0", "t1"), "C1": wish("t0", "t1")},
            {"C0": ["t0-0", "t0-2", "t1-1"], "C1": ["t0-1", "t1-0", "t1-2"]},
        ),
        (
            RoundRobinAssignor(),
            {"t0": 1, "t1": 2, "t2": 3},
            {"C0": wish("t0"), "C1": wish("t0", "t1"), "C2": wish("t0", "t1", "t2")},
            {"C0": ["t0-0"], "C1": ["t1-0"], "C2": ["t1-1", "t2-0", "t2-1", "t2-2"]},
        ),
        (
            StickyAssignor(),
            {"t0": 1, "t1": 2, "t2": 3},
            {"C0": wish("t0"), "C1": wish("t0", "t1"), "C2": wish("t0", "t1", "t2")},
            {"C0": ["t0-0"], "C1": ["t1-0", "t1-1"], "C2": ["t2-0", "t2-1", "t2-2"]},
        ),
        (
            RangeAssignor(),
            {"t": 2},
            {"a": wish("t"), "b": wish("t"), "c": wish("t", instance="i1")},
            {"a": ["t-1"], "b": [], "c": ["t-0"]},
        ),
        (
            RangeAssignor(),
            {},
            {"a": wish("unknown")},
            {"a": []},
        ),
    ],
)
def test_examples(
    assignor: PartitionAssignor,
    counts: dict[str, int],
    wishes: dict[str, Subscription],
    expected: Names,
) -> None:
    assert names(assignor.assign(counts, wishes)) == expected


TOPICS = ["t0", "t1", "t2"]
COUNTS = st.fixed_dictionaries({topic: st.integers(0, 5) for topic in TOPICS})
WISHES = st.dictionaries(
    st.sampled_from("abcde"),
    st.lists(st.sampled_from([*TOPICS, "absent"]), unique=True).map(lambda ts: wish(*ts)),
    min_size=1,
)


@pytest.mark.parametrize("assignor", ALL)
@given(COUNTS, WISHES)
@settings(max_examples=60, deadline=None)
def test_every_partition_wanted_has_one_owner_that_wants_it(
    assignor: type[PartitionAssignor], counts: dict[str, int], wishes: dict[str, Subscription]
) -> None:
    assigned = assignor().assign(counts, wishes)
    assert assigned.keys() == wishes.keys()
    owned = [tp for partitions in assigned.values() for tp in partitions]
    wanted = {t for w in wishes.values() for t in w.topics if t in counts}
    assert sorted(owned) == [TopicPartition(t, p) for t in sorted(wanted) for p in range(counts[t])]
    assert all(tp.topic in wishes[m].topics for m, tps in assigned.items() for tp in tps)


def could_be_moved(assigned: Assigned, wishes: dict[str, Subscription]) -> list[tuple[str, str]]:
    return [
        (giver, taker)
        for giver, owned in assigned.items()
        for taker in assigned
        if len(owned) > len(assigned[taker]) + 1
        and any(tp.topic in wishes[taker].topics for tp in owned)
    ]


@given(COUNTS, WISHES)
@settings(max_examples=60, deadline=None)
def test_sticky_is_balanced_and_stays_as_it_is(
    counts: dict[str, int], wishes: dict[str, Subscription]
) -> None:
    assigned = StickyAssignor().assign(counts, wishes)
    assert could_be_moved(assigned, wishes) == []
    again = {m: remembered(w, assigned[m]) for m, w in wishes.items()}
    assert names(StickyAssignor().assign(counts, again)) == names(assigned)


def remembered(
    wish: Subscription, owned: list[TopicPartition], generation_id: int = 1
) -> Subscription:
    """The subscription of a member whose sticky assignor remembers what it owned."""
    assignor = StickyAssignor()
    assignor.on_assignment(Assignment(tuple(owned)), generation_id)
    return Subscription(wish.topics, assignor.subscription_user_data())


def test_sticky_moves_only_what_a_member_leaves_behind() -> None:
    """The example of StickyAssignor's documentation: round-robin would move five partitions."""
    counts = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
    wishes = {member: wish(*counts) for member in ("C0", "C1", "C2")}
    first = StickyAssignor().assign(counts, wishes)
    stay = {m: remembered(wishes[m], first[m]) for m in ("C0", "C2")}
    second = StickyAssignor().assign(counts, stay)
    assert all(set(first[m]) <= set(second[m]) for m in stay)
    assert sorted(len(owned) for owned in second.values()) == [4, 4]


def test_sticky_gives_a_newcomer_no_more_than_its_share() -> None:
    old = {"a": [TopicPartition("t", p) for p in range(6)]}
    wishes = {"a": remembered(wish("t"), old["a"]), "b": wish("t")}
    assigned = StickyAssignor().assign({"t": 6}, wishes)
    assert len(assigned["a"]) == len(assigned["b"]) == 3


def test_of_two_claims_the_later_generation_wins_and_of_equal_ones_neither() -> None:
    t = [TopicPartition("t", p) for p in range(4)]
    later = {
        "a": remembered(wish("t"), [t[0], t[1]], generation_id=1),
        "b": remembered(wish("t"), [t[0], t[1]], generation_id=2),
    }
    assert names(StickyAssignor().assign({"t": 4}, later))["b"] == ["t-0", "t-1"]
    equal = {
        "a": remembered(wish("t"), [t[3], t[0]]),
        "b": remembered(wish("t"), [t[3], t[1]]),
    }
    assigned = names(StickyAssignor().assign({"t": 4}, equal))
    assert "t-0" in assigned["a"]
    assert "t-1" in assigned["b"]


def test_user_data_of_another_assignor_is_ignored() -> None:
    wishes = {"a": Subscription(("t",), b"\x00\x00\x00\x09junk")}
    assert names(StickyAssignor().assign({"t": 1}, wishes)) == {"a": ["t-0"]}


def test_a_partition_that_changes_its_owner_is_given_to_nobody_at_first() -> None:
    owned = tuple(TopicPartition("t", number) for number in range(4))
    assignor = CooperativeStickyAssignor()
    first = assignor.assign(
        {"t": 4}, {"a": Subscription(("t",), None, owned, 1), "b": Subscription(("t",))}
    )
    kept = tuple(first["a"])
    assert len(kept) == 2
    assert first["b"] == []
    # "a" has given up the others, and joins once more.
    second = assignor.assign(
        {"t": 4}, {"a": Subscription(("t",), None, kept, 2), "b": Subscription(("t",), None, (), 2)}
    )
    assert tuple(second["a"]) == kept
    assert sorted(second["b"]) == sorted(set(owned) - set(kept))


def test_the_generation_of_an_old_subscription_stands_in_its_user_data() -> None:
    assignor = CooperativeStickyAssignor()
    assignor.on_assignment(Assignment(()), 7)
    old = Subscription(("t",), assignor.subscription_user_data(), (TopicPartition("t", 0),))
    assert assignor.member_data(old) == (7, (TopicPartition("t", 0),))


def test_subscriptions_and_assignments_survive_their_bytes() -> None:
    tps = (TopicPartition("t", 0), TopicPartition("t", 3), TopicPartition("u", 1))
    subscription = Subscription(("t", "u"), b"\x01", tps, 7, "rack")
    data = serialize_subscription(subscription)
    assert deserialize_subscription(ByteBuffer(data)) == subscription
    assert subscribed_topics(data) == {"t", "u"}
    assignment = Assignment(tps, None)
    assert deserialize_assignment(ByteBuffer(serialize_assignment(assignment))) == assignment


def test_version_0_of_a_subscription_has_no_owned_partitions() -> None:
    data = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\xff\xff\xff\xff"
    assert deserialize_subscription(ByteBuffer(data)) == Subscription(("t",))


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00", b"\xff\xff\x00\x00\x00\x00"])
def test_bytes_that_are_no_subscription(data: bytes) -> None:
    with pytest.raises(KafkaException):
        deserialize_subscription(ByteBuffer(data))
