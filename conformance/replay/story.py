"""Shows where an observation differs from what the spec allows, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.events import Difference
from conformance.replay.engine import Divergence
from conformance.tla import Fn, Value, agree, differing, format_value


def differences(
    variables: Sequence[str], divergence: Divergence, *, limit: int = 20
) -> tuple[Difference, ...]:
    """The variables in which the observation differs from the nearest allowed state.

    Where several states were allowed, the one that differs in the fewest variables is
    shown, and every other value that was possible stands beside it.
    """
    if not divergence.allowed or not divergence.observed:
        return ()
    positions = {name: index for index, name in enumerate(variables)}
    observed = divergence.observed
    nearest = min(divergence.allowed, key=lambda one: len(differing(variables, one, observed)))
    found: list[Difference] = []
    for name in differing(variables, nearest, observed):
        possible = dict.fromkeys(state[positions[name]] for state in divergence.allowed)
        expected = [
            nearest[positions[name]],
            *(v for v in possible if v != nearest[positions[name]]),
        ]
        found.extend(_parts(name, expected, observed[name]))
    return tuple(found[:limit])


def _parts(name: str, expected: Sequence[Value], actual: Value) -> list[Difference]:
    """One difference per differing entry of a function, as long as the domains agree."""
    first = expected[0]
    if (
        len(expected) == 1
        and isinstance(first, Fn)
        and isinstance(actual, Fn)
        and set(first) == set(actual)
    ):
        return [
            part
            for key in first
            if not agree(first[key], actual[key])
            for part in _parts(_index(name, key), [first[key]], actual[key])
        ]
    texts = " or ".join(format_value(value) for value in expected)
    return [Difference(name, texts, format_value(actual))]


def _index(name: str, key: Value) -> str:
    if isinstance(key, str) and key.isidentifier() and "[" in name:
        return f"{name}.{key}"
    return f"{name}[{format_value(key)}]"


def observed_lines(observed: Mapping[str, Value]) -> tuple[str, ...]:
    """An observation, one variable a line, as TLC prints a state."""
    return tuple(f"/\\ {name} = {format_value(value)}" for name, value in observed.items())
