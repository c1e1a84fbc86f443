"""What an action may read or change, as its formula says and as its steps show."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import bound
from conformance.tla import Action, ActionPattern, Fn, Spec, State, Value, find_tools
from conformance.tla.python.footprint import Footprint, StatePlace
from tests.unit.judge.locks import locks
from tests.unit.tla.small import spec

BODY = r"""
CONSTANT Names
VARIABLES at, queue, count

vars == <<at, queue, count>>
Init == at = [p \in Names |-> 0] /\ queue = <<>> /\ count = 0

Put(f, k, v) == [f EXCEPT ![k] = v]
Twice(F(_), x) == F(F(x))
Same(v) == v' = v
Other(p) == CHOOSE q \in Names : q # p

Entry(p) == at' = [at EXCEPT ![p] = @ + 1] /\ UNCHANGED <<queue, count>>
ByOperator(p) == at' = Put(at, p, 1) /\ UNCHANGED <<queue, count>>
Chosen(p) == at' = [at EXCEPT ![Other(p)] = 1] /\ UNCHANGED <<queue, count>>
Perhaps(p) == /\ at' = IF queue = <<>> THEN at ELSE [at EXCEPT ![p] = 2]
              /\ UNCHANGED <<queue, count>>
Whole(p) == at' = [q \in Names |-> 0] /\ UNCHANGED <<queue, count>>
ByParameter(p) == Same(at) /\ count' = count + at[p] /\ UNCHANGED queue
Inner(p) == \E q \in Names : at' = [at EXCEPT ![q] = 3] /\ UNCHANGED <<queue, count>>
Passed(p) == LET more(x) == x + at[p] IN count' = Twice(more, 1) /\ UNCHANGED <<at, queue>>
InGuard(p) == at' = [at EXCEPT ![p] = 1] /\ at'[p] > 0 /\ UNCHANGED <<queue, count>>
Tuple(p) == <<queue, count>>' = <<Append(queue, p), Len(queue)>> /\ UNCHANGED at
Guard(p) == ENABLED Entry(p) /\ count' = 0 /\ UNCHANGED <<at, queue>>
Next == \E p \in Names :
  \/ Entry(p) \/ ByOperator(p) \/ Chosen(p) \/ Perhaps(p) \/ Whole(p) \/ ByParameter(p)
  \/ Inner(p) \/ Passed(p) \/ InGuard(p) \/ Tuple(p) \/ Guard(p)
"""
AT = ("at", "a")
PLACES: dict[str, tuple[set[StatePlace], set[StatePlace]]] = {
    "Entry": ({AT}, {AT}),
    "ByOperator": ({AT}, {AT}),
    "Chosen": ({("at", None)}, {("at", None)}),
    "Perhaps": ({AT, ("queue", None)}, {AT}),
    "Whole": ({("at", None)}, {("at", None)}),
    "ByParameter": ({AT, ("count", None)}, {("count", None)}),
    "Inner": ({AT, ("at", "b")}, {AT, ("at", "b")}),
    "Passed": ({AT, ("count", None)}, {("count", None)}),
    "InGuard": ({AT, ("at", None)}, {AT, ("at", None)}),
    "Tuple": ({("queue", None), ("count", None)}, {("queue", None), ("count", None)}),
    "Guard": ({("at", None), ("queue", None), ("count", None)}, {("count", None)}),
}


@pytest.mark.parametrize("name", PLACES)
def test_the_places_of_an_action(tmp_path: Path, name: str) -> None:
    small = spec(tmp_path, BODY, 'CONSTANT Names = {"a", "b"}')
    footprints = small.footprints([ActionPattern(name, ("a",))], 9)
    assert footprints is not None
    places = footprints[Action(name, ("a",))]
    assert (set(places.reads), set(places.writes)) == PLACES[name]


@pytest.mark.parametrize("twice", ["Grow{}(x) + Grow{}(x)", 'Grow{}(x + at["b"]) + Grow{}(x)'])
def test_operators_that_call_others_twice_come_to_an_end(tmp_path: Path, twice: str) -> None:
    """The last one has 2^59 uses of its argument, written out; if they differ, all of it counts."""
    grows = "".join(
        f"Grow{number}(x) == {twice.format(number - 1, number - 1)}\n" for number in range(1, 60)
    )
    body = f"""
