"""What a behaviour looks like by its picture: lanes, arrows, logs and signs."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from conformance.story.behaviour import Behaviour, Seen, Step
from conformance.story.picture import (
    ActionPlace,
    Announcement,
    Badge,
    LaneLog,
    LaneMessage,
    Lanes,
    Picture,
    RoundTripAction,
)
from conformance.story.scene import NOBODY, Arrow, Scene, Strip, scene_of
from conformance.story.svg import standalone
from conformance.tla import Action, Fn, Value

VARIABLES = ("log", "mark", "wire", "orders", "up")
PICTURE = Picture(
    schema=1,
    lanes=Lanes(keys_of="log", before=("boss",)),
    actions={
        "Order": ActionPlace(lane="boss", sign="election"),
        "Crash": ActionPlace(argument=2, sign="crash"),
        "Lose": ActionPlace(sign="loss"),
    },
    logs=(LaneLog(entries="log", marks={"HW": "mark"}),),
    badges=(
        Badge(text="down", variable="up", is_="FALSE", line="down"),
        Badge(text="mark {mark} of {lane}"),
        Badge(text="orders {orders}", lane="boss"),
    ),
    messages=(
        LaneMessage(
            variable="wire", out=("*Request",), back=("*Response",), peer="a", carries=("n", "m")
        ),
    ),
    announcements=(
        Announcement(variable="orders", sender="boss", received={"Obey": (1, 2)}, carries=("who",)),
    ),
    exchanges=(RoundTripAction(action="Swap", from_=1, to=2, label="both ways"),),
)
SILENT = Fn({"type": "None", "n": 0, "m": 0})


def message(kind: str, n: int = 0) -> Value:
    return Fn({"type": kind, "n": n, "m": 0})


def state(
    *,
    b: tuple[int, ...] = (),
    mark: int = 0,
    wire: Value = SILENT,
    order: str = "nobody",
    up: bool = True,
) -> Seen:
    orders = (Fn({"who": order}),)
    return (
        Fn({"a": (1,), "b": b}),
        Fn({"a": 0, "b": mark}),
        Fn({"a": SILENT, "b": wire}),
        orders,
        Fn({"a": True, "b": up}),
    )


def told(*steps: tuple[Action | None, Seen], **more: object) -> Scene:
    behaviour = Behaviour(VARIABLES, tuple(Step(*one) for one in steps), **more)  # type: ignore[arg-type]
    return scene_of(behaviour, PICTURE)


START = (None, state())


def test_lanes_are_the_functions_keys_after_those_that_no_key_names() -> None:
    assert told(START).lanes == ("boss", "a", "b")


@pytest.mark.parametrize(
    ("action", "lane", "sign"),
    [
        (Action("Append", (3, "b")), 2, ""),
        (Action("Order", ("b",)), 0, "election"),
        (Action("Crash", ("a", "b")), 2, "crash"),
        (Action("Nothing"), 3, ""),  # in nobody's
        (Action("Append", (3, "stranger")), 3, ""),
    ],
)
def test_an_action_stands_where_the_table_says_or_at_its_first_lane(
    action: Action, lane: int, sign: str
) -> None:
    row = told(START, (action, state())).rows[1]
    assert (row.lane, row.sign) == (lane, sign)


def test_a_message_goes_out_is_answered_and_carries_what_is_not_usual() -> None:
    scene = told(
        START,
        (Action("Send", ("b",)), state(wire=message("FetchRequest", 7))),
        (Action("Handle", ("a",)), state(wire=message("FetchResponse"))),
        (Action("Process", ("b",)), state()),
    )
    assert scene.arrows == (
        Arrow(2, 1, 1, 2, "FetchRequest n=7"),
        Arrow(1, 2, 2, 3, "FetchResponse"),
    )
    assert [pill.text for pill in scene.rows[1].cells[2].pills] == ["→ a: FetchRequest n=7"]


def test_a_message_may_be_lost_or_still_be_under_way() -> None:
    asked = (Action("Send", ("b",)), state(wire=message("FetchRequest")))
    lost = told(START, asked, (Action("Lose", ("b",)), state()))
    assert [(arrow.received, arrow.lost) for arrow in lost.arrows] == [(2, True)]
    waiting = told(START, asked)
    assert [(arrow.received, arrow.lost) for arrow in waiting.arrows] == [(None, False)]


def test_an_announcement_arrives_when_an_action_takes_it() -> None:
    scene = told(
        START,
        (Action("Order"), state(order="b")),
        (Action("Other"), state(order="b")),
        (Action("Obey", ("b", 1)), state()),
    )
    assert scene.arrows == (Arrow(0, 1, 2, 3, "1: who=b"),)


def test_a_round_trip_in_one_step_goes_both_ways() -> None:
    scene = told(START, (Action("Swap", ("a", "b")), state()))
    assert scene.arrows == (Arrow(1, 1, 2, 1, "both ways"),)


def test_a_log_is_drawn_where_it_changes_and_at_both_ends() -> None:
    scene = told(START, (Action("A", ("b",)), state()), (Action("B", ("b",)), state(b=(2,))))
    strips = [[len(cell.strips) for cell in row.cells] for row in scene.rows]
    assert strips == [[0, 1, 1], [0, 0, 0], [0, 1, 1]]
    assert scene.rows[2].cells[2].strips == (Strip(0, ("2",), (("HW", 0),)),)
    assert scene.entries == ("1", "2")


def test_a_badge_is_shown_where_it_changes_and_draws_the_lane() -> None:
    scene = told(START, (Action("Crash", ("a", "b")), state(up=False, mark=2)))
    cell = scene.rows[1].cells[2]
    assert [pill.text for pill in cell.pills] == ["down", "mark 2 of b"]
    assert cell.line == "down"
    assert [pill.text for pill in scene.rows[1].cells[0].pills] == []


def test_at_the_bad_step_expected_and_actual_logs_stand_side_by_side() -> None:
    seen = {"log": Fn({"a": (1,), "b": (3,)})}
    last = (Action("Append", ("b",)), state(b=(2,)))
    row = told(START, last, observed=seen, departs=True).rows[1]
    assert row.bad
    assert [(one.name, one.entries) for one in row.cells[2].strips] == [
        ("expected", ("2",)),
        ("actual", ("3",)),
    ]
    assert [one.name for one in row.cells[1].strips] == [""]


def test_without_a_picture_lanes_are_the_actions_first_arguments() -> None:
    steps = (Step(None, (0,)), Step(Action("A", ("x", 1)), (1,)), Step(Action("B"), (2,)))
    scene = scene_of(Behaviour(("n",), steps), None)
    assert (scene.lanes, [row.lane for row in scene.rows]) == (("x", NOBODY), [None, 0, 1])
    # A picture of other names is no picture of this behaviour.
    assert scene_of(Behaviour(("n",), steps), PICTURE) == scene


@pytest.mark.parametrize("picture", [None, PICTURE])
def test_nobodys_lane_is_there_only_for_who_needs_it_and_has_no_name(
    picture: Picture | None,
) -> None:
    def drawn(*actions: Action) -> tuple[Scene, str]:
        steps = (Step(None, state()), *(Step(action, state()) for action in actions))
        scene = scene_of(Behaviour(VARIABLES, steps), picture)
        return scene, standalone(scene, "title", ())

    (without, plain), (with_it, text) = (
        drawn(Action("Append", ("b",))),
        drawn(Action("Append", ("b",)), Action("Tick")),
    )
    assert NOBODY not in without.lanes
    assert with_it.lanes == (*without.lanes, NOBODY)
    assert "Tick" in text
    assert text.count('class="name"') == plain.count('class="name"') == len(without.lanes)


def test_too_many_actors_share_a_lane() -> None:
    steps = [Step(None, (0,)), *(Step(Action("A", (n,)), (n,)) for n in range(20))]
    assert scene_of(Behaviour(("n",), tuple(steps)), None).lanes == ("system",)


def test_unknown_states_are_drawn_as_far_as_they_are_known() -> None:
    nothing: Seen = (None,) * len(VARIABLES)
    scene = told(START, (Action("Append", ("b",)), nothing))
    assert scene.rows[1].lane == 2
    assert [cell.strips for cell in scene.rows[1].cells] == [()] * 3


def test_the_drawing_is_well_formed_and_foreign_texts_stay_texts() -> None:
    evil = "</svg><script>alert(1)</script>\x1b[2J"
    scene = told(START, (Action(evil, ("b", evil)), state(b=(1, 2), wire=message("XRequest", 1))))
    root = ET.fromstring(standalone(scene, evil, [evil]))
    names = {element.tag.partition("}")[2] for element in root.iter()}
    assert "script" not in names
    assert {"svg", "rect", "line", "text", "title", "style"} <= names
    assert "\\x1b" in "".join(root.itertext())
    bands = [element.get("data-step") for element in root.iter() if element.get("class") == "band"]
    assert bands == ["0", "1"]
