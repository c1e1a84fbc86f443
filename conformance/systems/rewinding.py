"""Goes back to an earlier state of objects in this process, by putting back what they held.

A system that is made of plain Python objects need not be set up again for each test, nor walk
again where the test before has walked: the objects stay, and what each of them held is put back.
Closures, bound methods and references from outside so stay good.

    take      the objects that the root reaches, each with a shallow copy of what it holds
    restore   each copy put back into its object

What cannot be copied so (a suspended greenlet, a generator, an open file, an object of C with a
state of its own) raises CannotSnapshot. Values that cannot change are followed and not copied.
"""

from __future__ import annotations

import enum
import functools
import gc
import inspect
import logging
import re
import threading
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from operator import is_
from random import Random
from typing import Any, Final

from greenlet import greenlet

from conformance.systems.protocol import CannotSnapshot

_Object = Any  # mypy: every object of Python may be met here


@dataclass(frozen=True, slots=True)
class _Kind:
    """How objects of one layout are copied. `same` compares by identity: equal is not enough."""

    copy: Callable[[_Object], _Object]
    same: Callable[[_Object, _Object], bool]
    put: Callable[[_Object, _Object], None]
    parts: Callable[[_Object], Iterable[object]]
    """What a copy refers to."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What every object held."""

    entries: Sequence[tuple[_Kind, object, object]]
    met: dict[int, object]
    """All that was followed, by identity, and kept alive for its identity's sake."""


class Rewinder:
    """Snapshots of a root and all that it holds, but for what is set `apart`: what is remembered
    there is true in every state.

    Not for objects with something outside of this process behind them.
    """

    def __init__(self, root: object, apart: Iterable[object] = ()) -> None:
        self._root = root
        self._apart = {id(value): value for value in (self, *apart)}
        self._last: Snapshot | None = None

    def take(self) -> Snapshot:
        """The present state. Raises CannotSnapshot, which says what is in the way.

        Most objects are as the last snapshot has them: only what has changed is followed again.
        """
        last = self._last or Snapshot((), self._apart)
        entries, met = [], dict(last.met)
        pending: list[object] = [self._root]
        for entry in last.entries:
            kind, value, copy = entry
            if kind.same(value, copy):
                entries.append(entry)
            else:
                now = kind.copy(value)
                entries.append((kind, value, now))
                pending.extend(kind.parts(now))
        _follow(pending, entries, met)
        self._last = Snapshot(entries, met)
        return self._last

    def forget(self) -> None:
        """The root gets new objects: the last snapshot says nothing of them."""
        self._last = None

    def restore(self, snapshot: Snapshot) -> None:
        """Put all back; the snapshot stays good.

        Nothing is done as often: the commonest kinds are written out, without a call of Python's.
        """
        value: _Object
        copy: _Object
        for kind, value, copy in snapshot.entries:
            if kind is _ATTRIBUTES:
                value.__dict__ = copy.copy()
            elif kind is _DICT:
                value.clear()
                value.update(copy)
            elif kind is _LIST:
                value[:] = copy
            else:
                kind.put(value, copy)
        self._last = snapshot


class RewindingSystem:
    """A system that goes back by its `_rewinder`, which its `__init__` makes."""

    _rewinder: Rewinder

    def snapshot(self) -> Snapshot:
        """All that the system reaches, as it is now."""
        return self._rewinder.take()

    def restore(self, snapshot: Snapshot) -> None:
        """All of it as it was."""
        self._rewinder.restore(snapshot)


def _follow(
    pending: list[object], entries: list[tuple[_Kind, object, object]], met: dict[int, object]
) -> None:
    """Copy what is reached from `pending` and was not yet met."""
    while pending:
        value = pending.pop()
        layout = _LAYOUTS.get(type(value)) or _layout(type(value))
        if layout is _ATOM or id(value) in met:
            continue
        met[id(value)] = value
        for kind in layout.kinds:
            copy = kind.copy(value)
            entries.append((kind, value, copy))
            pending.extend(kind.parts(copy))
        pending.extend(layout.fixed(value))


# ---- kinds ---------------------------------------------------------------------------------


def _all_same(value: Collection[object], other: Collection[object]) -> bool:
    return len(value) == len(other) and all(map(is_, value, other))


def _same_items(value: dict[object, object], copy: dict[object, object]) -> bool:
    return (
        len(value) == len(copy)
        and all(map(is_, value.values(), copy.values()))
        and all(map(is_, value, copy))
    )


def _put_items(value: dict[object, object], copy: dict[object, object]) -> None:
    value.clear()
    value.update(copy)


def _parts_of_items(copy: dict[object, object]) -> Iterable[object]:
    return (*copy, *copy.values())


def _put_list(value: list[object], copy: list[object]) -> None:
    value[:] = copy


def _put_set(value: set[object], copy: set[object]) -> None:
    value.clear()
    value.update(copy)


