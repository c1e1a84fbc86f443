"""Compares an observation with the allowed states, at the innermost places that differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from conformance.events import Difference
from conformance.tla import Fn, Partial, Place, Value, agree, differing, format_value

_State = TypeVar("_State", bound=Partial)

_LIMIT = 20
"""The maximum number of differences in a message."""


def nearest(
    variables: Sequence[str], allowed: Sequence[_State], observed: Mapping[str, Value]
) -> _State | None:
    """The allowed state that differs in the fewest variables; None if none is allowed."""
    return min(allowed, key=lambda state: len(differing(variables, state, observed)), default=None)


def differences(
    variables: Sequence[str],
    allowed: Sequence[Partial],
    observed: Mapping[str, Value],
    *,
    limit: int = _LIMIT,
) -> tuple[Difference, ...]:
    """Where the observation differs from the allowed state that it comes nearest to.

    Where several states were allowed, every other value that was possible stands beside it.
    """
    expected = nearest(variables, allowed, observed)
    if expected is None or not observed:
        return ()
    result: list[Difference] = []
    for name in differing(variables, expected, observed):
        position = variables.index(name)
        possible = (expected, *allowed)
        values = tuple(dict.fromkeys(state[position] for state in possible))
        result.extend(_parts(Place(name), values, observed[name]))
    return tuple(result[:limit])


def variables_of(result: Iterable[Difference]) -> tuple[str, ...]:
    """The variables that differ, without arguments and fields, each once."""
    names = (difference.variable.partition("[")[0].partition(".")[0] for difference in result)
    return tuple(dict.fromkeys(names))


def model_values_as_strings(result: Iterable[Difference]) -> tuple[str, ...]:
    """The names of model values for which strings were observed: they print alike but for quotes.

    A string that is a key prints as a field's name, `[a |-> 0]`; a model value as `(a :> 0)`.
    """
    names: dict[str, None] = {}
    for difference in result:
        bare = _FIELD.sub("", _QUOTED.sub("", difference.expected))
        seen = {
            *_QUOTED.findall(difference.actual),
            *_FIELD.findall(_QUOTED.sub("", difference.actual)),
        }
        values = dict.fromkeys(_NAME.findall(bare))
        names |= {name: None for name in values if name in seen and name not in ("TRUE", "FALSE")}
    return tuple(names)


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FIELD = re.compile(r"([A-Za-z_]\w*) \|->")
_NAME = re.compile(r"[A-Za-z_]\w*")


def _parts(place: Place, expected: Sequence[Value | None], actual: Value) -> Iterator[Difference]:
    """One difference per differing entry of a function, as long as the domains agree."""
    only = expected[0] if len(expected) == 1 else None
    if isinstance(only, Fn) and isinstance(actual, Fn) and set(only) == set(actual):
        for key in only:
            if not agree(only[key], actual[key]):
                yield from _parts(place.entry(key), (only[key],), actual[key])
    else:
        yield Difference(str(place), " or ".join(map(_text, expected)), format_value(actual))


def _text(value: Value | None) -> str:
    return "(unknown)" if value is None else format_value(value)
