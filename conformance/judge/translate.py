"""Turns a recording's foreign names and numbers into the specification's, and derives constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from conformance.errors import DataError, UserError
from conformance.judge.events import Event, Recording
from conformance.judge.mapping import Collect, Mapping, Rename, Translate
from conformance.tla import (
    ActionPattern,
    Fn,
    ModelValue,
    ObservedPart,
    PartialRecord,
    Place,
    SeenArgument,
    Value,
    canonical_sorted,
    format_value,
    make_function,
    parse_place,
    parse_value,
)

__all__ = ["derived_constants", "translated"]

Change = Callable[[Value], Value]
_ANY = ModelValue("_")


def translated(recording: Recording, mapping: Mapping) -> Recording:
    """The recording in the specification's names, without the variables that the mapping hides."""
    if not (mapping.names or mapping.values or mapping.hidden):
        return recording
    translator = _Translator(mapping)
    return replace(recording, events=tuple(map(translator.event, recording.events)))


# --- places that a mapping names ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place with `_` for any argument, or an argument of an action, counted from 1."""

    place: Place | None = None
    action: str = ""
    argument: int = 0

    def covers(self, place: Place) -> bool:
        """Whether a place is this one or within it."""
        own = self.place
        if own is None or own.variable != place.variable or len(own.path) > len(place.path):
            return False
        return all(
            key is _ANY or key == other for key, other in zip(own.path, place.path, strict=False)
        )


def _spot(text: str) -> _Spot:
    argument = re.fullmatch(r"([A-Za-z]\w*)\.(\d+)", text, re.ASCII)
    if argument:
        return _Spot(action=argument[1], argument=int(argument[2]))
    try:
        return _Spot(place=parse_place(text))
    except DataError as error:
        raise UserError(
            f"The mapping names {text}. {error} An argument of an action is written Action.2."
        ) from None


def _leaves(place: Place, value: Value) -> Iterator[tuple[Place, Value]]:
    """The values within a value that have no parts, and the arguments of its functions."""
    if isinstance(value, Fn):
        for key, inner in value.items():
            yield from _leaves(Place(place.variable, (*place.path, key)), inner)
    elif isinstance(value, tuple):
        for index, inner in enumerate(value, 1):
            yield from _leaves(Place(place.variable, (*place.path, index)), inner)
    elif isinstance(value, frozenset):
        for inner in canonical_sorted(value):
            yield from _leaves(place, inner)
    else:
        yield place, value


# --- names and numbers ----------------------------------------------------------------------------


class _TraceNames:
    """The renaming of one trace; numbers are given in the order in which texts come."""

    def __init__(self, rules: Sequence[Rename]) -> None:
        self._rules = [(re.compile(rule.match), rule.to) for rule in rules]
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, text: str) -> str:
        if text not in self._known:
            self._known[text] = self._renamed(text)
        return self._known[text]

    def _renamed(self, text: str) -> str:
        for pattern, to in self._rules:
            match = pattern.fullmatch(text)
            if match is not None:
                name = match.expand(to)
                if "{n}" not in name:
                    return name
                self._counts[name] = self._counts.get(name, 0) + 1
                return name.replace("{n}", str(self._counts[name]))
        return text


class _Rule:
    """One `[[values]]` of the mapping, for one trace."""

    def __init__(self, rule: Translate) -> None:
        self.spots = tuple(map(_spot, rule.at))
        self._values = {parse_value(old): parse_value(new) for old, new in rule.values.items()}
        if len(self._values) != len(rule.values):
            texts = ", ".join(rule.values)
            raise DataError(f"The mapping gives two values for one under `values`: {texts}.")
        self._subtract = rule.subtract

    def leaf(self, value: Value) -> Value:
        """The name of a value without parts."""
        if value in self._values:
            return self._values[value]
        if type(value) is not int:
            return value
        if self._subtract == "first":
            self._subtract = value
        return value - self._subtract


