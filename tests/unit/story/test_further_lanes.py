"""Lanes of a second function, and messages that go from one action to another."""

from __future__ import annotations

from conformance.story.behaviour import Behaviour, Seen, Step
from conformance.story.picture import ActionPlace, Badge, Delivery, FurtherLanes, Lanes, Picture
from conformance.story.scene import Scene, scene_of
from conformance.tla import Action, Fn, Value

VARIABLES = ("hosts", "boss", "queue", "newest")
PICTURE = Picture(
    schema=1,
    lanes=Lanes("hosts", before=("registry",), further=(FurtherLanes("boss", "boss {key}"),)),
    actions={
        "Send": ActionPlace(lane="boss {1}"),
        "Take": ActionPlace(lane="{2}"),
        "Cut": ActionPlace(lane="boss {1}"),
    },
    badges=(
        Badge("{boss.mood}", of="boss"),
        Badge("leads", variable="newest", is_="{key}", of="boss", line="leads"),
        Badge("has {hosts}"),
    ),
    deliveries=(
        Delivery("Send", ("Take",), "boss {1}", "{2}", ("Cut",), "queue", (1, 2), carries=("n",)),
    ),
)


def state(newest: int = 1, has: int = 0) -> Seen:
    queued: tuple[Value, ...] = (Fn({"type": "Note", "n": 7}), Fn({"type": "Note", "n": 8}))
    to = Fn({"h1": queued, "h2": ()})
    moods = (Fn({"mood": "calm"}), Fn({"mood": "busy"}))
    return (Fn({"h1": has, "h2": 0}), moods, (to, to), newest)


def told(*steps: tuple[Action | None, Seen]) -> Scene:
    return scene_of(Behaviour(VARIABLES, tuple(Step(*step) for step in steps)), PICTURE)


def test_lanes_of_two_functions_stand_side_by_side() -> None:
    scene = told((None, state()))
    assert scene.lanes == ("registry", "boss 1", "boss 2", "h1", "h2")
    pills = [[pill.text for pill in cell.pills] for cell in scene.rows[0].cells]
    assert pills == [[], ["calm", "leads"], ["busy"], ["has 0"], ["has 0"]]
    assert [cell.line for cell in scene.rows[0].cells] == ["", "leads", "", "", ""]


def test_a_message_goes_from_the_action_that_sends_it_to_the_one_that_takes_it() -> None:
    send, take = Action("Send", (2, "h1")), Action("Take", (2, "h1"))
    other = Action("Take", (1, "h1"))
    scene = told((None, state()), (send, state()), (other, state()), (take, state(has=7)))
    (arrow,) = scene.arrows
    assert (arrow.sender, arrow.sent, arrow.receiver, arrow.received) == (2, 1, 3, 3)
    assert (arrow.text, arrow.lost) == ("Note n=7", False)
    assert [row.lane for row in scene.rows] == [None, 2, 3, 3]


def test_it_may_be_lost_or_still_be_under_way() -> None:
    send, cut = Action("Send", (1, "h1")), Action("Cut", (1, "h1"))
    (lost,) = told((None, state()), (send, state()), (cut, state())).arrows
    assert (lost.received, lost.lost) == (2, True)
    (under_way,) = told((None, state()), (send, state())).arrows
    assert (under_way.received, under_way.lost) == (None, False)
