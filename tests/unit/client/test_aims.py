"""What each example aims at: every answer that does not come by itself gets its examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.client.answers import WISHES
from conformance.client.duties import AIMS, FATAL, Act, DutyKind
from conformance.client.example import (
    ClientKind,
    ExamplePlan,
    _Example,
    aims_of,
    has_instance,
)
from conformance.client.subject import JoiningClient

DYNAMIC = JoiningClient("orders", frozenset({"range"}), None, joins_twice=True)
STATIC = replace(DYNAMIC, instance="instance")
REFUSED = [api for api, errors in WISHES.items() if errors]
OF_DYNAMIC = {aim for aim in AIMS if aim.answer != "FENCED_INSTANCE_ID"}


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


@pytest.mark.parametrize(("is_static", "aims"), [(True, set(AIMS)), (False, OF_DYNAMIC)])
def test_each_aim_that_a_kind_of_client_can_come_to_has_an_example(
    aims: set[DutyKind], *, is_static: bool
) -> None:
    numbers = [n for n in range(1, 2 * len(AIMS) + 1) if has_instance(n) is is_static]
    assert {aims_of(number, is_static=is_static)[0] for number in numbers} == aims
    for number in numbers:
        assert Counter(aims_of(number, is_static=is_static)) == dict.fromkeys(aims, 1)
    again = aims_of(numbers[-1] + 2, is_static=is_static)
    assert again == aims_of(numbers[0], is_static=is_static)


def no_kind(subject: JoiningClient) -> ClientKind:
    """Nobody joins here."""
    raise AssertionError(subject)


def example_of(aim: DutyKind, subject: JoiningClient, folder: Path) -> _Example:
    """An example of this client with this aim, before anything has been answered."""
    example = _Example(ExamplePlan("x", 1), 2, no_kind, False, folder)
    example.subject = subject
    static = subject.instance is not None
    numbers = range(1, 2 * len(AIMS) + 1)
    example._aims = next(aims for n in numbers if (aims := aims_of(n, is_static=static))[0] == aim)
    return example


@pytest.mark.parametrize("aim", AIMS, ids=str)
@pytest.mark.parametrize("subject", [STATIC, DYNAMIC], ids=["static", "dynamic"])
def test_an_example_mostly_wishes_its_aim_until_it_is_reached(
    aim: DutyKind, subject: JoiningClient, tmp_path: Path
) -> None:
    if subject is DYNAMIC and aim not in OF_DYNAMIC:
        return  # no example of such a client has this aim: the test above
    example = example_of(aim, subject, tmp_path)
    first = Counter(example._wishes(aim.api)[0] for _ in range(200))
    assert first[aim.answer] > 100, first
    others = {api: {example._wishes(api)[0] for _ in range(200)} for api in REFUSED}
    assert not any(others[api] & FATAL - {aim.answer} for api in others), "it would end before"
    example._duties.owe(aim, 1.0)  # the aim is reached
    first = Counter(example._wishes(aim.api)[0] for _ in range(200))
    assert first[aim.answer] < 100, first


def test_an_answer_for_which_a_variant_asks_nothing_is_an_aim_no_longer(tmp_path: Path) -> None:
    aim = next(kind for kind in AIMS if (kind.api, kind.owes) == ("OffsetCommit", Act.END))
    example = example_of(aim, STATIC, tmp_path)
    assert example._aim == aim
    example.given[aim.api, aim.answer] = 2  # and nothing was owed
    assert example._aim == example._aims[1] != aim
    example._duties.owe(aim, 1.0)
    assert example._aim == aim


def test_a_client_that_commits_nothing_gets_aims_of_other_requests(tmp_path: Path) -> None:
    aim = next(kind for kind in AIMS if kind.api == "OffsetCommit")
    example = example_of(aim, DYNAMIC, tmp_path)
    example.answered = example.plan.requests
    assert example._aim.api != "OffsetCommit"
    example._seen["OffsetCommit", "STABLE"] += 1
    assert example._aim == aim
