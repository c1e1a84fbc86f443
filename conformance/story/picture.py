"""Pictures: which variables of a specification are lanes, logs and messages. Data, not code.

`NAME.picture.toml` beside the module NAME.tla says how behaviours of that module, and of all
that extend it, are drawn. docs/pictures.md describes its keys.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from conformance.inputs import read_toml

SUFFIX = ".picture.toml"
Sign = Literal["", "election", "crash", "restart", "loss"]


class FurtherLanes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lane for each key of one more function; `name` is what it is called, with `{key}`."""

    keys_of: str
    name: str = "{key}"


class Lanes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lane for each key of the function `keys_of`, if any, and others to the left of them."""

    keys_of: str = ""
    before: tuple[str, ...] = ()
    """Lanes that no key names, the leftmost."""
    further: tuple[FurtherLanes, ...] = ()


class ActionPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where an action is drawn, and with which sign.

    `lane` is a lane's name, in which `{1}` is the first argument; without it `argument`, counted
    from 1, names the lane; without both it is the first argument that is a lane. An action that
    none of these finds a lane for is in nobody's.
    """

    lane: str = ""
    argument: int = 0
    sign: Sign = ""


class LaneLog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sequence per lane, drawn as coloured cells: equal entries have equal colours.

    `start` is a number per lane: the offset of the first cell. `marks` are lines at an offset.
    """

    entries: str
    start: str = ""
    marks: dict[str, str] = {}  # msgspec copies mutable defaults


class Badge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text at a lane, shown where it changes, while `variable` has the value `is_` there.

    `is_` (written `is`) is a value's text as TLC prints it, `{lane}` the lane's name, `{key}` its
    key; without it the badge is always shown. `{name}` in the text is what the variable `name`
    has: at the lane if it is a function of lanes. `line` draws the lane's own line in another way
    meanwhile.
    """

    text: str
    variable: str = ""
    is_: str = msgspec.field(default="", name="is")
    lane: str = ""
    """Of this lane only; the badge then reads variables as they are."""
    of: str = ""
    """At the further lanes of this function, in place of those of `keys_of`."""
    line: Literal["", "leads", "down"] = ""


class LaneMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variable with one message per lane, under way while its `type` is not `none`.

    Types that match `out` go from the lane to its peer, those that match `back` the other way
    (`*` stands for anything). The peer is a field of the message, or always the same lane.
    """

    variable: str
    out: tuple[str, ...]
    back: tuple[str, ...]
    type: str = "type"
    none: str = "None"
    peer_field: str = ""
    peer: str = ""
    carries: tuple[str, ...] = ()


class Announcement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages to many: an entry of a function, sent when it is set, received by an action.

    `received` gives by action the positions of its arguments, from 1: the lane, and the key.
    """

    variable: str
    sender: str
    received: dict[str, tuple[int, int]]
    carries: tuple[str, ...] = ()


class RoundTripAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An action that is a whole round trip: from one argument's lane to another's and back."""

    action: str
    from_: int = msgspec.field(name="from")
    to: int
    label: str = ""


class Delivery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message from the action that sends it to the one that receives or loses it.

    `from` and `to` are lanes, in which `{1}` is the action's first argument. What it carries is
    the entry of `variable` at the arguments `at`, once the sending action is done; of a sequence
    its head.
    """

    sent: str
    received: tuple[str, ...]
    from_: str = msgspec.field(name="from")
    to: str
    lost: tuple[str, ...] = ()
    variable: str = ""
    at: tuple[int, ...] = ()
    type: str = "type"
    carries: tuple[str, ...] = ()


class Picture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How behaviours of one specification are drawn."""

    schema: Literal[1]
    lanes: Lanes
    protocol: str = ""
    """The subject of the specification, in a reader's words."""
    actions: dict[str, ActionPlace] = {}
    logs: tuple[LaneLog, ...] = ()
    badges: tuple[Badge, ...] = ()
    messages: tuple[LaneMessage, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    exchanges: tuple[RoundTripAction, ...] = ()
    deliveries: tuple[Delivery, ...] = ()


def find_picture(modules: Iterable[Path]) -> Picture | None:
    """The picture of the first module with a picture file beside it, from the root module on."""
    for module in modules:
        path = module.with_name(module.stem + SUFFIX)
        if os.path.lexists(path):
            return load_picture(path)
    return None


@lru_cache
def load_picture(path: Path) -> Picture:
    """Read a picture; DataError that names file and key if it is none."""
    return read_toml(path, Picture, "a picture of a specification", "docs/pictures.md")