def _put_deque(value: deque[object], copy: deque[object]) -> None:
    value.clear()
    value.extend(copy)


def _put_bytes(value: bytearray, copy: bytes) -> None:
    value[:] = copy


_EMPTY: Final = object()


def _in_cell(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _put_in_cell(cell: types.CellType, content: object) -> None:
    if content is _EMPTY:
        del cell.cell_contents
    else:
        cell.cell_contents = content


def _nothing(_one: object) -> Iterable[object]:
    return ()


def _itself(value: Iterable[object]) -> Iterable[object]:
    return value


_DICT = _Kind(dict.copy, _same_items, _put_items, _parts_of_items)
_LIST = _Kind(list, _all_same, _put_list, _itself)
_SET = _Kind(set, _all_same, _put_set, _itself)
_DEQUE = _Kind(deque, _all_same, _put_deque, _itself)
_BYTES = _Kind(bytes, bytearray.__eq__, _put_bytes, _nothing)
_RANDOM = _Kind(
    Random.getstate, lambda value, copy: value.getstate() == copy, Random.setstate, _nothing
)
_CELL = _Kind(
    _in_cell, lambda cell, copy: _in_cell(cell) is copy, _put_in_cell, lambda copy: (copy,)
)


def _put_attributes(value: _Object, copy: dict[str, object]) -> None:
    value.__dict__ = copy.copy()


_ATTRIBUTES = _Kind(
    lambda value: value.__dict__.copy(),
    lambda value, copy: _same_items(value.__dict__, copy),
    _put_attributes,
    dict.values,
)

_SLOTS_CODE: Final = """
def copy(one):
    return ({reads})
def same(one, held):
    {names}= held
    return {sames}
def put(one, held):
    {places}= held
"""
"""Written out for each class, as dataclasses do it: a loop over slots takes several times as long,
and restoring is little else."""


def _slots(cls: type, members: Sequence[types.MemberDescriptorType]) -> _Kind:
    """The slots of a class; one that has no value yet keeps none."""
    names = [member.__name__ for member in members]
    plain = inspect.getattr_static(cls, "__setattr__") is object.__setattr__
    shadowed = any(
        getattr(cls, name) is not member for name, member in zip(names, members, strict=True)
    )
    if shadowed or not plain:
        return _slots_one_by_one(members)
    return _slots_at_once(names, _slots_one_by_one(members))


def _slots_at_once(names: Sequence[str], one_by_one: _Kind) -> _Kind:
    """Where all slots have values a copy is a tuple, else the list of `one_by_one`."""
    places = [f"one.{name}" for name in names]
    entries = [f"held_{number}" for number in range(len(names))]
    code = _SLOTS_CODE.format(
        reads="".join(f"{place}, " for place in places),
        names="".join(f"{name}, " for name in entries),
        sames=" and ".join(f"{p} is {h}" for p, h in zip(places, entries, strict=True)),
        places="".join(f"{place}, " for place in places),
    )
    made: dict[str, Callable[..., Any]] = {}
    exec(code, {}, made)
    copy_all, same_all, put_all = made["copy"], made["same"], made["put"]

    def copy(value: object) -> object:
        try:
            return copy_all(value)
        except AttributeError:
            return one_by_one.copy(value)

    def same(value: object, entries: object) -> bool:
        try:
            return bool(same_all(value, entries))
        except AttributeError:
            return False

    def put(value: object, entries: object) -> None:
        if type(entries) is tuple:
            put_all(value, entries)
        else:
            one_by_one.put(value, entries)

    return _Kind(copy, same, put, _itself)


def _slots_one_by_one(members: Sequence[types.MemberDescriptorType]) -> _Kind:
    def copy(value: object) -> list[object]:
        return [_in_slot(member, value) for member in members]

    def put(item: object, entries: Sequence[object]) -> None:
        for member, value in zip(members, entries, strict=True):
            if value is not _EMPTY:
                member.__set__(item, value)
            elif _in_slot(member, item) is not _EMPTY:
                member.__delete__(item)

    return _Kind(copy, lambda value, entries: all(map(is_, copy(value), entries)), put, _itself)


def _in_slot(member: types.MemberDescriptorType, value: object) -> object:
    try:
        return member.__get__(value)
    except AttributeError:
        return _EMPTY


# ---- layouts -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Layout:
    """What a type's objects hold: what can change, and what cannot but may refer to what can."""

    kinds: tuple[_Kind, ...] = ()
    fixed: Callable[[_Object], Iterable[object]] = _nothing


_ATOM = _Layout()
"""Of what refers to nothing that can change."""


def _of_function(value: types.FunctionType) -> Iterable[object]:
    return (
        *(value.__closure__ or ()),
        *(value.__defaults__ or ()),
        *(value.__kwdefaults__ or {}).values(),
        *value.__dict__.values(),
    )


def _of_builtin(value: types.BuiltinFunctionType) -> Iterable[object]:
    return (value.__self__,)


def _of_partial(value: functools.partial[object]) -> Iterable[object]:
    return (value.func, *value.args, *value.keywords.values())


def _at_rest(value: greenlet) -> Iterable[object]:
    """The main one stands for the thread, a dead one for nothing; others hold a stack."""
    if value.dead or value.parent is None:
        return ()
    raise CannotSnapshot("a greenlet stands still in the middle of a call")


def _open(value: _Object) -> Iterable[object]:
    if value.locked():
        raise CannotSnapshot("a lock is held")
    return ()


_TYPES_OF_ATOMS: Final = (
    *(type(None), bool, int, float, complex, str, bytes, range, slice),
    *(type(Ellipsis), type(NotImplemented), types.ModuleType, types.CodeType, property),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
    *(types.MethodDescriptorType, types.ClassMethodDescriptorType, classmethod, staticmethod),
    *(re.Pattern, ContextVar, weakref.ref, types.GenericAlias, types.UnionType, object),
    functools._lru_cache_wrapper,
)
_LAYOUTS: dict[type, _Layout] = {
    **dict.fromkeys(_TYPES_OF_ATOMS, _ATOM),
    tuple: _Layout(fixed=_itself),
    frozenset: _Layout(fixed=_itself),
    dict: _Layout((_DICT,)),
    list: _Layout((_LIST,)),
    set: _Layout((_SET,)),
    deque: _Layout((_DEQUE,)),
    bytearray: _Layout((_BYTES,)),
    Random: _Layout((_RANDOM,)),
    types.CellType: _Layout((_CELL,)),
    types.FunctionType: _Layout(fixed=_of_function),
    types.MethodType: _Layout(fixed=lambda value: (value.__self__, value.__func__)),
    types.BuiltinFunctionType: _Layout(fixed=_of_builtin),
    types.MethodWrapperType: _Layout(fixed=_of_builtin),
    functools.partial: _Layout(fixed=_of_partial),
    greenlet: _Layout(fixed=_at_rest),
    type(threading.Lock()): _Layout(fixed=_open),
    types.MappingProxyType: _Layout(fixed=gc.get_referents),
}  # fmt: skip
"""By type; of classes written in Python when one is first met."""
_BASES: Final[dict[type, _Layout]] = {
    object: _Layout(),
    **{value: _Layout() for value in (int, float, str, bytes)},
    **{value: _LAYOUTS[value] for value in (tuple, frozenset, dict, list, set, deque, bytearray)},
    OrderedDict: _Layout((_Kind(OrderedDict, _same_items, _put_items, _parts_of_items),)),
    BaseException: _Layout(fixed=lambda value: value.args),
}
"""What a class written in Python may be built on."""
_POINTER: Final = object.__basicsize__ // 2


def _layout(cls: type) -> _Layout:
    known = _LAYOUTS[cls] = _layout_of_class(cls)
    return known


def _layout_of_class(cls: type) -> _Layout:
    if issubclass(cls, type | enum.Enum | logging.Logger):
        return _ATOM
    base = next(value for value in cls.__mro__ if value in _BASES)
    members = [
        member
        for value in cls.__mro__
        for member in vars(value).values()
        if isinstance(member, types.MemberDescriptorType) and value not in _BASES
    ]
    _demand_no_more(cls, base, len(members))
    kinds = list(_BASES[base].kinds)
    has_attributes = cls.__dictoffset__ != 0
    if _is_frozen(cls):
        slots = _slots(cls, members) if members else None
        return _Layout(tuple(kinds), functools.partial(_of_frozen, base, slots, has_attributes))
    if has_attributes:
        kinds.append(_ATTRIBUTES)
    if members:
        kinds.append(_slots(cls, members))
    return _Layout(tuple(kinds), _BASES[base].fixed)


def _is_frozen(cls: type) -> bool:
    """Whether it is a dataclass whose fields nobody sets."""
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def _of_frozen(
    base: type, slots: _Kind | None, has_attributes: bool, value: _Object
) -> Iterable[object]:
    yield from _BASES[base].fixed(value)
    if has_attributes:
        yield from value.__dict__.values()
    if slots is not None:
        yield from slots.copy(value)


def _demand_no_more(cls: type, base: type, slots: int) -> None:
    """An object that is larger than its base and its slots has a state that only C sees."""
    pointers = slots + (cls.__dictoffset__ != 0) + (cls.__weakrefoffset__ != 0)
    if cls.__basicsize__ > base.__basicsize__ + _POINTER * pointers:
        raise CannotSnapshot(f"a {cls.__module__}.{cls.__qualname__} holds more than Python shows")


_LAYOUTS[Rewinder] = _ATOM  # of a part that has snapshots of its own
