"""Why an action is not enabled: what stands in its way whatever the next state is."""

from __future__ import annotations

import pytest

from conformance.tla import Action, Spec, make_function
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

BODY = r"""
CONSTANT Brokers
VARIABLES log, hw
vars == <<log, hw>>
End(b) == Len(log[b])
Below(b, end) == hw[b] < end
Raise(b) ==
  /\ hw' = [hw EXCEPT ![b] = @ + 1]
  /\ Below(b, End(b))
  /\ UNCHANGED log
RaiseAny == \E b \in Brokers : Raise(b)
RaiseTo(b) == \E o \in 3..4 : o <= End(b) /\ hw' = [hw EXCEPT ![b] = o] /\ UNCHANGED log
Either(b) == (hw[b] > 5 /\ UNCHANGED vars) \/ Raise(b)
Chosen(b) == IF hw[b] = 0 THEN Raise(b) ELSE LET end == End(b) IN end > 0 /\ Raise(b)
Undefined == Head(log["b2"]) = 1 /\ UNCHANGED vars
Never(b) == hw'[b] > hw[b] /\ hw' = hw /\ UNCHANGED log
Idle == UNCHANGED vars
"""
STATE = (make_function({"b1": (1,), "b2": ()}), make_function({"b1": 0, "b2": 2}))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return spec(tmp_path_factory.mktemp("obstacle"), BODY, 'CONSTANT Brokers = {"b1", "b2"}')


def told(found: Spec, name: str, *args: str) -> list[str]:
    obstacle = found.obstacle(Action(name, args), STATE)
    return [] if obstacle is None else obstacle.render().splitlines()


def test_the_guard_is_named_wherever_it_stands(found: Spec) -> None:
    assert told(found, "Raise", "b2") == [
        "Small:11:6: Below(b, End(b)) is FALSE",
        '  for b = "b2", end = 0',
        "  Small:8:18: hw[b] < end is FALSE",
        "    Small:8:18: hw[b] is 2",
        "    Small:8:26: end is 0",
    ]


def test_of_a_choice_every_way_is_barred(found: Spec) -> None:
    either = told(found, "Either", "b2")
    assert either[0].endswith(r"(hw[b] > 5 /\ UNCHANGED vars) \/ Raise(b) is FALSE")
    assert "  Small:15:15: hw[b] > 5 is FALSE" in either
    assert any("Below(b, End(b)) is FALSE" in line for line in either)
    ways = told(found, "RaiseTo", "b1")
    assert [line for line in ways if line.startswith("  for")] == ["  for o = 3", "  for o = 4"]
    assert "  Small:14:31: o <= End(b) is FALSE" in ways


def test_through_if_and_let(found: Spec) -> None:
    assert told(found, "Chosen", "b2")[0].endswith("end > 0 is FALSE")


def test_a_part_without_value_stands_in_the_way(found: Spec) -> None:
    assert "is undefined: Head of the empty sequence" in told(found, "Undefined")[0]


@pytest.mark.parametrize(
    "action",
    [Action("RaiseAny"), Action("Raise", ("b1",)), Action("Never", ("b1",)), Action("Idle")],
)
def test_nothing_is_said_where_an_action_is_enabled_or_only_its_next_state_is_at_fault(
    found: Spec, action: Action
) -> None:
    assert found.obstacle(action, STATE) is None
