"""From a behaviour and its picture to a scene: lanes, rows and arrows, before any drawing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from conformance.story.behaviour import Behaviour, Seen, Step, heading_without_action
from conformance.story.picture import (
    Announcement,
    Badge,
    Delivery,
    LaneLog,
    LaneMessage,
    Picture,
    Sign,
)
from conformance.tla import Action, Fn, ModelValue, Value, canonical_sorted, equal, format_value

_MOST_LANES = 12
"""A generic diagram with more would be no picture: one lane for everything then."""
EVERYTHING = "system"
NOBODY = ""
"""The lane of actions without a lane: the last one, drawn without a name and without a line."""


@dataclass(frozen=True, slots=True)
class Strip:
    """A lane's log. `name` says whose it is, where two stand side by side."""

    start: int
    entries: tuple[str, ...]
    marks: tuple[tuple[str, int], ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Pill:
    """A badge's text and how it draws the lane from here on; or what is sent from here."""

    text: str
    line: str = ""
    sends: bool = False


@dataclass(frozen=True, slots=True)
class LaneCell:
    """The drawing of one lane at one step."""

    strips: tuple[Strip, ...] = ()
    pills: tuple[Pill, ...] = ()
    line: str = ""
    """How the lane's line goes on below: leads, down or plain."""


@dataclass(frozen=True, slots=True)
class SceneRow:
    """One step: its action, the lane where it happens, and what is new in the lanes."""

    text: str
    lane: int | None
    sign: Sign
    cells: tuple[LaneCell, ...]
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message. `received` is None if it is in flight at the end."""

    sender: int
    sent: int
    receiver: int
    received: int | None
    text: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is drawn. Rows are numbered as the behaviour's steps, from 0."""

    lanes: tuple[str, ...]
    rows: tuple[SceneRow, ...]
    arrows: tuple[Arrow, ...]
    entries: tuple[str, ...] = field(default=())
    """Every different log entry, sorted: an entry's place in it is its colour."""


def scene_of(behaviour: Behaviour, picture: Picture | None) -> Scene:
    """What is to be drawn; a generic scene where there is no picture, or it is of other names."""
    if picture is not None and picture.lanes.keys_of in ("", *behaviour.variables):
        lanes = _lanes(behaviour, picture)
        if lanes:
            return _Painter(behaviour, picture, lanes).scene()
    return _generic(behaviour)


@dataclass(frozen=True, slots=True)
class _Lane:
    """Where a lane's values are: at the key `key` of functions like `of`; nowhere of its own."""

    name: str
    of: str = ""
    key: str = ""


def _lanes(behaviour: Behaviour, picture: Picture) -> tuple[_Lane, ...]:
    """The lanes, from the left; none if the variable that names them was not seen."""
    lanes = picture.lanes
    own = [_Lane(key, lanes.keys_of, key) for key in _keys(behaviour, lanes.keys_of)]
    if lanes.keys_of and not own:
        return ()
    further = [
        _Lane(lanes.name.replace("{key}", key), lanes.keys_of, key)
        for lanes in lanes.further
        for key in _keys(behaviour, lanes.keys_of)
    ]
    return (*map(_Lane, lanes.before), *further, *own)


def _keys(behaviour: Behaviour, function: str) -> tuple[str, ...]:
    """The keys of a function, as texts, from the first state that shows it."""
    if function not in behaviour.variables:
        return ()
    position = behaviour.variables.index(function)
    for step in behaviour.steps:
        value = step.state[position]
        if isinstance(value, Fn):
            return tuple(map(plain, canonical_sorted(value)))
        if isinstance(value, tuple) and value:
            return tuple(str(n) for n in range(1, len(value) + 1))
    return ()


def plain(value: Value) -> str:
    """A value as text for a drawing, strings without their quotes."""
    return value if isinstance(value, str) else format_value(value).replace('"', "")


def heading(behaviour: Behaviour, number: int) -> str:
    """`Fetch(b1, 3)`; the start of a behaviour has no action."""
    action = behaviour.steps[number].action
    if action is None:
        return heading_without_action(behaviour, number)
    return f"{action.name}({', '.join(map(plain, action.args))})" if action.args else action.name


# --- without a picture --------------------------------------------------------------------


def _generic(behaviour: Behaviour) -> Scene:
    """A lane for each first argument of an action; one lane where that says nothing.

    An action without such an argument is in nobody's lane.
    """
    actors = [_actor(step.action) for step in behaviour.steps]
    lanes = tuple(sorted({actor for actor in actors if actor is not None}))
    if not 1 <= len(lanes) <= _MOST_LANES:
        lanes = (EVERYTHING,)
        actors = [EVERYTHING] * len(actors)
    rows = []
    for number, (step, actor) in enumerate(zip(behaviour.steps, actors, strict=True)):
        nowhere = number == 0 and step.action is None
        lane = None if nowhere or actor is None else lanes.index(actor)
        bad = behaviour.departs and number == len(behaviour.steps) - 1
        rows.append(SceneRow(heading(behaviour, number), lane, "", (LaneCell(),) * len(lanes), bad))
    return _settled(Scene(lanes, tuple(rows), ()))


def _settled(scene: Scene) -> Scene:
    """The scene with nobody's lane, if a step after the start has none."""
    if all(row.lane is not None for row in scene.rows[1:]):
        return scene
    first, *rest = (replace(row, cells=(*row.cells, LaneCell())) for row in scene.rows)
    nobodys = len(scene.lanes)
    rows = (replace(row, lane=nobodys) if row.lane is None else row for row in rest)
    return replace(scene, lanes=(*scene.lanes, NOBODY), rows=(first, *rows))


def _actor(action: Action | None) -> str | None:
    if action is None or not action.args:
        return None
    first = action.args[0]
    return plain(first) if isinstance(first, str | ModelValue | int) else None


# --- with one -----------------------------------------------------------------------------


class _Painter:
    """Reads one behaviour by one picture."""

    def __init__(self, behaviour: Behaviour, picture: Picture, lanes: tuple[_Lane, ...]) -> None:
        self._behaviour = behaviour
        self._picture = picture
        self._lanes = tuple(lane.name for lane in lanes)
        self._known = {lane.name: lane for lane in lanes}
        self._places = {name: index for index, name in enumerate(behaviour.variables)}
        actual = behaviour.actual
        last = len(behaviour.steps) - 1
        # The diagram goes on with what was seen; expected and actual stand side by side.
        self._states: list[Seen] = [step.state for step in behaviour.steps]
        self._expected: Seen | None = None
        if actual is not None:
            self._expected, self._states[last] = self._states[last], actual

    def scene(self) -> Scene:
        arrows = tuple(self._arrows())
        rows = tuple(
            self._row(number, step, _sending(arrows, number, self._lanes))
            for number, step in enumerate(self._behaviour.steps)
        )
        entries = {
            entry: None
            for row in rows
            for cell in row.cells
            for strip in cell.strips
            for entry in strip.entries
        }
        return _settled(Scene(self._lanes, rows, arrows, tuple(sorted(entries, key=_order))))

    # --- rows -----------------------------------------------------------------------------

    def _row(self, number: int, step: Step, sending: Mapping[str, tuple[Pill, ...]]) -> SceneRow:
        bad = self._behaviour.departs and number == len(self._states) - 1
        cells = tuple(
            replace(cell, pills=(*cell.pills, *sending.get(lane, ())))
            for lane in self._lanes
            for cell in [self._cell(number, lane, bad=bad)]
        )
        at = None if step.action is None else self._picture.actions.get(step.action.name)
        sign: Sign = "" if at is None else at.sign
        text = heading(self._behaviour, number)
        return SceneRow(text, self._lane_of(number), sign, cells, bad)

    def _lane_of(self, number: int) -> int | None:
        """The lane of a step's box; None for the start, and for what names no lane."""
        action = self._behaviour.steps[number].action
        if action is None:
            return None
        at = self._picture.actions.get(action.name)
        if at is not None and at.lane:
            lane = _filled_in(at.lane, action)
            return self._lanes.index(lane) if lane in self._lanes else None
        named = [plain(argument) for argument in action.args]
        if at is not None and 0 < at.argument <= len(named):
            named = [named[at.argument - 1]]
        return next((self._lanes.index(name) for name in named if name in self._lanes), None)

    def _cell(self, number: int, lane: str, *, bad: bool) -> LaneCell:
        pills, shown_before = self._pills(number, lane), self._pills(number - 1, lane)
        line = next((pill.line for pill in pills if pill.line), "")
        return LaneCell(
            tuple(self._strips(number, lane, bad=bad)),
            tuple(pill for pill in pills if pill not in shown_before and pill.text),
            line,
        )

    def _strips(self, number: int, lane: str, *, bad: bool) -> Iterator[Strip]:
        """The logs that are new here; at the last step all, and the expected one if it differs."""
        state, last = self._states[number], number == len(self._states) - 1
        for log in self._picture.logs:
            now = self._strip(log, state, lane)
            if now is None:
                continue
            expected = self._strip(log, self._expected, lane) if bad and self._expected else None
            if expected is not None and expected != now:
                yield Strip(expected.start, expected.entries, expected.marks, "expected")
                yield Strip(now.start, now.entries, now.marks, "actual")
            elif last or number == 0 or now != self._strip(log, self._states[number - 1], lane):
                yield now

    def _strip(self, log: LaneLog, state: Seen, lane: str) -> Strip | None:
        entries = self._at_lane(state, log.entries, lane)
        if not isinstance(entries, tuple):
            return None
        start = self._at_lane(state, log.start, lane) if log.start else 0
        marks = {name: self._at_lane(state, variable, lane) for name, variable in log.marks.items()}
        return Strip(
            start if isinstance(start, int) else 0,
            tuple(plain(entry) for entry in entries),
            tuple((name, value) for name, value in marks.items() if isinstance(value, int)),
        )

    def _pills(self, number: int, lane: str) -> list[Pill]:
        if number < 0:
            return []
        state = self._states[number]
        return [
            Pill(self._filled(badge.text, state, lane), badge.line)
            for badge in self._picture.badges
            if self._holds(badge, state, lane)
        ]

    def _holds(self, badge: Badge, state: Seen, lane: str) -> bool:
        of = "" if badge.lane else badge.of or self._picture.lanes.keys_of
        if badge.lane not in ("", lane) or (of and self._known[lane].of != of):
            return False
        if not badge.variable:
            return True
        value = self._at_lane(state, badge.variable, lane)
        wanted = badge.is_.replace("{lane}", lane).replace("{key}", self._known[lane].key)
        return value is not None and plain(value) == wanted

    def _filled(self, text: str, state: Seen, lane: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            if match[1] == "lane":
                return lane
            variable, _, path = match[1].partition(".")
            value = self._at_lane(state, variable, lane)
            for name in filter(None, path.split(".")):
                value = value.get(name) if isinstance(value, Fn) else None
            return "?" if value is None else plain(value)

        return re.sub(r"\{([\w.]+)\}", value_of, text)

    def _variable(self, state: Seen, name: str) -> Value | None:
        position = self._places.get(name)
        return None if position is None else state[position]

    def _at_lane(self, state: Seen, name: str, lane: str) -> Value | None:
        """What a variable has at a lane; the variable's own value where it is no function of it."""
        value, at = self._variable(state, name), self._known[lane].key
        if isinstance(value, Fn):
            return next((value[key] for key in value if plain(key) == at), value)
        if isinstance(value, tuple) and at.isdecimal() and 0 < int(at) <= len(value):
            return value[int(at) - 1]
        return value

    # --- arrows ---------------------------------------------------------------------------

    def _arrows(self) -> Iterator[Arrow]:
        for message in self._picture.messages:
            for lane in self._lanes:
                yield from self._deliveries(message, lane)
        for announcement in self._picture.announcements:
            yield from self._announced(announcement)
        for number, step in enumerate(self._behaviour.steps):
            yield from self._exchanged(number, step)
            yield from self._delivered(number, step)

    def _delivered(self, number: int, step: Step) -> Iterator[Arrow]:
        """The messages that an action sends, until another receives or loses them."""
        action = step.action
        for delivery in self._picture.deliveries:
            if action is None or action.name != delivery.sent:
                continue
            ends = [_filled_in(name, action) for name in (delivery.from_, delivery.to)]
            if not all(name in self._lanes for name in ends):
                continue
            end = self._end_of(delivery, number, ends)
            later = None if end is None else self._behaviour.steps[end].action
            lost = later is not None and later.name in delivery.lost
            value = self._variable(self._states[number], delivery.variable)
            for position in delivery.at:
                value = _entry_of(value, action.args[position - 1])
            text = _carried(
                value[0] if isinstance(value, tuple) and value else value,
                None,
                delivery.type,
                delivery.carries,
            )
            sender, receiver = map(self._lanes.index, ends)
            yield Arrow(sender, number, receiver, end, text, lost)

    def _end_of(self, delivery: Delivery, sent: int, ends: list[str]) -> int | None:
        for number in range(sent + 1, len(self._behaviour.steps)):
            action = self._behaviour.steps[number].action
            if action is None or action.name not in (*delivery.received, *delivery.lost):
                continue
            if ends == [_filled_in(name, action) for name in (delivery.from_, delivery.to)]:
                return number
        return None

    def _deliveries(self, message: LaneMessage, lane: str) -> Iterator[Arrow]:
        """One arrow for each time that the lane's message is another one than before."""
        content = [self._at_lane(state, message.variable, lane) for state in self._states]
        blank = next((m for m in content if self._kind(message, m) == message.none), None)
        sent = 0
        for number in range(1, len(content) + 1):
            now = content[number] if number < len(content) else None
            if number < len(content) and _same(now, content[sent]):
                continue
            ends = self._ends(message, lane, content[sent])
            if ends is not None:
                sender, receiver = ends
                text = _carried(content[sent], blank, message.type, message.carries)
                received = number if number < len(content) else None
                lost = received is not None and self._loses(received)
                yield Arrow(sender, sent, receiver, received, text, lost)
            sent = number

    def _kind(self, message: LaneMessage, value: Value | None) -> str:
        kind = value.get(message.type) if isinstance(value, Fn) else None
        return "" if kind is None else plain(kind)

    def _ends(self, message: LaneMessage, lane: str, value: Value | None) -> tuple[int, int] | None:
        """Sender and receiver; None for a value that is no message, or for a message that waits."""
        kind = self._kind(message, value)
        if not isinstance(value, Fn) or kind in ("", message.none):
            return None
        named = value.get(message.peer_field) if message.peer_field else None
        peer = message.peer if named is None else plain(named)
        if peer not in self._lanes or lane not in self._lanes:
            return None
        ends = self._lanes.index(lane), self._lanes.index(peer)
        if any(fnmatchcase(kind, pattern) for pattern in message.out):
            return ends
        return ends[::-1] if any(fnmatchcase(kind, pattern) for pattern in message.back) else None

    def _loses(self, number: int) -> bool:
        action = self._behaviour.steps[number].action
        at = None if action is None else self._picture.actions.get(action.name)
        return at is not None and at.sign in ("loss", "crash")

    def _announced(self, announcement: Announcement) -> Iterator[Arrow]:
        for number, step in enumerate(self._behaviour.steps):
            action = step.action
            if action is None or action.name not in announcement.received or number == 0:
                continue
            lane, key = (action.args[at - 1] for at in announcement.received[action.name])
            name, sender = plain(lane), announcement.sender
            entries = [self._entry(state, announcement.variable, key) for state in self._states]
            sent = next(
                (at for at in range(number - 1, 0, -1) if not _same(entries[at - 1], entries[at])),
                0,
            )
            if name in self._lanes and sender in self._lanes and sent:
                text = _carried(entries[sent], None, "", announcement.carries)
                ends = self._lanes.index(sender), self._lanes.index(name)
                yield Arrow(ends[0], sent, ends[1], number, f"{plain(key)}: {text}")

    def _entry(self, state: Seen, variable: str, key: Value) -> Value | None:
        return _entry_of(self._variable(state, variable), key)

    def _exchanged(self, number: int, step: Step) -> Iterator[Arrow]:
        action = step.action
        for exchange in self._picture.exchanges:
            if action is None or action.name != exchange.action:
                continue
            ends = [plain(action.args[at - 1]) for at in (exchange.from_, exchange.to)]
            if all(name in self._lanes for name in ends):
                first, second = map(self._lanes.index, ends)
                yield Arrow(first, number, second, number, exchange.label)


def _sending(
    arrows: Sequence[Arrow], number: int, lanes: Sequence[str]
) -> dict[str, tuple[Pill, ...]]:
    """The messages that each lane sends at a step, as texts; equal messages are one line."""
    receivers: dict[tuple[int, str], dict[str, None]] = {}
    for arrow in arrows:
        if arrow.sent == number and arrow.text:
            to = receivers.setdefault((arrow.sender, arrow.text), {})
            to[lanes[arrow.receiver]] = None
    result: dict[str, tuple[Pill, ...]] = {}
    for (sender, text), to in receivers.items():
        pill = Pill(f"→ {', '.join(to)}: {text}", sends=True)
        result[lanes[sender]] = (*result.get(lanes[sender], ()), pill)
    return result


def _filled_in(lane: str, action: Action) -> str:
    """A lane's name with the action's arguments put in, counted from 1."""
    for position, argument in enumerate(action.args, 1):
        lane = lane.replace(f"{{{position}}}", plain(argument))
    return lane


def _entry_of(function: Value | None, key: Value) -> Value | None:
    if isinstance(function, tuple) and isinstance(key, int) and 0 < key <= len(function):
        return function[key - 1]
    return function.get(key) if isinstance(function, Fn) else None


def _same(value: Value | None, other: Value | None) -> bool:
    if value is None or other is None:
        return value is other
    return equal(value, other)


def _carried(value: Value | None, blank: Value | None, kind: str, names: Sequence[str]) -> str:
    """The message's type and the fields that say something, as `Fetch offset=1`."""
    if not isinstance(value, Fn):
        return ""
    usual: Mapping[Value, Value] = blank if isinstance(blank, Fn) else {}
    parts = [plain(value[kind])] if kind in value else []
    for name in names:
        if name in value and not _same(value[name], usual.get(name)):
            parts.append(f"{name}={plain(value[name])}")
    return " ".join(parts)


def _order(entry: str) -> tuple[int, str]:
    return (int(entry), "") if entry.lstrip("-").isdecimal() else (0, entry)
