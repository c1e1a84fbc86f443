"""Groups of KIP-848 by their records: stories of what a coordinator stored, and what is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.inspect.consumer_groups import ConsumerGroups
from conformance.inspect.groups import CONSUMER, GroupLog, GroupRecordCopy, JudgedGroup, Topics
from conformance.inspect.history import Elections, MetadataHistory, Registration
from conformance.inspect.models import CONSUMER_GROUP
from conformance.modelcheck.specifications import Specifications

SPECIFICATION = Specifications()[CONSUMER_GROUP]
NOW = 10_000_000


def topics(partitions: int = 2) -> Topics:
    """One topic `t` with the id `T`."""
    created = Registration(1, 0, 1, 0, (1,), 0, (1,))
    elections = Elections("T", (created,), True)
    return Topics(
        MetadataHistory(
            {("t", number): elections for number in range(partitions)},
            {"t": partitions},
            frozenset(),
            100,
            NOW,
        )
    )


@dataclass(frozen=True)
class Write:
    """A record: the kind of its key without prefix, the member, the value."""

    kind: str
    value: dict[str, Any] | None
    member: str = ""


def parts(*numbers: int) -> list[dict[str, Any]]:
    return [{"topicId": "T", "partitions": list(numbers)}] if numbers else []


def epoch(number: int) -> Write:
    return Write("Metadata", {"epoch": number})


def subscribed(member: str, instance: str | None = None, regex: str | None = None) -> Write:
    value = {
        "instanceId": instance, "subscribedTopicNames": ["t"], "subscribedTopicRegex": regex,
        "serverAssignor": None,
    }  # fmt: skip
    return Write("MemberMetadata", value, member)


def target(member: str, *numbers: int) -> Write:
    return Write("TargetAssignmentMember", {"topicPartitions": parts(*numbers)}, member)


def assigned_in(number: int) -> Write:
    return Write("TargetAssignmentMetadata", {"assignmentEpoch": number})


def current(
    member: str, number: int, *has: int, state: int = 0, gives_back: Sequence[int] = ()
) -> Write:
    value = {
        "memberEpoch": number, "previousMemberEpoch": number - 1, "state": state,
        "assignedPartitions": parts(*has), "partitionsPendingRevocation": parts(*gives_back),
    }  # fmt: skip
    return Write("CurrentMemberAssignment", value, member)


def gone(member: str) -> list[Write]:
    kinds = ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata")
    return [Write(kind, None, member) for kind in kinds]


JOINED = [subscribed("a"), epoch(1), target("a", 0, 1), assigned_in(1), current("a", 1, 0, 1)]
SECOND = [
    subscribed("b"), epoch(2), target("a", 0), target("b", 1), assigned_in(2),
    current("b", 2, state=2),
]  # fmt: skip
GIVES_BACK = [current("a", 1, 0, state=1, gives_back=[1])]
DONE = [current("a", 2, 0)]
TAKES = [current("b", 2, 1)]
LEAVES = [*gone("a"), epoch(3)]
HISTORY = [JOINED, SECOND, GIVES_BACK, DONE, TAKES, LEAVES]


def judged(batches: Sequence[Sequence[Write]], *, cleaned: int = 0, known: int = 2) -> JudgedGroup:
    records: list[GroupRecordCopy] = []
    for batch in batches:
        base = len(records)
        for number, one in enumerate(batch, base):
            key = {"groupId": "g"} | ({"memberId": one.member} if one.member else {})
            text = None if one.value is None else json.dumps(one.value)
            records.append(
                GroupRecordCopy(number, base, NOW, f"ConsumerGroup{one.kind}Key", key, text)
            )
    groups = ConsumerGroups(SPECIFICATION, topics(known), {("b1", 0): cleaned})
    return groups.judge(GroupLog("g", CONSUMER, 0, "b1", tuple(records)))


def told(group: JudgedGroup) -> dict[str, tuple[int, int]]:
    return {one.kind: one.offsets or (-1, -1) for one in group.notes.discoveries}


def test_a_rebalance_as_it_should_be() -> None:
    group = judged(HISTORY)
    assert told(group) == {}
    assert all(group.truths.values())
    assert [(one.state, one.generation) for one in group.rows] == [
        ("Stable", 1),
        ("Reconciling", 2),
        ("Reconciling", 2),
        ("Reconciling", 2),
        ("Stable", 2),
        ("Assigning", 3),
    ]
    assert group.rows[4].assigned == {"a": {"t-0"}, "b": {"t-1"}}


FAULTS: dict[str, tuple[list[list[Write]], dict[str, tuple[int, int]]]] = {
    "a partition is given out before it was given back": (
        [JOINED, [*SECOND[:-1], current("b", 2, 1)]],
        {"HeldByOneMember": (5, 11)},
    ),
    "it is to be given back, and has been given out": (
        [JOINED, SECOND, GIVES_BACK, TAKES],
        {"HeldByOneMember": (12, 13)},
    ),
    "a member keeps what it is to give back": (
        [JOINED, SECOND, [current("a", 1, 0, 1, state=1, gives_back=[1])]],
        {"RevokedIsNotAssigned": (11, 12)},
    ),
    "the target forgets a partition": (
        [[subscribed("a"), epoch(1), target("a", 0), assigned_in(1), current("a", 1, 0)]],
        {"TargetIsComplete": (0, 5)},
    ),
    "the target gives a partition twice": (
        [JOINED, [*SECOND[:2], target("a", 0, 1), *SECOND[3:]]],
        {"TargetIsComplete": (5, 11)},
    ),
    "a member that is done lacks what it was given": (
        [*HISTORY[:4], [current("b", 2)]],
        {"StableIsAssigned": (13, 14)},
    ),
    "a member is ahead of the target": (
        [*HISTORY[:3], [current("a", 3, 0)]],
        {"EpochsInOrder": (12, 13)},
    ),
    "two members of one instance": (
        [[subscribed("a", "i"), *JOINED[1:]], [subscribed("b", "i"), *SECOND[1:]]],
        {"OneMemberPerInstance": (5, 11)},
    ),
    "the group's epoch falls": (
        [*HISTORY, [epoch(2)]],
        {"EpochsNeverFall": (18, 19)},
    ),
    "a member's epoch falls": (
        [*HISTORY[:5], [current("b", 1, 1, state=2)]],
        {"EpochsNeverFall": (14, 15)},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_no_coordinator_stores(name: str) -> None:
    batches, expected = FAULTS[name]
    found = told(judged(batches))
    assert expected.items() <= found.items(), found


def test_every_formula_of_the_model_has_a_fault() -> None:
    shown = {kind for _, expected in FAULTS.values() for kind in expected}
    assert shown == {*SPECIFICATION.invariants, *SPECIFICATION.properties}


def test_a_group_that_was_deleted_begins_again() -> None:
    deleted = [
        [*gone("b"), Write("TargetAssignmentMetadata", None), Write("Metadata", None)],
        JOINED,
    ]
    group = judged([*HISTORY, *deleted])
    assert told(group) == {}
    assert [one.state for one in group.rows[-2:]] == ["Dead", "Stable"]


def test_a_static_member_that_left_for_a_while_comes_back_under_another_id() -> None:
    first = [subscribed("a", "i"), *JOINED[1:]]
    left = [current("a", -2, 0, 1)]
    back = [*gone("a"), subscribed("c", "i"), target("c", 0, 1), current("c", 1, 0, 1)]
    assert told(judged([first, left, back])) == {}


def test_a_compacted_part_is_not_judged_but_what_it_leads_to_is() -> None:
    """The records of `a` before its last one are gone, as a cleaner leaves the log."""
    hole = [[*SECOND, *JOINED[1:2]], TAKES, DONE]
    assert told(judged(hole)) != {}
    end = sum(len(batch) for batch in hole[:2])
    assert "EpochsNeverFall" not in told(judged(hole, cleaned=end))


def test_what_is_not_known_is_told_and_not_held_against_the_group() -> None:
    regex = [subscribed("a", regex="t.*"), *JOINED[1:2], target("a", 0), *JOINED[3:]]
    group = judged([regex, [current("a", 1, 0)]])
    assert "TargetIsComplete" not in told(group)
    assert any("regular expression" in one.why for one in group.notes.unjudged)


def test_who_waits_for_its_regular_expression_need_not_have_its_target() -> None:
    """From 4.2 on who changes it has nothing until it is resolved; the target is as before."""
    by_name = [JOINED, [subscribed("a")], [current("a", 1)]]
    by_regex = [JOINED, [subscribed("a", regex="u.*")], [current("a", 1)]]

    assert "StableIsAssigned" in told(judged(by_name))
    group = judged(by_regex)

    assert "StableIsAssigned" not in told(group)
    assert any("who is done has its target" in one.what for one in group.notes.unjudged)
