"""Damages states at random without leaving the types of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from conformance.tla import (
    Fn,
    MapOf,
    ModelValue,
    Scalar,
    Schema,
    SequenceOf,
    SetOf,
    State,
    StructOf,
    TupleOf,
    Type,
    Value,
    canonical_sorted,
    make_function,
)


class Corrupter:
    """Changes a value, drops an entry or swaps two; what it puts in was seen somewhere."""

    def __init__(self, schema: Schema, states: Sequence[State], seed: int) -> None:
        self._schema = schema
        self._random = Random(seed)
        self._seen: dict[Type, list[Value]] = {}
        for state in states:
            for (_, kind), value in zip(schema.variables, state, strict=True):
                self._collect(kind, value)

    def _collect(self, kind: Type | None, value: Value) -> None:
        if kind is None:
            return
        pool = self._seen.setdefault(kind, [])
        if len(pool) < 200 and value not in pool:
            pool.append(value)
        for part, item in _parts(kind, value):
            self._collect(part, item)

    def __call__(self, state: State, times: int = 1) -> State:
        """The state with so many damages."""
        values = list(state)
        for _ in range(times):
            index = self._random.randrange(len(values))
            values[index] = self._damaged(self._schema.variables[index][1], values[index])
        return tuple(values)

    def _damaged(self, kind: Type, value: Value) -> Value:
        inner = _parts(kind, value)
        if inner and self._random.random() < 0.75:
            return self._inside(kind, value)
        if isinstance(kind, Scalar):
            return self._other(kind, value)
        if isinstance(value, tuple) and isinstance(kind, SequenceOf):
            return self._sequence(kind, value)
        if isinstance(value, frozenset):
            return self._set(kind, value)
        return self._random.choice(self._seen[kind])

    def _other(self, kind: Scalar, value: Value) -> Value:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return value + self._random.choice((-2, -1, 1, 2))
        pool = self._seen[kind]
        return self._random.choice(pool)

    def _sequence(self, kind: SequenceOf, value: tuple[Value, ...]) -> Value:
        items = list(value)
        choice = self._random.randrange(3)
        if choice == 0 and items:
            del items[self._random.randrange(len(items))]
        elif choice == 1 and len(items) > 1:
            i, j = self._random.sample(range(len(items)), 2)
            items[i], items[j] = items[j], items[i]
        elif kind.element is not None and kind.element in self._seen:
            place = self._random.randrange(len(items) + 1)
            items.insert(place, self._random.choice(self._seen[kind.element]))
        return tuple(items)

    def _set(self, kind: Type, value: frozenset[Value]) -> Value:
        if value and self._random.random() < 0.5:
            return value - {self._random.choice(canonical_sorted(value))}
        if isinstance(kind, SetOf) and kind.element is not None and kind.element in self._seen:
            return value | {self._random.choice(self._seen[kind.element])}
        return value

    def _inside(self, kind: Type, value: Value) -> Value:
        match kind, value:
            case SetOf(element=element), frozenset() if element is not None:
                old = self._random.choice(canonical_sorted(value))
                return (value - {old}) | {self._damaged(element, old)}
            case ((SequenceOf() | TupleOf()), tuple()):
                parts = _parts(kind, value)
                place = self._random.randrange(len(parts))
                new = self._damaged(*parts[place])
                return (*value[:place], new, *value[place + 1 :])
            case StructOf(fields=fields), Fn():
                return self._struct(dict(fields), value)
            case MapOf(value=result), (Fn() | tuple()):
                return self._pairs(result, value)
        raise AssertionError(kind)

    def _struct(self, kinds: dict[Value, Type], value: Fn) -> Value:
        key, other = (self._random.choice(list(kinds)) for _ in range(2))
        if self._random.random() < 0.2 and kinds[key] == kinds[other]:
            return Fn({**value.mapping, key: value[other], other: value[key]})
        return Fn({**value.mapping, key: self._damaged(kinds[key], value[key])})

    def _pairs(self, result: Type, value: Fn | tuple[Value, ...]) -> Value:
        entries = enumerate(value, 1) if isinstance(value, tuple) else value.items()
        pairs: dict[Value, Value] = dict(entries)
        key = self._random.choice(canonical_sorted(pairs))
        if self._random.random() < 0.3:
            del pairs[key]
        else:
            pairs[key] = self._damaged(result, pairs[key])
        return make_function(pairs)


def _parts(kind: Type, value: Value) -> list[tuple[Type, Value]]:
    match kind, value:
        case SetOf(element=element), frozenset() if element is not None:
            return [(element, item) for item in value]
        case SequenceOf(element=element), tuple() if element is not None:
            return [(element, item) for item in value]
        case TupleOf(items=items), tuple():
            return list(zip(items, value, strict=True))
        case StructOf(fields=fields), Fn():
            return [(part, value[key]) for key, part in fields]
        case MapOf(value=result), Fn():
            return [(result, item) for item in value.values()]
        case MapOf(value=result), tuple():
            return [(result, item) for item in value]
    return []


__all__ = ["Corrupter", "ModelValue"]
