"""The search for a behaviour that satisfies a temporal formula, against one that tries them all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise, product

import pytest

from conformance.tla.search.lasso import Lasso, StepGraph, lasso
from conformance.tla.semantics.behaviours import (
    AllOf,
    AnyOf,
    Claim,
    Temporal,
    Unless,
    Until,
    all_of,
    always,
    any_of,
    eventually,
    negation,
)

STATES = 4
Step = tuple[int, int]


def claim(number: int, holds: Callable[[int, int], bool], *, of_steps: bool) -> Claim:
    return Claim(number, holds, of_steps)  # type: ignore[arg-type]  # states are numbers here


def random_claims(dice: random.Random) -> list[Temporal]:
    """Three of states, and as TLA+ has them, one of steps that is true wherever nothing changes."""
    sets = [{state for state in range(STATES) if dice.random() < 0.5} for _ in range(3)]
    steps = {pair for pair in product(range(STATES), repeat=2) if dice.random() < 0.6}
    of_states = [
        claim(number, lambda s, _t, members=members: s in members, of_steps=False)
        for number, members in enumerate(sets)
    ]
    return [*of_states, claim(3, lambda s, t: s == t or (s, t) in steps, of_steps=True)]


def random_formula(dice: random.Random, claims: list[Temporal], depth: int) -> Temporal:
    """Of [] and <>; behind these only comes a claim of steps, `[A]_v` or its negation."""
    if depth == 0:
        one = dice.choice(claims[:3])
        return one if dice.random() < 0.5 else negation(one)
    match dice.randrange(7):
        case 0:
            return always(claims[3])
        case 1:
            return eventually(negation(claims[3]))
        case 2:
            return always(eventually(negation(claims[3])))
        case 3 | 4:
            wrap = dice.choice([always, eventually])
            return wrap(random_formula(dice, claims, depth - 1))
        case _:
            join = dice.choice([all_of, any_of])
            return join(random_formula(dice, claims, depth - 1) for _ in range(2))


def strong_fairness(dice: random.Random, claims: list[Temporal]) -> Temporal:
    enabled = dice.choice(claims[:3])
    return any_of([eventually(always(negation(enabled))), always(eventually(negation(claims[3])))])


def lassos(graph: StepGraph, longest: int) -> Iterator[tuple[list[int], int]]:
    """Every path of so many states that ends where it was before, and where."""

    def go_on(path: list[int]) -> Iterator[tuple[list[int], int]]:
        for after in (path[-1], *graph.successors[path[-1]]):
            yield from ((path, back) for back, one in enumerate(path) if one == after)
            if len(path) < longest:
                yield from go_on([*path, after])

    for state in graph.initial:
        yield from go_on([state])


def is_true(formula: Temporal, path: list[int], back: int) -> bool:
    """The formula in the behaviour that goes from the path's end back to that place."""
    after = [*range(1, len(path)), back]

    def at(one: Temporal, place: int) -> bool:
        match one:
            case Claim():
                states = path[place], path[after[place]]
                return one.holds(*states) is one.wanted  # type: ignore[arg-type]
            case AllOf(parts):
                return all(at(part, place) for part in parts)
            case AnyOf(parts):
                return any(at(part, place) for part in parts)
            case Until() | Unless():
                return negation_free(one, place)

    def negation_free(one: Until | Unless, place: int) -> bool:
        for _ in range(2 * len(path)):
            if isinstance(one, Until):
                if at(one.goal, place):
                    return True
                if not at(one.meanwhile, place):
                    return False
            elif not at(one.kept, place):
                return False
            elif at(one.freed, place):
                return True
            place = after[place]
        return isinstance(one, Unless)

    return at(formula, 0)


def random_graph(dice: random.Random) -> StepGraph:
    successors = [
        tuple(t for t in range(STATES) if t != s and dice.random() < 0.4) for s in range(STATES)
    ]
    return StepGraph([0], successors, lambda one, s, t: one.holds(s, t))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(6))
def test_a_behaviour_is_found_exactly_if_there_is_one(seed: int) -> None:
    dice = random.Random(seed)
    there = 0
    for _ in range(80):
        graph, claims = random_graph(dice), random_claims(dice)
        formula = random_formula(dice, claims, 3)
        if dice.random() < 0.5:
            formula = all_of([formula, strong_fairness(dice, claims)])
        found = lasso(graph, formula)
        if found is None:
            assert not any(is_true(formula, path, back) for path, back in lassos(graph, 6))
        else:
            there += 1
            assert is_behaviour(graph, found)
            assert is_true(formula, *unrolled(found))
    assert 10 < there < 70


def is_behaviour(graph: StepGraph, found: Lasso) -> bool:
    states = [*found.path, *found.cycle]
    steps = pairwise(states)
    closed = not found.cycle or found.cycle[-1] == found.path[-1]
    return states[0] in graph.initial and closed and all(t in graph.successors[s] for s, t in steps)


def unrolled(found: Lasso) -> tuple[list[int], int]:
    """The path, and the place to which its end goes back."""
    states = [*found.path, *found.cycle[:-1]]
    return states, len(found.path) - 1