@dataclass(slots=True)
class _Translator:
    """Translates the events of one trace, in their order."""

    mapping: Mapping
    names: _TraceNames = field(init=False)
    rules: tuple[_Rule, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Read the rules once."""
        self.names = _TraceNames(self.mapping.names)
        self.rules = tuple(map(_Rule, self.mapping.values))

    def event(self, event: Event) -> Event:
        """The event in the specification's names."""
        return msgspec.structs.replace(
            event,
            actions=tuple(map(self._action, event.actions)),
            before=self._parts(event.before),
            after=self._parts(event.after),
            process=self.names(event.process),
        )

    def _parts(self, parts: Sequence[ObservedPart]) -> tuple[ObservedPart, ...]:
        hidden = self.mapping.hidden
        return tuple(self._part(part) for part in parts if part.place.variable not in hidden)

    def _part(self, part: ObservedPart) -> ObservedPart:
        place = Place(part.place.variable, tuple(map(self._named, part.place.path)))
        aspect = part.place.aspect
        if aspect is None:
            return ObservedPart(place, self._value(place, self._named(part.value)))
        if aspect.member is not None:
            aspect = replace(aspect, member=self._value(place, self._named(aspect.member)))
        return ObservedPart(replace(place, aspect=aspect), part.value)

    def _named(self, value: Value) -> Value:
        return _changed(value, lambda leaf: self.names(leaf) if isinstance(leaf, str) else leaf)

    def _value(self, place: Place, value: Value) -> Value:
        for rule in self.rules:
            for spot in rule.spots:
                value = _at(spot, place, value, rule.leaf)
        return value

    def _action(self, pattern: ActionPattern) -> ActionPattern:
        if pattern.args is None:
            return pattern
        args = [None if arg is None else _each(arg, self._named) for arg in pattern.args]
        for rule in self.rules:
            for spot in rule.spots:
                at = spot.argument - 1
                if spot.action == pattern.name and 0 <= at < len(args):
                    argument = args[at]
                    if argument is not None:
                        args[at] = _each(argument, partial(_changed, change=rule.leaf))
        return ActionPattern(pattern.name, tuple(args))


def _each(argument: SeenArgument, change: Change) -> SeenArgument:
    """An argument with its value changed; of a partial record, with the values of its parts."""
    if not isinstance(argument, PartialRecord):
        return change(argument)
    parts = argument.parts
    changed = (p if p.place.aspect else ObservedPart(p.place, change(p.value)) for p in parts)
    return PartialRecord(tuple(changed))


def _changed(value: Value, change: Change) -> Value:
    """The value with every part that has no parts changed, arguments of functions too."""
    match value:
        case tuple():
            return tuple([_changed(item, change) for item in value])
        case frozenset():
            return frozenset([_changed(item, change) for item in value])
        case Fn():
            return make_function(
                {_changed(key, change): _changed(item, change) for key, item in value.items()}
            )
    return change(value)


def _at(spot: _Spot, place: Place, value: Value, change: Change) -> Value:
    """The value with the parts at the spot replaced; arguments of functions do not change."""
    if spot.place is None or spot.place.variable != place.variable:
        return value
    if spot.covers(place):
        return _results(value, change)
    match value:
        case Fn():
            items = {k: _at(spot, _below(place, k), v, change) for k, v in value.items()}
            return make_function(items)
        case tuple():
            return tuple([_at(spot, _below(place, n), v, change) for n, v in enumerate(value, 1)])
    return value


def _results(value: Value, change: Change) -> Value:
    match value:
        case tuple():
            return tuple([_results(item, change) for item in value])
        case frozenset():
            return frozenset([_results(item, change) for item in value])
        case Fn():
            return make_function({key: _results(item, change) for key, item in value.items()})
    return change(value)


def _below(place: Place, key: Value) -> Place:
    return Place(place.variable, (*place.path, key))


# --- constants ------------------------------------------------------------------------------------


def derived_constants(recordings: Iterable[Recording], mapping: Mapping) -> dict[str, str]:
    """The TLA+ expressions of the mapping's constants, made of what the recordings name.

    UserError if the recordings name nothing of which a constant could be made.
    """
    wanted = {n: rule for n, rule in mapping.constants.items() if isinstance(rule, Collect)}
    result: dict[str, dict[Value, None]] = {name: {} for name in wanted}
    spots = {name: tuple(map(_spot, rule.collect)) for name, rule in wanted.items()}
    for recording in recordings if wanted else ():
        for event in recording.events:
            for name, places in spots.items():
                result[name].update(dict.fromkeys(_named_by(event, places)))
    texts = {name: rule for name, rule in mapping.constants.items() if isinstance(rule, str)}
    return texts | {name: _expression(name, rule, result[name]) for name, rule in wanted.items()}


_PROCESS = _Spot(place=Place("process"))


def _named_by(event: Event, spots: Sequence[_Spot]) -> Iterator[Value]:
    for part in (*event.before, *event.after):
        if part.place.aspect is not None:
            continue
        for place, value in _leaves(part.place, part.value):
            if any(spot.covers(place) for spot in spots):
                yield value
    for spot in spots:
        if spot == _PROCESS and event.process:
            yield event.process
        for pattern in event.actions:
            args = pattern.args or ()
            if spot.action == pattern.name and spot.argument <= len(args):
                argument = args[spot.argument - 1]
                if isinstance(argument, PartialRecord):
                    yield from (p.value for p in argument.parts if p.place.aspect is None)
                elif argument is not None:
                    yield argument


def _expression(name: str, rule: Collect, result: Iterable[Value]) -> str:
    values = {*result, *map(parse_value, rule.include)}
    if rule.as_ == "set":
        return "{" + ", ".join(map(format_value, canonical_sorted(values))) + "}"
    numbers = [value for value in values if type(value) is int]
    if not numbers:
        raise UserError(
            f"The mapping makes the constant {name} of {', '.join(rule.collect)}, where the "
            "recordings show no number. Name other places, or give the value."
        )
    return f"{min(numbers)}..{max(numbers) + rule.beyond}"
