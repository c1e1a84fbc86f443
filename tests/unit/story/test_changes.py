from __future__ import annotations

import pytest

from conformance.story.behaviour import Behaviour, Step, lines
from conformance.story.changes import changes
from conformance.tla import Action, parse_value


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("1", "2", ["x: 1 -> 2"]),
        ("1", "1", []),
        ("[b1 |-> 1, b2 |-> 2]", "[b1 |-> 1, b2 |-> 3]", ["x.b2: 2 -> 3"]),
        ("(1 :> 5 @@ 3 :> 6)", "(1 :> 5 @@ 3 :> 7)", ["x[3]: 6 -> 7"]),
        ("[a |-> 1]", "[b |-> 1]", ["x: [a |-> 1] -> [b |-> 1]"]),
        ("<<1, 2>>", "<<1, 2, 3, 4>>", ["x: appended 3, 4"]),
        ("<<1, 2>>", "<<1>>", ["x: lost its end 2"]),
        ("<<1, 2>>", "<<5, 2, 3>>", ["x[1]: 1 -> 5", "x: appended 3"]),
        ("{1, 2}", "{2, 3}", ["x: removed 1", "x: added 3"]),
        ('[b1 |-> <<[e |-> 1]>>]', '[b1 |-> <<[e |-> 2]>>]', ["x.b1[1].e: 1 -> 2"]),
    ],
)  # fmt: skip
def test_a_change_is_told_at_its_innermost_place(
    before: str, after: str, expected: list[str]
) -> None:
    found = changes(["x"], (parse_value(before),), (parse_value(after),))
    assert [str(change) for change in found] == expected


def test_a_story_has_numbered_actions_with_their_arguments() -> None:
    steps = (
        Step(None, (0, ())),
        Step(Action("Add", ("b1",)), (1, ("b1",))),
        Step(Action("Noop"), (1, ("b1",))),
    )
    assert lines(Behaviour(("count", "log"), steps, ending="And so on.")) == (
        "0. Initial state",
        "     count = 0",
        "     log = <<>>",
        '1. Add("b1")',
        "     count: 0 -> 1",
        '     log: appended "b1"',
        "2. Noop",
        "     (nothing changes)",
        "And so on.",
    )


def test_of_a_long_behaviour_the_end_is_told_and_how_much_was_before() -> None:
    steps = (Step(None, (1,)), Step(Action("Inc"), (2,), "  (not seen)"))
    assert lines(Behaviour(("x",), steps, earlier=7)) == (
        "... 7 steps before",
        "7. State after these",
        "     x = 1",
        "8. Inc  (not seen)",
        "     x: 1 -> 2",
    )
