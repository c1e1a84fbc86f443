"""Values, states and traces in the Informal Trace Format (ITF) of Apalache and Quint.

The format: https://apalache-mc.org/docs/adr/015adr-trace.html. Two choices of ours, both lossless:
a sequence whose elements are of one kind is an array and any other tuple is a ``#tup``;
a model value, which ITF lacks, is ``{"#unserializable": "name"}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from conformance.tla.errors import DataError
from conformance.tla.values import (
    Action,
    Fn,
    ModelValue,
    State,
    Value,
    canonical_sorted,
    format_value,
    make_function,
)
from conformance.tla.values.strict_json import Json, load_json, twice
from conformance.tla.values.text import parse_action, parse_value, whole_number

__all__ = ["ItfTrace", "Json", "dump_trace", "from_itf", "load_trace", "to_itf"]


@dataclass(frozen=True, slots=True)
class ItfTrace:
    """A trace as ITF holds it.

    `actions[i]` led to `states[i + 1]`, None where the file does not say (it is written as
    the key ``action`` of a state's ``#meta``). `loop` is the index of the state to which the
    last one returns.
    """

    variables: tuple[str, ...]
    states: tuple[State, ...]
    actions: tuple[Action | None, ...]
    loop: int | None = None
    meta: Mapping[str, Json] = field(default_factory=dict)


def to_itf(value: Value) -> Json:
    """The value as ITF's JSON."""
    match value:
        case bool() | str():
            return value
        case int():
            return {"#bigint": str(value)}
        case ModelValue():
            return {"#unserializable": value.name}
        case frozenset():
            return {"#set": [to_itf(item) for item in canonical_sorted(value)]}
        case tuple():
            items = [to_itf(item) for item in value]
            return items if len(set(map(type, value))) <= 1 else {"#tup": items}
        case Fn():
            return _function_to_itf(value)


def _function_to_itf(function: Fn) -> Json:
    keys = canonical_sorted(function)
    fields = {key: function[key] for key in keys if isinstance(key, str) and key[:1] != "#"}
    if len(fields) == len(function):
        return {key: to_itf(value) for key, value in fields.items()}
    return {"#map": [[to_itf(key), to_itf(function[key])] for key in keys]}


def from_itf(data: Json) -> Value:
    """The value that ITF's JSON stands for; DataError where it stands for none."""
    match data:
        case bool() | str():
            return data
        case int():
            return data
        case Mapping():
            return _object_from_itf(data)
        case Sequence():
            return tuple([from_itf(item) for item in data])
    raise DataError(f"ITF has no value {json.dumps(data)}: expected a TLA+ value.")


def _object_from_itf(data: Mapping[str, Json]) -> Value:
    match data:
        case {"#bigint": str(digits)} if digits.removeprefix("-").isdecimal():
            return whole_number(digits)
        case {"#set": [*items]}:
            return frozenset([from_itf(item) for item in items])
        case {"#tup": [*items]}:
            return tuple([from_itf(item) for item in items])
        case {"#map": [*pairs]}:
            return _function([_pair(pair) for pair in pairs])
        case {"#unserializable": str(text)}:
            return parse_value(text)
    special = [key for key in data if key.startswith("#")]
    if special:
        raise DataError(f"ITF object with an unknown or malformed {special[0]}: {_excerpt(data)}")
    return Fn({key: from_itf(item) for key, item in data.items()}) if data else ()


def _function(pairs: Sequence[tuple[Value, Value]]) -> Value:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        key = twice([key for key, _ in pairs])
        raise DataError(f"ITF: a #map has the key {format_value(key)} twice.")
    return make_function(mapping)


def _pair(data: Json) -> tuple[Value, Value]:
    match data:
        case [key, value]:
            return from_itf(key), from_itf(value)
    raise DataError(f"ITF: a #map holds pairs [key, value], found {_excerpt(data)}.")


def dump_trace(trace: ItfTrace) -> str:
    """The trace as ITF text."""
    states: list[Json] = []
    for index, state in enumerate(trace.states):
        meta: dict[str, Json] = {"index": index}
        if index and (action := trace.actions[index - 1]) is not None:
            meta["action"] = str(action)
        values = {name: to_itf(value) for name, value in zip(trace.variables, state, strict=True)}
        states.append({"#meta": meta, **values})
    document: dict[str, Json] = {
        "#meta": {"format": "ITF", **trace.meta},
        "vars": list(trace.variables),
        "states": states,
    }
    if trace.loop is not None:
        document["loop"] = trace.loop
    return json.dumps(document, ensure_ascii=False)


def load_trace(text: str) -> ItfTrace:
    """The trace of an ITF file's text; DataError that says what is missing or malformed."""
    try:
        document = load_json(text)
    except DataError as error:
        raise DataError(f"Not an ITF file: {error}.") from None
    match document:
        case {"vars": [*names], "states": [*states], **rest}:
            variables = _variables(names)
            meta = rest.get("#meta")
            loop = rest.get("loop")
            return ItfTrace(
                variables=variables,
                states=tuple(
                    [_state(variables, index, state) for index, state in enumerate(states)]
                ),
                actions=tuple(map(_action, states[1:])),
                loop=loop if isinstance(loop, int) else None,
                meta=meta if isinstance(meta, Mapping) else {},
            )
    raise DataError('Not an ITF file: it needs an object with the arrays "vars" and "states".')


def _variables(names: Sequence[Json]) -> tuple[str, ...]:
    variables = tuple([name for name in names if isinstance(name, str)])
    if len({*variables}) != len(names):
        raise DataError('Not an ITF file: "vars" holds the names of the variables, each once.')
    return variables


def _state(variables: Sequence[str], index: int, data: Json) -> State:
    if not isinstance(data, Mapping):
        raise DataError(f"ITF: state {index} is no object: {_excerpt(data)}.")
    missing = [name for name in variables if name not in data]
    if missing:
        raise DataError(f"ITF: state {index} lacks the variable {missing[0]}.")
    return tuple([from_itf(data[name]) for name in variables])


def _action(data: Json) -> Action | None:
    match data:
        case {"#meta": {"action": str(text)}}:
            return parse_action(text)
    return None


def _excerpt(data: Json) -> str:
    text = json.dumps(data, default=repr)
    return text if len(text) <= 200 else f"{text[:200]}..."
