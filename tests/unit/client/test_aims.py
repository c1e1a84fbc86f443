"""What each example aims at: every answer that does not come by itself gets its examples."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from conformance.client.answers import WISHES
from conformance.client.clock import LoopClock
from conformance.client.duties import AIMS, FATAL, Act, Duties, DutyKind
from conformance.client.example import has_instance
from conformance.client.wishes import Wishes, aims_of

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


def wishes_of(aim: DutyKind, *, is_static: bool) -> Wishes:
    """The wishes of an example with this aim, before anything has been answered."""
    numbers = range(1, 2 * len(AIMS) + 1)
    number = next(n for n in numbers if aims_of(n, is_static=is_static)[0] == aim)
    wishes = Wishes("1-2", 15, Duties(LoopClock()), random.Random("1-2"))
    wishes.aim_at(number, is_static=is_static)
    return wishes


@pytest.mark.parametrize("aim", AIMS, ids=str)
@pytest.mark.parametrize("is_static", [True, False], ids=["static", "dynamic"])
def test_an_example_mostly_wishes_its_aim_until_it_is_reached(
    aim: DutyKind, *, is_static: bool
) -> None:
    if not is_static and aim not in OF_DYNAMIC:
        return  # no example of such a client has this aim: the test above
    wishes = wishes_of(aim, is_static=is_static)
    first = Counter(wishes.answers(aim.api, calm=False)[0] for _ in range(200))
    assert first[aim.answer] > 100, first
    others = {api: {wishes.answers(api, calm=False)[0] for _ in range(200)} for api in REFUSED}
    assert not any(others[api] & FATAL - {aim.answer} for api in others), "it would end before"
    wishes.duties.owe(aim, 1.0)
    wishes.duties.meet(aim.owes)  # the aim is reached
    first = Counter(wishes.answers(aim.api, calm=False)[0] for _ in range(200))
    assert first[aim.answer] < 100, first


def test_what_the_aim_asked_for_is_awaited_without_another_fault() -> None:
    aim = AIMS[0]
    wishes = wishes_of(aim, is_static=True)
    wishes.duties.owe(aim, 1.0)
    assert wishes.awaits
    assert wishes.answers(aim.api, calm=True)[0] == aim.answer


def test_an_answer_for_which_a_variant_asks_nothing_is_an_aim_no_longer() -> None:
    aim = next(kind for kind in AIMS if (kind.api, kind.owes) == ("OffsetCommit", Act.END))
    wishes = wishes_of(aim, is_static=True)
    assert wishes.aim == aim
    wishes.given[aim.api, aim.answer] = 2  # and nothing was owed
    assert wishes.aim == wishes.aims[1] != aim
    wishes.duties.owe(aim, 1.0)
    assert wishes.aim == aim


def test_a_client_that_commits_nothing_gets_aims_of_other_requests() -> None:
    aim = next(kind for kind in AIMS if kind.api == "OffsetCommit")
    wishes = wishes_of(aim, is_static=False)
    wishes.answered = wishes.requests
    assert wishes.aim.api != "OffsetCommit"
    wishes.has_committed = True
    assert wishes.aim == aim
