"""An action may be called by an operator around the one that gives TLC's label."""

from __future__ import annotations

from pathlib import Path

from conformance.tla import Action, parse_pattern
from tests.unit.tla.small import spec

TEXT = r"""
VARIABLES x, y
Put(var, S) == \E v \in S : var = v
All(var, S) == \A v \in S : var = v
Add(i, j) == All(x', {i}) /\ Put(y', {j, 1})
One(i) == Add(i, 0)
Init == All(x, {1}) /\ Put(y, {1, 2})
Next == \E i \in {1, 2} : One(i)
"""


def test_an_event_may_name_the_operator_around_an_action(tmp_path: Path) -> None:
    bound = spec(tmp_path, TEXT, "INIT Init\nNEXT Next\n")
    assert bound.actions == (Action("Add", (1, 0)), Action("Add", (2, 0)))
    assert bound.select([parse_pattern("One(2)")]).actions == (Action("Add", (2, 0)),)
    assert bound.select([parse_pattern("One")]).actions == bound.actions


def test_a_parameter_stands_for_the_variable_that_it_assigns(tmp_path: Path) -> None:
    bound = spec(tmp_path, TEXT, "INIT Init\nNEXT Next\n")
    assert set(bound.initial_states()) == {(1, 1), (1, 2)}
    assert set(bound.successors_by(Action("Add", (2, 0)), (1, 1))) == {(2, 0), (2, 1)}
