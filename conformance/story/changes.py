"""What differs between two states, at the innermost places that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.tla import Fn, Place, Value, canonical_sorted, format_value


@dataclass(frozen=True, slots=True)
class Change:
    """One place in the state, such as `log.b1[2]`, and what happened to it."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def changes(
    variables: Sequence[str], before: Sequence[Value | None], after: Sequence[Value | None]
) -> list[Change]:
    """The variables that the step changed, without those unknown (None) before or after."""
    result: list[Change] = []
    for name, old, new in zip(variables, before, after, strict=True):
        if old is not None and new is not None:
            result.extend(_changes(Place(name), old, new))
    return result


def _changes(place: Place, old: Value, new: Value) -> Iterator[Change]:
    if old == new:
        return
    if isinstance(old, Fn) and isinstance(new, Fn) and old.keys() == new.keys():
        for key in canonical_sorted(old):
            yield from _changes(place.entry(key), old[key], new[key])
    elif isinstance(old, tuple) and isinstance(new, tuple):
        yield from _sequence_changes(place, old, new)
    elif isinstance(old, frozenset) and isinstance(new, frozenset):
        yield from _set_changes(place, old, new)
    else:
        yield Change(str(place), f"{format_value(old)} -> {format_value(new)}")


def _sequence_changes(
    place: Place, old: tuple[Value, ...], new: tuple[Value, ...]
) -> Iterator[Change]:
    shared = min(len(old), len(new))
    for index in range(shared):
        yield from _changes(place.entry(index + 1), old[index], new[index])
    if len(new) > shared:
        added = ", ".join(map(format_value, new[shared:]))
        yield Change(str(place), f"appended {added}")
    elif len(old) > shared:
        removed = ", ".join(map(format_value, old[shared:]))
        yield Change(str(place), f"lost its end {removed}")


def _set_changes(place: Place, old: frozenset[Value], new: frozenset[Value]) -> Iterator[Change]:
    for sign, items in (("removed", old - new), ("added", new - old)):
        if items:
            yield Change(
                str(place), f"{sign} {', '.join(map(format_value, canonical_sorted(items)))}"
            )
