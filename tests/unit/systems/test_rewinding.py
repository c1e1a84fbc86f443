"""Going back to what objects held."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from threading import Lock
from typing import Any, NamedTuple

import pytest
from greenlet import getcurrent, greenlet
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.systems.protocol import CannotSnapshot
from conformance.systems.rewinding import Rewinder


class Plain:
    def __init__(self, **held: object) -> None:
        self.__dict__.update(held)


class Slotted:
    __slots__ = ("late", "value")

    def __init__(self, value: object) -> None:
        self.value = value


class Both(Slotted):
    def __init__(self, value: object, other: object) -> None:
        super().__init__(value)
        self.other = other


class Guarded(Slotted):
    """Nobody may set its slots in the ordinary way."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


class Shadowed(Slotted):
    """Has a method by the name of its slot."""

    __slots__ = ()

    def value(self) -> None: ...  # type: ignore[assignment]  # what is tested


VALUE = Slotted.__dict__["value"]


@dataclass(frozen=True, slots=True)
class Frozen:
    inside: list[int]


@dataclass
class Fields:
    inside: dict[str, int] = field(default_factory=dict)


class Pair(NamedTuple):
    first: list[int]
    second: int


class Ledger(dict[str, int]):
    """A dict with attributes of its own."""

    total = 0


def counter() -> Callable[[], int]:
    count = 0

    def more() -> int:
        nonlocal count
        count += 1
        return count

    return more


def add_attribute(root: Any) -> None:
    root.new = 1


def fill_slot(root: Any) -> None:
    root.late = 5


HOLDERS = [
    pytest.param(lambda: [1, [2]], lambda root: root[1].append(3), id="a list in a list"),
    pytest.param(lambda: {"a": [1]}, lambda root: root["a"].clear(), id="a list in a dict"),
    pytest.param(lambda: {"a": 1}, lambda root: root.pop("a"), id="a key that goes"),
    pytest.param(lambda: {1, 2}, lambda root: root.discard(2), id="a set"),
    pytest.param(lambda: deque([1], maxlen=2), lambda root: root.extend([2, 3]), id="a deque"),
    pytest.param(lambda: bytearray(b"ab"), lambda root: root.extend(b"c"), id="bytes"),
    pytest.param(lambda: OrderedDict(a=1, b=2), lambda root: root.move_to_end("a"), id="an order"),
    pytest.param(lambda: Counter("aab"), lambda root: root.update("b"), id="a counter"),
    pytest.param(lambda: defaultdict(list), lambda root: root["x"].append(1), id="a default"),
    pytest.param(
        lambda: Ledger(a=1), lambda root: setattr(root, "total", 9), id="a dict's attribute"
    ),
    pytest.param(lambda: Ledger(a=1), lambda root: root.update(a=2), id="a dict of a class"),
    pytest.param(lambda: Plain(a=1), add_attribute, id="an attribute that comes"),
    pytest.param(lambda: Plain(a=1), lambda root: delattr(root, "a"), id="one that goes"),
    pytest.param(lambda: Slotted(1), lambda root: setattr(root, "value", 2), id="a slot"),
    pytest.param(lambda: Slotted(1), fill_slot, id="a slot without a value"),
    pytest.param(lambda: Both(1, 2), lambda root: setattr(root, "other", 3), id="slots and a dict"),
    pytest.param(
        lambda: Both(1, 2), lambda root: setattr(root, "value", 3), id="an inherited slot"
    ),
    pytest.param(lambda: Frozen([1]), lambda root: root.inside.append(2), id="in a frozen record"),
    pytest.param(lambda: Fields(), lambda root: root.inside.update(a=1), id="in a record"),
    pytest.param(lambda: Pair([1], 2), lambda root: root.first.append(2), id="in a named tuple"),
    pytest.param(lambda: Plain(a=[1].append), lambda root: root.a(2), id="behind a builtin method"),
    pytest.param(lambda: Plain(a=partial([1].append, 2)), lambda root: root.a(), id="a partial"),
    pytest.param(lambda: ValueError([1]), lambda root: root.args[0].append(2), id="an exception"),
]


def shown(one: Any) -> object:
    """All that can be seen of an object, taken apart."""
    match one:
        case dict():
            return [(key, shown(value)) for key, value in one.items()], vars_of(one)
        case list() | tuple() | deque():
            return type(one).__name__, [shown(part) for part in one]
        case set():
            return sorted(one)
        case bytearray():
            return bytes(one)
        case partial():
            return shown((one.func, one.args))
        case BaseException():
            return shown(one.args)
    if (itself := getattr(one, "__self__", None)) is not None:
        return shown(itself)
    is_plain = not (hasattr(one, "__dict__") or hasattr(one, "__slots__"))
    return repr(one) if is_plain else vars_of(one)


def vars_of(one: object) -> object:
    slots = [name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())]
    held = {**getattr(one, "__dict__", {})}
    held |= {name: getattr(one, name) for name in slots if hasattr(one, name)}
    return sorted((name, shown(value)) for name, value in held.items())


@pytest.mark.parametrize(("make", "change"), HOLDERS)
def test_what_an_object_held_comes_back(
    make: Callable[[], object], change: Callable[[object], object]
) -> None:
    root = make()
    before = shown(root)
    rewinder = Rewinder(root)
    snapshot = rewinder.take()

    change(root)
    assert shown(root) != before
    later = rewinder.take()
    rewinder.restore(snapshot)

    assert shown(root) == before
    change(root)
    changed = shown(root)
    rewinder.restore(snapshot)
    rewinder.restore(later)
    assert shown(root) == changed


