"""A pattern names an operator over a set that the state decides, with part of its arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import (
    ActionPattern,
    ObservedPart,
    PartialRecord,
    Spec,
    SpecError,
    State,
    Value,
    make_record,
    parse_place,
)
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

BODY = r"""
VARIABLES wire, last
Init == wire = {} /\ last = 0
Receive(m) == wire' = wire \ {m} /\ last' = m.no
Lose(m) == wire' = wire \ {m} /\ UNCHANGED last
Deep(k, m) == m.no > k /\ Receive(m)
Strange(m) == wire' = wire \ {m} /\ last' = 100
Whole(k) == wire = {} /\ Receive([no |-> k, entries |-> <<>>])
Odd(m) == IF m.no = 9 THEN Receive(m) ELSE Strange(m)
Next == \/ \E m \in wire : /\ m.no < 9
                           /\ \/ Receive(m)
                              \/ LET n == m IN Lose(n)
        \/ \E m \in wire : Deep(8, m)
        \/ \E m \in wire : Strange(m)
        \/ Whole(4)
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return spec(tmp_path_factory.mktemp("small"), BODY)


def message(no: int, *entries: int) -> Value:
    return make_record(no=no, entries=entries)


WIRE: State = frozenset([message(1), message(2, 7), message(3, 7, 8), message(9)]), 0


def seen(**parts: Value) -> PartialRecord:
    return PartialRecord(
        tuple(ObservedPart(parse_place(PLACES[name]), parts[name]) for name in parts)
    )


PLACES = {
    "no": "no",
    "length": "Len(entries)",
    "first": "entries[1]",
    "second": r"2 \in DOMAIN entries",
}


@pytest.mark.parametrize(
    ("argument", "received"),
    [
        (None, {1, 2, 3, 9}),
        (message(2, 7), {2}),
        (seen(no=3), {3}),
        (seen(length=0), {1, 9}),
        (seen(length=5), set()),
        (seen(first=7), {2, 3}),
        (seen(first=7, length=2), {3}),
        (seen(second=False), {1, 2, 9}),
    ],
    ids=str,
)
def test_what_is_known_of_an_argument_narrows_the_steps(
    small: Spec, argument: Value | PartialRecord | None, received: set[int]
) -> None:
    selection = small.select([ActionPattern("Receive", (argument,))])
    steps = small.successors_in(selection, WIRE)
    assert {after[1] for _, after in steps} == received
    assert {action.name for action, _ in steps} <= {"Next"}, "the name that TLC gives the step"
    every = small.successors(WIRE)
    assert all(step in every for step in steps)


def test_other_operators_are_no_part_of_it(small: Spec) -> None:
    lost = small.successors_in(small.select([ActionPattern("Lose")]), WIRE)
    assert len(lost) == 3
    assert {after[1] for _, after in lost} == {0}
    with pytest.raises(SpecError, match="no action Send"):
        small.select([ActionPattern("Send")])


def test_what_cannot_be_told_apart_is_an_error(tmp_path: Path) -> None:
    odd = BODY.replace(": Strange(m)", ": Odd(m)")
    with pytest.raises(SpecError, match="Name the action around it"):
        spec(tmp_path, odd).select([ActionPattern("Receive")])


def test_what_is_within_an_action_counts_too(small: Spec) -> None:
    """`Whole(4)` is an action of TLC's; what it does is a `Receive`."""
    empty: State = frozenset[Value](), 0
    (step,) = small.successors_in(small.select([ActionPattern("Receive")]), empty)
    assert (str(step[0]), step[1][1]) == ("Whole(4)", 4)
