"""What stands at the end of a divergence's story: why the spec does not allow it."""

from __future__ import annotations

import pytest

from conformance.replay.engine import Divergence
from conformance.stages.reasons import reasons
from conformance.story.behaviour import reason_lines
from conformance.story.kind import BehaviourKind
from conformance.tla import Action, Spec, State
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

BODY = """
VARIABLE n
Init == n = 0
Raise(k) == n + k < 5 /\\ n' = n + k
Small == n < 5
Next == \\E k \\in 1..3 : Raise(k)
"""
START: State = (0,)
FULL: State = (4,)
RAISE = Action("Raise", (1,))
BARRED = [
    "Why the spec does not enable Raise({k}):",
    "  Small:6:13: n + k < 5 is FALSE",
    "    Small:6:13: n + k is {sum}",
]


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return spec(tmp_path_factory.mktemp("reasons"), BODY)


def told(counter: Spec, found: Divergence) -> list[str]:
    return list(reason_lines(reasons(counter, found)))


def diverged(
    kind: BehaviourKind,
    *,
    before: State = START,
    allowed: tuple[State, ...] = (FULL,),
    detail: str = "",
    offered: tuple[Action, ...] = (),
    action: Action = RAISE,
) -> Divergence:
    return Divergence(kind, START, (action,), (before,), allowed, {}, detail, offered)


def barred(k: int) -> list[str]:
    return [line.format(k=k, sum=4 + k) for line in BARRED]


def test_of_a_broken_invariant_the_part_that_is_false(counter: Spec) -> None:
    found = diverged(BehaviourKind.INVARIANT, before=(7,), detail="Small")
    assert told(counter, found) == [
        "Why Small is false:",
        "  Small:7:10: n < 5 is FALSE",
        "    Small:7:10: n is 7",
    ]


def test_of_steps_on_offer_what_stands_in_their_way_three_at_most(counter: Spec) -> None:
    steps = tuple(Action("Raise", (k,)) for k in range(1, 6))
    found = diverged(BehaviourKind.OFFERS, offered=steps)
    assert told(counter, found) == [line for k in (1, 2, 3) for line in barred(k)]


def test_of_a_recorded_step_what_stands_in_its_way(counter: Spec) -> None:
    found = diverged(BehaviourKind.NOT_ENABLED, before=FULL, action=Action("Raise", (2,)))
    assert told(counter, found) == barred(2)


@pytest.mark.parametrize(
    "found",
    [
        diverged(BehaviourKind.NOT_ALLOWED),
        diverged(BehaviourKind.RAISED),
        diverged(BehaviourKind.OFFERS, detail="would not take Raise(1), which the spec enables"),
        diverged(BehaviourKind.OFFERS, offered=(Action("Unheard"),)),
        diverged(BehaviourKind.OFFERS, offered=(RAISE,), allowed=(START,)),
        diverged(BehaviourKind.NOT_ENABLED, before=FULL, action=Action("Both", ("Raise", "Raise"))),
        diverged(BehaviourKind.INVARIANT, before=(7,), detail="Unheard"),
    ],
    ids=lambda found: f"{found.kind}-{'-'.join(map(str, found.offered))}",
)
def test_nothing_where_the_spec_has_nothing_to_say(counter: Spec, found: Divergence) -> None:
    assert told(counter, found) == []