def test_what_a_closure_counts_comes_back() -> None:
    root = Plain(more=counter())
    rewinder = Rewinder(root)
    snapshot = rewinder.take()
    assert [root.more(), root.more()] == [1, 2]  # type: ignore[attr-defined]  # an attribute of Plain
    rewinder.restore(snapshot)
    assert root.more() == 1  # type: ignore[attr-defined]  # an attribute of Plain


def test_what_chance_has_drawn_is_drawn_again() -> None:
    root = Plain(random=Random(7))
    rewinder = Rewinder(root)
    snapshot = rewinder.take()
    first = root.random.random()  # type: ignore[attr-defined]  # an attribute of Plain
    rewinder.restore(snapshot)
    assert root.random.random() == first  # type: ignore[attr-defined]  # an attribute of Plain


@pytest.mark.parametrize("cls", [Guarded, Shadowed])
def test_slots_that_are_not_set_in_the_ordinary_way(cls: type[Slotted]) -> None:
    root = cls.__new__(cls)
    VALUE.__set__(root, 1)
    rewinder = Rewinder(root)
    snapshot = rewinder.take()
    VALUE.__set__(root, 2)
    later = rewinder.take()
    rewinder.restore(snapshot)
    assert VALUE.__get__(root) == 1
    rewinder.restore(later)
    assert VALUE.__get__(root) == 2


def test_objects_stay_the_same_ones() -> None:
    inside: list[int] = []
    root = Plain(a=inside, b=inside)
    rewinder = Rewinder(root)
    snapshot = rewinder.take()
    root.a = [1]
    rewinder.restore(snapshot)
    assert vars(root)["a"] is vars(root)["b"] is inside


def test_an_equal_object_in_place_of_another_is_a_change() -> None:
    root = Plain(a=[])
    rewinder = Rewinder(root)
    rewinder.take()
    new: list[int] = []
    root.a = new
    snapshot = rewinder.take()
    new.append(1)
    rewinder.restore(snapshot)
    assert vars(root)["a"] is new
    assert new == []


def test_what_is_apart_is_left_alone() -> None:
    remembered: dict[str, int] = {}
    root = Plain(known=remembered, here=0)
    rewinder = Rewinder(root, apart=[remembered])
    snapshot = rewinder.take()
    remembered["a"], root.here = 1, 2
    rewinder.restore(snapshot)
    assert (remembered, vars(root)["here"]) == ({"a": 1}, 0)


def test_new_objects_are_found_when_the_last_ones_are_forgotten() -> None:
    root = Plain(a=[1])
    rewinder = Rewinder(root)
    rewinder.take()
    root.__dict__ = {"a": [2]}
    rewinder.forget()
    snapshot = rewinder.take()
    vars(root)["a"].append(3)
    rewinder.restore(snapshot)
    assert vars(root)["a"] == [2]


def suspended() -> greenlet:
    one = greenlet(lambda: getcurrent().parent.switch())
    one.switch()
    return one


def held() -> object:
    lock = Lock()
    lock.acquire()
    return lock


REFUSED = [
    pytest.param(suspended, "a greenlet stands still", id="a greenlet"),
    pytest.param(held, "a lock is held", id="a lock"),
    pytest.param(lambda: (number for number in ()), "generator holds more", id="a generator"),
    pytest.param(lambda: iter([1]), "list_iterator holds more", id="an iterator"),
    pytest.param(lambda: memoryview(b"a"), "memoryview holds more", id="a view of bytes"),
]


@pytest.mark.parametrize(("make", "why"), REFUSED)
def test_what_cannot_be_put_back_is_refused(make: Callable[[], object], why: str) -> None:
    root = Plain(a=[make()])
    with pytest.raises(CannotSnapshot, match=why):
        Rewinder(root).take()


def test_what_does_not_run_may_stay() -> None:
    done = greenlet(lambda: None)
    done.switch()
    Rewinder(Plain(a=done, b=getcurrent(), c=Lock())).take()


STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "drop", "swap", "set", "nest"]), st.integers(0, 3)),
    max_size=8,
)


def act(root: Plain, step: str, number: int) -> None:
    held: Any = vars(root)
    match step:
        case "append":
            held["list"].append(number)
        case "drop":
            del held["list"][number:]
        case "swap":
            held["list"] = list(held["list"])
        case "set":
            held["dict"][number] = held["list"]
        case "nest":
            held["list"].append([number])


@settings(deadline=None)
@given(STEPS, STEPS, STEPS)
def test_any_snapshot_leads_back(
    first: list[tuple[str, int]], second: list[tuple[str, int]], third: list[tuple[str, int]]
) -> None:
    """Taken one after the other, and returned to in another order."""
    root = Plain(list=[], dict={})
    rewinder = Rewinder(root)
    taken = [(rewinder.take(), repr(vars(root)))]
    for steps in (first, second):
        for step in steps:
            act(root, *step)
        taken.append((rewinder.take(), repr(vars(root))))
    for number in (0, 2, 1, 2, 0):
        for step in third:
            act(root, *step)
        snapshot, looked = taken[number]
        rewinder.restore(snapshot)
        assert repr(vars(root)) == looked
        again = rewinder.take()
        act(root, "append", 9)
        rewinder.restore(again)
        assert repr(vars(root)) == looked
