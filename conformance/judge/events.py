"""A recorder's events: for each event of a trace its partial observation.

docs/traces.md describes the format. Nothing is total here: an event may name no action, or
several, or one without its arguments; it may show single entries of variables; its place in the
order may be known within its process only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Annotated, TypeVar

import msgspec

from conformance.errors import DataError
from conformance.tla import (
    ActionPattern,
    Json,
    ObservedPart,
    PartialRecord,
    Place,
    SeenArgument,
    from_itf,
    load_json,
    parse_place,
)


@dataclass(frozen=True, slots=True)
class Clock:
    """A reading of a process's clock: the event was within `uncertainty` of `time`, in seconds."""

    time: float
    uncertainty: float = 0.0


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event. Without `actions` it is a snapshot: the state of its moment shows the parts.

    There are millions of them: a msgspec.Struct is made several times as fast as a dataclass.
    """

    actions: tuple[ActionPattern, ...] = ()
    """One of these was taken."""
    before: tuple[ObservedPart, ...] = ()
    after: tuple[ObservedPart, ...] = ()
    step: int | None = None
    process: str = ""
    sequence: int | None = None
    clock: Clock | None = None
    sent: frozenset[str] = frozenset()
    received: frozenset[str] = frozenset()
    source: str = ""
    """The event's source, from the recorder or from `Recording.placed`."""

    @property
    def is_snapshot(self) -> bool:
        """Whether no step was seen."""
        return not self.actions

    def __str__(self) -> str:
        what = " or ".join(map(str, self.actions)) or "a snapshot"
        where = f" on {self.process}" if self.process else ""
        return f"{what}{where}"


@dataclass(frozen=True, slots=True)
class Recording:
    """The events of one trace, in the order in which they were written.

    `problem` says why they cannot all be used, `source` where the trace begins. Events that say
    the same are the same object in many recordings, so where each stands is said apart.
    """

    name: str
    events: tuple[Event, ...]
    source: str = ""
    problem: str = ""
    file: str = ""
    lines: tuple[range, ...] = ()
    """The numbers of the events' lines in the file; none where the events have their sources."""

    def placed(self) -> tuple[Event, ...]:
        """The events, each with its source for messages."""
        if not self.lines:
            return self.events
        return tuple(
            event
            if event.source
            else msgspec.structs.replace(event, source=f"{self.file}:{number}")
            for event, number in zip(self.events, chain(*self.lines), strict=False)
        )


def read_event(data: Mapping[str, Json], source: str = "") -> Event:
    """The event that a JSON object describes. Raises DataError if the object is damaged."""
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise DataError(
            f"an event has no key {unknown[0]!r}: its keys are {', '.join(sorted(_KEYS))}"
        )
    return Event(
        actions=_actions(data.get("action")),
        before=_parts(data.get("before")),
        after=_parts(data.get("state")),
        step=_integer(data, "step"),
        process=_text(data, "process"),
        sequence=_integer(data, "sequence"),
        clock=_clock(data),
        sent=_ids(data, "sent"),
        received=_ids(data, "received"),
        source=_text(data, "source") or source,
    )


_T = TypeVar("_T")


@dataclass(slots=True)
class EventReader:
    """Reads events from lines of JSON; what stands in many lines is read once, and shared.

    So the judge finds the same observation again by identity. The name of a trace at the beginning
    of a line, its *prefix*, says nothing of the event. `remember` bounds what is kept, in bytes of
    lines.
    """

    remember: int = 32_000_000
    _kept: int = 0
    _known_lines: dict[bytes, Event] = field(default_factory=dict)
    _known_parts: dict[bytes, tuple[ObservedPart, ...]] = field(default_factory=dict)
    _known_actions: dict[bytes, tuple[ActionPattern, ...]] = field(default_factory=dict)

    def known(self, rests: Sequence[bytes]) -> list[Event | None]:
        """The events of lines without their prefixes, as far as they were read before."""
        return list(map(self._known_lines.get, rests))

    def read(self, prefix: bytes, rest: bytes) -> Event:
        """The event of a line that is these two together. DataError says what is wrong with it."""
        event = self._known_lines.get(rest) if prefix else None
        return self._read(prefix, rest) if event is None else event

    def _read(self, prefix: bytes, rest: bytes) -> Event:
        line = prefix + rest
        if _may_repeat_a_key(line):
            _loaded(line)
        try:
            raw = _LINE.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # odd, or wrong
            return read_event(_loaded(line))  # says it in our own words
        event = Event(
            self._shared(self._known_actions, bytes(raw.action), _actions),
            self._shared(self._known_parts, bytes(raw.before), _parts),
            self._shared(self._known_parts, bytes(raw.state), _parts),
            raw.step,
            raw.process or "",
            raw.sequence,
            _clock_of(raw.time, raw.uncertainty),
            frozenset(raw.sent),
            frozenset(raw.received),
            raw.source or "",
        )
        if prefix and not raw.is_unique:
            self._count(rest)
            self._known_lines[rest] = event
        return event

    def _shared(
        self,
        known: dict[bytes, tuple[_T, ...]],
        text: bytes,
        read: Callable[[Json], tuple[_T, ...]],
    ) -> tuple[_T, ...]:
        entry = known.get(text)
        if entry is None:
            self._count(text)
            entry = known[text] = read(load_json(text))
        return entry

    def _count(self, text: bytes) -> None:
        """Forget everything once it is much."""
        self._kept += len(text)
        if self._kept > self.remember:
            self._kept = len(text)
            for table in (self._known_lines, self._known_parts, self._known_actions):
                table.clear()


