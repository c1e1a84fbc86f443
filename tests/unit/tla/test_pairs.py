"""The search over two state spaces side by side, held against languages counted by brute force."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

import pytest

from conformance.tla import Action, State
from conformance.tla.search import (
    ObservedProblem,
    PairSide,
    SearchEnd,
    SearchError,
    SearchLimits,
    SearchProblem,
    compare,
)
from conformance.tla.semantics.errors import EvaluationError

Edges = Mapping[int, Iterable[tuple[str, int]]]
Observations = tuple[int, ...]
LONGEST = 7
"""Observations of a word that brute force looks at."""


def side(edges: Edges, shown: Mapping[int, int], initial: Iterable[int] = (0,)) -> ObservedProblem:
    """A graph with named edges, of whose states a number is shown."""

    def successors(state: State) -> Iterable[tuple[Action, State]]:
        (number,) = state
        return [(Action(name), (target,)) for name, target in edges.get(int(str(number)), ())]

    problem = SearchProblem(("n",), lambda: [(number,) for number in initial], successors)
    return ObservedProblem(problem, ("shown",), lambda state: (shown[int(str(state[0]))],))


def words(edges: Edges, shown: Mapping[int, int], initial: Iterable[int]) -> set[Observations]:
    """Every sequence of observations without repetitions, up to a length: by brute force."""
    known: set[Observations] = set()
    pending = [((shown[number],), number) for number in initial]
    seen = set(pending)
    while pending:
        word, number = pending.pop()
        known.add(word)
        for _, target in edges.get(number, ()):
            longer = word if shown[target] == word[-1] else (*word, shown[target])
            if len(longer) <= LONGEST and (longer, target) not in seen:
                seen.add((longer, target))
                pending.append((longer, target))
    return known


def word_of(path_states: Iterable[State], shown: Mapping[int, int]) -> Observations:
    """What a path shows, without repetitions."""
    word: list[int] = []
    for (number,) in path_states:
        seen = shown[int(str(number))]
        if not word or word[-1] != seen:
            word.append(seen)
    return tuple(word)


def drawn(
    draw: random.Random,
) -> tuple[dict[int, list[tuple[str, int]]], dict[int, int], list[int]]:
    """A small specification: at most five states, of which at most three look different."""
    states = range(draw.randint(1, 5))
    edges = {
        source: [(draw.choice("AB"), draw.choice(states)) for _ in range(draw.randint(0, 3))]
        for source in states
    }
    shown = {state: draw.randrange(3) for state in states}
    return edges, shown, draw.sample(states, draw.randint(1, min(2, len(states))))


def test_random_specifications_are_compared_as_brute_force_compares_their_languages() -> None:
    draw = random.Random(39)
    outcomes = {"equal": 0, "added": 0, "removed": 0, "both": 0}
    for _ in range(1_500):
        old, new = drawn(draw), drawn(draw)
        result = compare(side(*old), side(*new))
        before, after = words(*old), words(*new)
        assert result.end is SearchEnd.EXHAUSTED
        more, less = after - before, before - after
        for lost, which, spec in ((more, PairSide.NEW, new), (less, PairSide.OLD, old)):
            distinctions = result.of(which)
            if not distinctions:
                assert not lost
                continue
            word = word_of(distinctions[0].path.states, spec[1])
            # Five states a side need at most 32 * 32 nodes; so far the two always agreed earlier.
            assert len(word) > LONGEST or word in lost
            assert len(word) == min(map(len, lost), default=len(word))
        assert result.equal == (not result.distinctions)
        outcomes[
            "both" if more and less else "added" if more else "removed" if less else "equal"
        ] += 1
    assert min(outcomes.values()) > 20


COUNT = {0: [("Up", 1)], 1: [("Up", 2)]}
SELF = {0: 0, 1: 1, 2: 2}


def test_a_removed_guard_adds_the_steps_that_it_forbade() -> None:
    free = {**COUNT, 2: [("Up", 3)]}
    result = compare(side(COUNT, SELF), side(free, {**SELF, 3: 3}))
    (added,) = result.distinctions
    assert (added.side, added.label, added.steps) == (PairSide.NEW, "Up", 1)
    assert added.path.states == ((0,), (1,), (2,), (3,))
    assert added.elsewhere == ((2,),)


def test_the_name_of_an_action_is_no_behaviour() -> None:
    renamed = {0: [("Increment", 1)], 1: [("Up", 2)]}
    assert compare(side(COUNT, SELF), side(renamed, SELF)).equal


def test_hidden_steps_change_nothing_that_is_seen() -> None:
    shown = {0: 0, 10: 0, 1: 1, 2: 2}
    detour = {0: [("Think", 10)], 10: [("Up", 1), ("Rest", 0)], 1: [("Up", 2)]}
    result = compare(side(COUNT, SELF), side(detour, shown))
    assert result.equal
    assert result.states == (3, 4)
    assert result.nodes == 3


def test_a_choice_that_is_made_earlier_out_of_sight_is_the_same_behaviour() -> None:
    """A simulation would tell the two apart; who sees only traces cannot."""
    late = {0: [("A", 1)], 1: [("B", 2), ("C", 3)]}
    early = {0: [("A", 1), ("A", 4)], 1: [("B", 2)], 4: [("C", 3)]}
    shown = {0: 0, 1: 1, 4: 1, 2: 2, 3: 3}
    assert compare(side(late, shown), side(early, shown)).equal


def test_every_action_that_distinguishes_is_listed_with_its_shortest_behaviour() -> None:
    more = {0: [("Up", 1), ("Jump", 5)], 1: [("Up", 2), ("Jump", 5), ("Fall", 6)]}
    result = compare(side(COUNT, SELF), side(more, {**SELF, 5: 5, 6: 6}))
    assert [(d.label, d.steps, len(d.path)) for d in result.distinctions] == [
        ("Jump", 2, 2),
        ("Fall", 1, 3),
    ]


def test_an_initial_state_of_one_side_alone_is_a_behaviour() -> None:
    result = compare(side(COUNT, SELF), side(COUNT, SELF, (0, 2)))
    (added,) = result.distinctions
    assert (added.side, added.label, len(added.path)) == (PairSide.NEW, None, 1)


def test_one_and_true_are_seen_as_two() -> None:
    flag = SearchProblem(("n",), lambda: [(True,)], lambda _state: [])
    one = SearchProblem(("n",), lambda: [(1,)], lambda _state: [])
    result = compare(
        *(ObservedProblem(problem, ("n",), lambda state: state) for problem in (flag, one))
    )
    assert [distinction.side for distinction in result.distinctions] == ["old", "new"]


@pytest.mark.parametrize("limits", [SearchLimits(states=3), SearchLimits(seconds=0.0)])
def test_a_limit_is_no_equality(limits: SearchLimits) -> None:
    result = compare(side(COUNT, SELF), side(COUNT, SELF), limits)
    assert result.end is SearchEnd.LIMIT
    assert not result.equal


def test_hidden_steps_without_end_reach_the_limit() -> None:
    problem = SearchProblem(
        ("n",), lambda: [(0,)], lambda state: [(Action("Tick"), (int(str(state[0])) + 1,))]
    )
    ticking = ObservedProblem(problem, ("shown",), lambda _state: (0,))
    assert compare(ticking, ticking, SearchLimits(states=50)).end is SearchEnd.LIMIT


def test_nothing_on_both_sides_is_not_equal() -> None:
    result = compare(side(COUNT, SELF, ()), side(COUNT, SELF, ()))
    assert not result.equal
    assert not result.distinctions


def test_a_formula_without_a_value_shows_the_way_to_its_state() -> None:
    def successors(state: State) -> Iterable[tuple[Action, State]]:
        if state == (1,):
            raise EvaluationError("no such field")
        return [(Action("Up"), (1,))]

    broken = ObservedProblem(
        SearchProblem(("n",), lambda: [(0,)], successors), ("n",), lambda state: state
    )
    with pytest.raises(SearchError) as error:
        compare(side(COUNT, SELF), broken)
    assert error.value.counterexample.states == ((0,), (1,))


def test_constraints_bound_both_sides() -> None:
    problem = SearchProblem(
        ("n",),
        lambda: [(0,)],
        lambda state: [(Action("Up"), (int(str(state[0])) + 1,))],
        constraints=(lambda state: state < (3,),),
    )
    bounded = ObservedProblem(problem, ("n",), lambda state: state)
    assert compare(side(COUNT, SELF), bounded).equal
