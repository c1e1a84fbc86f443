"""Tells a counterexample as a story: numbered actions, and under each what it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.tla import Action, Fn, State, Value, canonical_sorted, format_value


@dataclass(frozen=True, slots=True)
class CounterexampleStep:
    """A state and the action that led to it; None at the start."""

    action: Action | None
    state: State


@dataclass(frozen=True, slots=True)
class Change:
    """One place in the state, such as `log.b1[2]`, and what happened to it."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def tell(
    variables: Sequence[str], steps: Sequence[CounterexampleStep], ending: str = ""
) -> tuple[str, ...]:
    """The story, line by line; changes are indented under their action."""
    lines: list[str] = []
    for number, step in enumerate(steps, start=1):
        lines.append(f"{number}. {step.action or 'Initial state'}")
        if number == 1:
            pairs = zip(variables, step.state, strict=True)
            lines += [f"     {name} = {format_value(value)}" for name, value in pairs]
        else:
            found = changes(variables, steps[number - 2].state, step.state)
            lines += [f"     {change}" for change in found] or ["     (nothing changes)"]
    if ending:
        lines.append(ending)
    return tuple(lines)


def changes(variables: Sequence[str], before: State, after: State) -> list[Change]:
    """What differs between two states, at the innermost places that differ."""
    found: list[Change] = []
    for name, old, new in zip(variables, before, after, strict=True):
        found.extend(_changes(name, old, new))
    return found


def _changes(place: str, old: Value, new: Value) -> Iterator[Change]:
    if old == new:
        return
    if isinstance(old, Fn) and isinstance(new, Fn) and old.keys() == new.keys():
        for key in canonical_sorted(old):
            yield from _changes(f"{place}{_selector(key)}", old[key], new[key])
    elif isinstance(old, tuple) and isinstance(new, tuple):
        yield from _sequence_changes(place, old, new)
    elif isinstance(old, frozenset) and isinstance(new, frozenset):
        yield from _set_changes(place, old, new)
    else:
        yield Change(place, f"{format_value(old)} -> {format_value(new)}")


def _selector(key: Value) -> str:
    # A function on strings and a record are one thing in TLA+: `f.b1` is `f["b1"]`, and shorter.
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{format_value(key)}]"


def _sequence_changes(
    place: str, old: tuple[Value, ...], new: tuple[Value, ...]
) -> Iterator[Change]:
    shared = min(len(old), len(new))
    for index in range(shared):
        yield from _changes(f"{place}[{index + 1}]", old[index], new[index])
    if len(new) > shared:
        added = ", ".join(map(format_value, new[shared:]))
        yield Change(place, f"appended {added}")
    elif len(old) > shared:
        removed = ", ".join(map(format_value, old[shared:]))
        yield Change(place, f"lost its end {removed}")


def _set_changes(place: str, old: frozenset[Value], new: frozenset[Value]) -> Iterator[Change]:
    for sign, items in (("removed", old - new), ("added", new - old)):
        if items:
            yield Change(place, f"{sign} {', '.join(map(format_value, canonical_sorted(items)))}")