def _loaded(line: bytes) -> Mapping[str, Json]:
    data = load_json(line)
    if not isinstance(data, Mapping):
        raise DataError('an event is an object with the key "trace"')
    return data


_NOTHING = msgspec.Raw(b"null")


class _EventLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line as nearly all are; `read_event` reads the others."""

    trace: msgspec.Raw = _NOTHING
    action: msgspec.Raw = _NOTHING
    before: msgspec.Raw = _NOTHING
    state: msgspec.Raw = _NOTHING
    step: int | None = None
    process: str | None = None
    sequence: int | None = None
    time: float | str | None = None
    uncertainty: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    sent: tuple[str, ...] = ()
    received: tuple[str, ...] = ()
    source: str | None = None

    @property
    def is_unique(self) -> bool:
        """Whether this line says anything that no other line says."""
        named = self.sequence is not None or self.time is not None or self.source is not None
        return named or bool(self.sent or self.received)


_LINE = msgspec.json.Decoder(_EventLine)


_KEY = re.compile(rb'"(\w+)"[ \t\r]*:')


def _may_repeat_a_key(line: bytes) -> bool:
    """Whether a key of an event occurs twice somewhere in a line, or may: it is escaped.

    msgspec would take the last one in silence.
    """
    names = [name for name in _KEY.findall(line) if name in _KEY_BYTES]
    return len({*names}) != len(names) or b"\\u" in line


_KEYS = frozenset({"trace", "source", "action", "before", "state"}) | {
    *("step", "process", "sequence", "time", "uncertainty", "sent", "received"),
}
_KEY_BYTES = frozenset(map(str.encode, _KEYS))


def _actions(data: Json) -> tuple[ActionPattern, ...]:
    match data:
        case None:
            return ()
        case str() | Mapping():
            return (_action(data),)
        case Sequence() if data:
            return tuple(map(_action, data))
    raise DataError('the action is not of the form {"name": ..., "args": [...]}')


def _action(data: Json) -> ActionPattern:
    """`"Fetch"`, `{"name": "Fetch"}`, or with arguments, null standing for one not seen."""
    match data:
        case str(name):
            return ActionPattern(name)
        case {"name": str(name), **rest}:
            args = rest.get("args")
            if args is None:
                return ActionPattern(name)
            if isinstance(args, Sequence) and not isinstance(args, str):
                return ActionPattern(name, tuple([_argument(item) for item in args]))
    raise DataError('the action is not of the form {"name": ..., "args": [...]}')


def _argument(data: Json) -> SeenArgument | None:
    """An argument; `{"#fields": {...}}` is a record of which these parts were seen."""
    match data:
        case None:
            return None
        case {"#fields": Mapping() as fields, **others} if fields and not others:
            return PartialRecord(_parts(fields))
    return from_itf(data)


def _parts(data: Json) -> tuple[ObservedPart, ...]:
    if data is None:
        return ()
    if not isinstance(data, Mapping):
        raise DataError("the state is no object of variables and their values")
    return tuple([ObservedPart(_place(name), from_itf(value)) for name, value in data.items()])


@lru_cache(maxsize=100_000)
def _place(text: str) -> Place:
    return parse_place(text)


def _integer(data: Mapping[str, Json], key: str) -> int | None:
    value = data.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise DataError(f"{key} is no whole number: {value!r}")


def _text(data: Mapping[str, Json], key: str) -> str:
    value = data.get(key)
    return "" if value is None else str(value)


def _clock(data: Mapping[str, Json]) -> Clock | None:
    time, uncertainty = data.get("time"), data.get("uncertainty", 0.0)
    if isinstance(time, int | float | str | None) and isinstance(uncertainty, int | float):
        return _clock_of(time, uncertainty)
    raise DataError(
        "time is a number of seconds or a time of ISO 8601, and uncertainty a number of seconds, "
        f"not {time!r}, {uncertainty!r}"
    )


def _clock_of(time: float | str | None, uncertainty: float) -> Clock | None:
    if time is None:
        return None
    try:
        clock = Clock(_seconds(time), float(uncertainty))
    except OverflowError:
        clock = Clock(math.inf)
    if not math.isfinite(clock.time) or not 0 <= clock.uncertainty < math.inf:
        raise DataError(f"time and uncertainty are numbers of seconds, not {time}, {uncertainty}")
    return clock


def _seconds(time: float | str) -> float:
    """Seconds since 1970, of a time of ISO 8601 too; one without a zone is taken as UTC.

    What is below a microsecond is cut off, so later never becomes earlier.
    """
    if not isinstance(time, str):
        return float(time)
    try:
        read = datetime.fromisoformat(time)
    except ValueError:
        raise DataError(
            f"time is a number of seconds, or a time of ISO 8601 such as 2026-01-05T10:00:00.123Z, "
            f"not {time!r}"
        ) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def _ids(data: Mapping[str, Json], key: str) -> frozenset[str]:
    value = data.get(key, ())
    if isinstance(value, str | int):
        return frozenset([str(value)])
    if isinstance(value, Sequence):
        return frozenset(map(str, value))
    raise DataError(f"{key} is a list of ids of messages, not {value!r}")
