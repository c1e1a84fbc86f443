"""What a system would do by itself is compared with what the spec enables, state by state."""

from __future__ import annotations

import pytest

from conformance.replay.engine import Driver, run_path
from conformance.replay.oracle import SpecOracle
from conformance.replay.watch import StepNeverEnds
from conformance.story.kind import BehaviourKind
from conformance.tla import Action, State
from tests.unit.replay.machines import Table, actions, moves, oracle_of

EDGES = [(0, 1, "Go"), (1, 2, "Go"), (1, 0, "Back"), (2, 0, "Back"), (0, 0, "Poke")]
GO, BACK, POKE, FORK = actions("Go Back Poke Fork")


class Offering(Table):
    """Offers what its table says for its state; Poke is done to it, never by it."""

    offerable = frozenset({"Go", "Back"})

    def __init__(self, offered: dict[int, set[Action]]) -> None:
        super().__init__(moves(EDGES))
        self.offered, self.asked = offered, 0

    def offers(self) -> frozenset[Action]:
        self.asked += 1
        return frozenset(self.offered[self.x])


RIGHT = {0: {GO}, 1: {GO, BACK}, 2: {BACK}}


def test_a_system_that_offers_what_the_spec_enables_passes() -> None:
    result = run_path(Driver(Offering(RIGHT), oracle_of(EDGES)), (0,), [GO, GO, BACK, POKE])
    assert (result.steps, result.divergence) == (4, None)


def test_a_state_in_which_they_agreed_is_not_asked_again() -> None:
    system = Offering(RIGHT)
    run_path(Driver(system, oracle_of(EDGES)), (0,), [GO, BACK, GO, BACK, POKE, GO])
    assert system.asked == 2


@pytest.mark.parametrize(
    ("wrong", "path", "step", "detail"),
    [
        ({0: {GO, BACK}}, [GO], 0, ["would take Back, which the spec does not enable"]),
        ({1: {GO}}, [GO], 1, ["would not take Back, which the spec enables"]),
        (
            {2: {GO}},
            [GO, GO],
            2,
            [
                "would take Go, which the spec does not enable",
                "would not take Back, which the spec enables",
            ],
        ),
        (
            {1: set()},
            [GO],
            1,
            [
                "would not take Back, which the spec enables",
                "would not take Go, which the spec enables",
            ],
        ),
    ],
    ids=["too much at the start", "too little", "another", "none"],
)
def test_too_much_and_too_little_on_offer_are_divergences(
    wrong: dict[int, set[Action]], path: list[Action], step: int, detail: list[str]
) -> None:
    driver = Driver(Offering(RIGHT | wrong), oracle_of(EDGES))
    divergence = run_path(driver, (0,), path).divergence
    assert divergence is not None
    assert (divergence.kind, divergence.step) == (BehaviourKind.OFFERS, step)
    assert divergence.detail.splitlines() == detail
    more = [f"would take {a}, which the spec does not enable" for a in divergence.offered]
    assert more == [line for line in detail if line.startswith("would take")]
    assert divergence.allowed == ((step,),)
    assert divergence.before == ((max(step - 1, 0),),)
    assert divergence.observed == {}


def test_a_system_that_fails_when_asked_is_told_with_its_traceback() -> None:
    system = Offering({0: {GO}})  # no answer in state 1
    divergence = run_path(Driver(system, oracle_of(EDGES)), (0,), [GO]).divergence
    assert divergence is not None
    assert (divergence.kind, divergence.before) == (BehaviourKind.RAISED, ((0,),))
    assert "KeyError: 1" in divergence.detail
    assert divergence.allowed == ((1,),)
    assert divergence.actions == (GO,)


def test_a_system_that_never_answers_is_told_as_such() -> None:
    class Endless(Offering):
        def offers(self) -> frozenset[Action]:
            raise StepNeverEnds("2 s")

    divergence = Driver(Endless({}), oracle_of(EDGES)).reset((0,))
    assert divergence is not None
    assert divergence.kind is BehaviourKind.ENDLESS


class Forked(Offering):
    """Shows `x` only, not the branch that it took; it offers what branch b enables."""

    def __init__(self) -> None:
        super().__init__({0: set(), 1: {BACK}})
        self.moves = {(0, "Fork"): 1, (1, "Back"): 0}


def forking(state: State) -> list[tuple[Action, State]]:
    match state:
        case (0, _):
            return [(FORK, (1, "a")), (FORK, (1, "b"))]
        case (1, "a"):
            return [(GO, (2, "a"))]
        case (1, "b"):
            return [(BACK, (0, "b"))]
    return []


def test_offers_tell_candidates_apart_that_look_alike() -> None:
    driver = Driver(Forked(), SpecOracle(("x", "branch"), [(0, "")], forking))
    assert run_path(driver, (0, ""), [FORK]).divergence is None
    assert driver.candidates == ((1, "b"),)
    assert run_path(driver, (0, ""), [FORK, BACK, FORK]).divergence is None


def test_offers_are_told_against_the_candidate_that_is_nearest() -> None:
    for offered, detail in (({GO, FORK}, "would take Fork"), ({FORK, BACK}, "would take Fork")):
        system = Forked()
        system.offerable = frozenset({"Go", "Back", "Fork"})
        system.offered = {0: {FORK}, 1: offered}
        driver = Driver(system, SpecOracle(("x", "branch"), [(0, "")], forking))
        divergence = run_path(driver, (0, ""), [FORK]).divergence
        assert divergence is not None
        assert divergence.detail == f"{detail}, which the spec does not enable"
        assert divergence.allowed == ((1, "a"), (1, "b"))


def test_instances_of_an_action_are_told_in_order_whatever_their_arguments() -> None:
    instances = {Action("Go", (one,)) for one in (2, "b", 1, "a")}
    divergence = Driver(Offering({0: instances}), oracle_of([(0, 0, "Poke")])).reset((0,))
    assert divergence is not None
    assert [line.split(",")[0] for line in divergence.detail.splitlines()] == [
        'would take Go("a")',
        'would take Go("b")',
        "would take Go(1)",
        "would take Go(2)",
    ]
    nothing = Driver(
        Offering({0: set()}),
        SpecOracle(("x",), [(0,)], lambda state: [(one, (0,)) for one in instances]),
    ).reset((0,))
    assert nothing is not None
    assert [line.split(",")[0] for line in nothing.detail.splitlines()] == [
        'would not take Go("a")',
        'would not take Go("b")',
        "would not take Go(1)",
        "would not take Go(2)",
    ]