CONSTANT Names
VARIABLES at, count
Init == at = [p \\in Names |-> 0] /\\ count = 0
Grow0(x) == x
{grows}
Step == count' = Grow59(at["a"]) /\\ UNCHANGED at
Next == Step
"""
    small = spec(tmp_path, body, 'CONSTANT Names = {"a", "b"}')
    footprints = small.footprints([ActionPattern("Step")], 9)
    assert footprints is not None
    (places,) = footprints.values()
    assert {AT, ("count", None)} <= places.reads
    assert (("at", None) in places.reads) == ("b" in twice)
    assert places.writes == {("count", None)}


def test_nothing_is_said_of_a_relation_that_depends_on_more_than_the_state(tmp_path: Path) -> None:
    body = r"""
VARIABLE x
Init == x = 0
Step == x' = x + TLCGet("level")
Next == Step
"""
    assert not spec(tmp_path, body, "").footprints([ActionPattern("Step")], 9)


@pytest.mark.tlc
@pytest.mark.parametrize("name", ["locks", "produce/in-order-1b"])
def test_actions_are_refused_by_and_change_only_what_was_said(tmp_path: Path, name: str) -> None:
    """And two steps of which neither disturbs the other can be taken in either order."""
    small = name == "locks"
    model = locks(tmp_path) if small else bound(find_models([name])[0], find_tools()).spec
    patterns = [ActionPattern(kind) for kind in model.kinds]
    places = model.footprints(patterns, 9_999)
    assert places is not None
    for traced in model.traced(patterns):
        for state in _walk(model, 6):
            for index, key in traced.refusal(state) or ():
                place = model.variables[index], key
                assert _within(places[traced.action].reads, place), traced.action
    swapped = sum(_swapped(model, places, state) for state in _walk(model, 20))
    assert swapped or not small


def _walk(spec: Spec, length: int) -> Iterator[State]:
    rng = random.Random(3)
    state = next(iter(spec.initial_states()))
    for _ in range(length):
        yield state
        steps = spec.successors(state)
        state = rng.choice(steps)[1] if steps else next(iter(spec.initial_states()))


def _swapped(spec: Spec, places: dict[Action, Footprint], state: State) -> int:
    """How many pairs of steps were taken in both orders, with the same results."""
    swapped = 0
    steps = spec.successors(state)
    for action, after in steps:
        for name, before, value in zip(spec.variables, state, after, strict=True):
            for place in _changed(name, before, value):
                assert _within(places[action].writes, place), f"{action} changes {place}"
    for (first, _), (second, _) in combinations(steps, 2):
        if first != second and not _disturb(places[first], places[second]):
            there, back = _both(spec, state, first, second), _both(spec, state, second, first)
            assert there == back, (first, second)
            swapped += 1
    return swapped


def _both(spec: Spec, state: State, first: Action, second: Action) -> set[State]:
    between = spec.successors_by(first, state)
    return {after for middle in between for after in spec.successors_by(second, middle)}


def _changed(name: str, before: Value, after: Value) -> Iterator[StatePlace]:
    if before == after:
        return
    if isinstance(before, Fn) and isinstance(after, Fn) and before.keys() == after.keys():
        keys = [key for key in before if before[key] != after[key]]
        if all(isinstance(key, str | int) for key in keys):
            yield from ((name, key) for key in keys)
            return
    yield name, None


def _within(places: frozenset[StatePlace], place: StatePlace) -> bool:
    return place in places or (place[0], None) in places


def _disturb(first: Footprint, second: Footprint) -> bool:
    return _meet(first.writes, second.reads) or _meet(second.writes, first.reads)


def _meet(some: frozenset[StatePlace], others: frozenset[StatePlace]) -> bool:
    return any(a == c and (b is None or d is None or b == d) for a, b in some for c, d in others)
