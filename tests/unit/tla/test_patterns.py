"""An action of which only a part is known: no argument that is given gets enumerated."""

from __future__ import annotations

import pytest

from conformance.errors import DataError, SpecError
from conformance.tla import Action, ActionPattern, Spec, TooManyInstances, parse_pattern
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

BODY = r"""
CONSTANTS Brokers, Offsets
VARIABLES log, last
Init == log = [b \in Brokers |-> 0] /\ last = "none"
Add(b, o) == log[b] = o /\ log' = [log EXCEPT ![b] = o + 1] /\ last' = b
Copy(b, c) == log' = [log EXCEPT ![b] = log[c]] /\ last' = b
Crash(b, o, p, q) == o < log[b] /\ p < o /\ q < p /\ log' = [log EXCEPT ![b] = o] /\ last' = b
Copies(c) == \E b \in Brokers \ {c} : Copy(b, c)
Flag(on) == on = TRUE /\ UNCHANGED <<log, last>>
Next ==
  \/ \E b \in Brokers, o \in Offsets : Add(b, o)
  \/ \E c \in Brokers : Copies(c) \/ (c = "b1" /\ last' = "b1" /\ UNCHANGED log)
  \/ \E b \in Brokers, o \in Offsets, p \in Offsets, q \in Offsets : Crash(b, o, p, q)
  \/ \E on \in BOOLEAN : Flag(on)
"""
CONFIG = 'CONSTANT Brokers = {"b1", "b2", "b3"}\nCONSTANT Offsets = {0, 1, 2}'


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return spec(tmp_path_factory.mktemp("patterns"), BODY, CONFIG)


PATTERNS = [
    "Add",
    'Add("b1", _)',
    'Add("b2", 1)',
    'Add("b4", 1)',
    "Copy",
    'Copy("b1", _)',
    'Copy(_, "b2")',
    'Crash("b1", _, 0, _)',
    "Flag(TRUE)",
    "Flag(1)",
    "Next",
]


@pytest.mark.parametrize("text", PATTERNS)
def test_a_pattern_selects_the_instances_that_it_admits(found: Spec, text: str) -> None:
    pattern = parse_pattern(text)
    expected = [action for action in found.actions if pattern.admits(action)]
    assert list(found.select([pattern]).actions) == expected
    assert bool(expected) is (text not in ('Add("b4", 1)', "Flag(1)"))


@pytest.mark.parametrize("text", PATTERNS)
def test_what_it_leads_to_is_what_the_whole_relation_gives(found: Spec, text: str) -> None:
    pattern = parse_pattern(text)
    selection = found.select([pattern])
    for state in [
        *found.initial_states(),
        *(t for s in found.initial_states() for _, t in found.successors(s)),
    ]:
        whole = [pair for pair in found.successors(state) if pattern.admits(pair[0])]
        assert set(found.successors_in(selection, state)) == set(whole)


def test_patterns_that_overlap_select_an_instance_once(found: Spec) -> None:
    both = found.select([parse_pattern("Add"), parse_pattern('Add("b1", _)')])
    assert len(both.actions) == 9
    (state,) = found.initial_states()
    assert len(found.successors_in(both, state)) == 3


def test_arguments_that_the_pattern_gives_are_not_enumerated(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    large = CONFIG.replace("{0, 1, 2}", "{" + ", ".join(map(str, range(300))) + "}")
    many = spec(tmp_path_factory.mktemp("many"), BODY, large)
    assert len(many.select([parse_pattern('Crash("b1", 7, 6, 5)')]).actions) == 1
    assert len(many.select([parse_pattern('Crash("b1", _, 6, 5)')]).actions) == 300
    with pytest.raises(TooManyInstances, match="Crash stands for 81,000,000 instances"):
        many.select([parse_pattern("Crash")])


def test_an_action_that_the_spec_lacks_is_named(found: Spec) -> None:
    with pytest.raises(SpecError, match="no action Steal"):
        found.select([ActionPattern("Steal")])


def test_patterns_are_printed_as_they_are_read() -> None:
    for text in PATTERNS:
        assert str(parse_pattern(text)) == text
    assert parse_pattern('Add("b1", _)').admits(Action("Add", ("b1", 7)))
    assert not parse_pattern('Add("b1", _)').admits(Action("Add", ("b1",)))
    with pytest.raises(DataError):
        parse_pattern("Add(")
