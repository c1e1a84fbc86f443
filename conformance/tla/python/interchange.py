"""The operators of Json and IOUtils: values as JSON, the environment, numbers as text."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

from conformance.tla.semantics.equality import Unforced, value_of
from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.values import Fn, ModelValue, Value, canonical_sorted, format_value

JsonValue = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None


def _json_of(value: Value) -> JsonValue:
    """Sequences and sets are arrays, records and other functions objects, model values strings."""
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, tuple):
        return [_json_of(item) for item in value]
    if isinstance(value, frozenset):
        return [_json_of(item) for item in canonical_sorted(value)]
    if isinstance(value, Fn):
        return {_key(argument): _json_of(result) for argument, result in value.mapping.items()}
    return str(value)


def _key(argument: Value) -> str:
    return argument if isinstance(argument, str) else format_value(argument)


def _value_of_json(result: JsonValue, where: str) -> Value:
    match result:
        case bool() | int() | str():
            return result
        case list():
            return tuple(_value_of_json(item, where) for item in result)
        case dict():
            fields: dict[Value, Value] = {
                name: _value_of_json(part, where) for name, part in result.items()
            }
            return Fn(fields) if fields else ()
        case None:
            return ModelValue("null")
        case _:
            raise EvaluationError(f"{where} holds {result}, which is no value of TLA+")


def to_json(value: Unforced) -> str:
    """ToJson(v)."""
    return json.dumps(_json_of(value_of(value)), separators=(",", ":"), ensure_ascii=False)


def to_json_array(value: Unforced) -> str:
    """ToJsonArray(v) of a sequence, a set, or a function, whose values it is."""
    plain = value_of(value)
    return to_json(tuple(plain.mapping.values()) if isinstance(plain, Fn) else plain)


def to_json_object(value: Unforced) -> str:
    """ToJsonObject(v) of a function; of a sequence the keys are its positions."""
    plain = value_of(value)
    if isinstance(plain, tuple):
        plain = Fn({str(number): item for number, item in enumerate(plain, 1)})
    return to_json(plain)


def json_serialize(file: Unforced, value: Unforced) -> bool:
    """JsonSerialize(file, v)."""
    _write(file, to_json(value))
    return True


def nd_json_serialize(file: Unforced, value: Unforced) -> bool:
    """ndJsonSerialize(file, s): an element a line."""
    items = value_of(value)
    if not isinstance(items, tuple | frozenset):
        raise EvaluationError(f"ndJsonSerialize takes a sequence, not {shown(items)}")
    lines = canonical_sorted(items) if isinstance(items, frozenset) else items
    _write(file, "".join(f"{to_json(item)}\n" for item in lines))
    return True


def json_deserialize(file: Unforced) -> Value:
    """JsonDeserialize(file)."""
    return _parsed(_read(file), str(file))


def nd_json_deserialize(file: Unforced) -> Value:
    """ndJsonDeserialize(file): the sequence of the lines' values."""
    lines = filter(str.strip, _read(file).splitlines())
    return tuple(_parsed(line, str(file)) for line in lines)


def _parsed(text: str, where: str) -> Value:
    try:
        return _value_of_json(cast("JsonValue", json.loads(text)), where)
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"{where} is no JSON: {error}") from None


def _path(file: Unforced) -> Path:
    if not isinstance(file, str):
        raise EvaluationError(f"the name of a file is needed here, not {shown(file)}")
    return Path(file)


def _read(file: Unforced) -> str:
    try:
        return _path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{file} cannot be read: {error}") from None


def _write(file: Unforced, text: str) -> None:
    try:
        path = _path(file)
        path.parent.mkdir(parents=True, exist_ok=True)  # as the community module does
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"{file} cannot be written: {error}") from None


def io_env() -> Fn:
    """IOEnv: the variables of the environment, as a record."""
    fields: dict[Value, Value] = {}
    fields.update(os.environ)
    return Fn(fields)


def atoi(text: Unforced) -> int:
    """atoi(text)."""
    try:
        return int(str(text)) if isinstance(text, str) else int("none")
    except ValueError:
        raise EvaluationError(f"atoi takes a number written as text, not {shown(text)}") from None


def zero_padded(number: Unforced, width: Unforced) -> str:
    """zeroPadN(n, width)."""
    if type(number) is not int or type(width) is not int or number < 0:
        raise EvaluationError(
            f"zeroPadN takes two natural numbers, not {shown(number)}, {shown(width)}"
        )
    return str(number).zfill(width)


def model_value(name: Unforced) -> ModelValue:
    """TLCModelValue(name)."""
    if not isinstance(name, str):
        raise EvaluationError(f"TLCModelValue takes a string, not {shown(name)}")
    return ModelValue(name)
