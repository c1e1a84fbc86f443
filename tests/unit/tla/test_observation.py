"""What was seen is compared in one place: TRUE is not 1, what was not seen may be anything."""

from __future__ import annotations

import pytest

from conformance.errors import DataError
from conformance.tla import (
    ObservedPart,
    Partial,
    Place,
    State,
    Value,
    differing,
    make_function,
    make_record,
    parse_place,
    shows,
)

LOG = make_function({"b1": (0, 1), "b2": ()})
CHANNEL = make_function({"b2": make_record(error="none", epochs=(3, 4))})
STATE: State = (LOG, CHANNEL, 1)


@pytest.mark.parametrize(
    ("seen", "shown"),
    [
        ((None, None, None), True),
        ((None, None, 1), True),
        ((None, None, True), False),
        ((None, None, "one"), False),
        ((make_function({"b2": (), "b1": (0, 1)}), None, None), True),
        ((make_function({"b2": (), "b1": (0, True)}), None, None), False),
        ((make_function({"b2": ()}), None, None), False),
        ((None, make_function({"b2": make_record(error="none", epochs=(3, 4))}), 1), True),
    ],
    ids=repr,
)
def test_a_state_shows_what_was_seen_of_it(seen: Partial, shown: bool) -> None:
    assert shows(STATE, seen) is shown


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("log", ()),
        ('log["b1"]', ("b1",)),
        ("log.b1", ("b1",)),
        ('channel["b2"].error', ("b2", "error")),
        ('channel["b2"].epochs[2]', ("b2", "epochs", 2)),
        ("f[<<1, {2}>>]", ((1, frozenset({2})),)),
        ('f["a]b"]', ("a]b",)),
    ],
)
def test_a_place_is_read_and_printed(text: str, path: tuple[Value, ...]) -> None:
    place = parse_place(text)
    assert place.path == path
    assert parse_place(str(place)) == place


@pytest.mark.parametrize("text", ["", "1", "log[", "log.", "log]", 'log["b1"', "log b1", "log[}]"])
def test_what_names_no_place_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        parse_place(text)


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ('log["b1"]', (0, 1), True),
        ('log["b1"][2]', 1, True),
        ('log["b1"][2]', True, False),
        ('log["b1"][3]', 1, False),
        ('log["b3"]', (), False),
        ("channel.b2.error", "none", True),
        ("channel.b2.error", "fenced", False),
        ("channel.b2.error.deeper", "none", False),
    ],
)
def test_an_entry_is_shown_where_it_is_and_has_the_value(
    text: str, value: Value, shown: bool
) -> None:
    part = ObservedPart(parse_place(text), value)
    position = {"log": 0, "channel": 1}[part.place.variable]
    assert part.shown_by(STATE, position) is shown


def test_the_variables_that_differ_are_named_in_the_order_of_the_spec() -> None:
    variables = ("log", "channel", "epoch")
    assert differing(variables, STATE, {"epoch": True, "log": LOG, "channel": ()}) == (
        "channel",
        "epoch",
    )
    assert str(Place("log", ("b1", "end"))) == "log.b1.end"
