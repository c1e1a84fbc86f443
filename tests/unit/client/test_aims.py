"""What each example aims at: every answer that does not come by itself gets its examples."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance.client.answers import WISHES
from conformance.client.duties import AIMS, FATAL, Act, DutyKind
from conformance.client.example import ClientKind, ExamplePlan, _Example, aim_of
from conformance.client.subject import JoiningClient

STATIC = JoiningClient("orders", frozenset({"range"}), "instance", joins_twice=True)
REFUSED = [api for api, errors in WISHES.items() if errors]
EXAMPLES = range(1, 2 * len(AIMS) + 1)


def test_every_error_that_has_a_client_join_again_or_end_is_an_aim() -> None:
    asked = {
        (api, error)
        for api, errors in WISHES.items()
        for error in errors
        if error not in ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
    }
    assert {(aim.api, aim.answer) for aim in AIMS} == asked - {
        ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"),  # a commit may be left at that
        ("OffsetCommit", "REBALANCE_IN_PROGRESS"),  # of the generation before: ILLEGAL_GENERATION
    }
    assert {aim.owes for aim in AIMS} == {Act.JOIN, Act.END}


def test_each_aim_has_an_example_of_a_static_member_and_one_of_a_dynamic() -> None:
    assert {aim_of(number) for number in EXAMPLES if number % 2} == set(AIMS)
    assert {aim_of(number) for number in EXAMPLES if number % 2 == 0} == set(AIMS)
    assert Counter(map(aim_of, EXAMPLES)) == dict.fromkeys(AIMS, 2)
    assert aim_of(EXAMPLES[-1] + 1) == aim_of(1)


def no_kind(subject: JoiningClient) -> ClientKind:
    """Nobody joins here."""
    raise AssertionError(subject)


def example_of(aim: DutyKind, folder: Path) -> _Example:
    """A static member's example with this aim, before anything has been answered."""
    number = next(one for one in EXAMPLES if one % 2 == 0 and aim_of(one) == aim)
    example = _Example(ExamplePlan("x", 1), number, no_kind, False, folder)
    example.subject = STATIC
    return example


@pytest.mark.parametrize("aim", AIMS, ids=str)
def test_an_example_mostly_wishes_its_aim_until_it_is_reached(
    aim: DutyKind, tmp_path: Path
) -> None:
    example = example_of(aim, tmp_path)
    first = Counter(example._wishes(aim.api)[0] for _ in range(200))
    assert first[aim.answer] > 100, first
    others = {api: {example._wishes(api)[0] for _ in range(200)} for api in REFUSED}
    assert not any(others[api] & FATAL - {aim.answer} for api in others), "it would end before"
    example._duties.owe(aim, 1.0)  # the aim is reached
    first = Counter(example._wishes(aim.api)[0] for _ in range(200))
    assert first[aim.answer] < 100, first
