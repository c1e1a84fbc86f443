"""What TLC's operators keep and show beside a state: the level, registers, printed lines, chance.

`Print`, `TLCSet`, `TLCGet`, `RandomElement` and their like depend on more than the state, or do
more than give a value. One `TlcSession` belongs to one bound specification. The engine never
prints: a caller that wants the lines passes `show`.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from conformance.tla.errors import UnsupportedError
from conformance.tla.python.runtime import iterate
from conformance.tla.semantics.equality import Unforced, value_of
from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.semantics.sets import Functions, Powerset, Product, Records, SymbolicSet
from conformance.tla.values import Fn, Value, canonical_sorted, format_value, make_function

Show = Callable[[str], None]
"""Called with each line that the specification prints."""

SEED = 0
"""Of what is drawn at random: two runs draw the same."""

_NAMED = "s:"
"""TLC's mark of a register that has a name instead of a number."""

_PROPERTIES = {
    "-Dfile.separator": os.sep,
    "-Dpath.separator": os.pathsep,
    "-Dline.separator": os.linesep,
}
"""Of the properties of Java's that TLCGet gives, those that say something about the machine."""

_LACKING = frozenset({"spec", "action", "coverage", "behavior", "id", "install"})
"""What TLCGet gives of TLC's own inner life."""

_REVISION = Fn(
    {
        "count": 0,
        "tag": "development",
        "timestamp": 1777481289,
        "date": "2026-04-29T16:48:09.0Z",
        "calver": "2026.04.29",
    }
)
"""Whose semantics TLCGet("revision") says that this is: TLC's as of that day, a development build
since it is none of TLC's releases."""


class TlcSession:
    """The state of TLC's operators. Lines are shown when the formula that prints them is settled:
    what is evaluated twice, because a first attempt had no value, prints once.
    """

    def __init__(self, *, deadlock: bool = True) -> None:
        self.level: int | None = None
        """0 for the initial states, then the level of the state whose successors are sought."""
        self.show: Show | None = None
        self.ended = False
        """Whether TLCSet("exit", TRUE) asked for the end."""
        self.statistics: Callable[[], Mapping[str, int]] | None = None
        """What a search counts: generated, distinct, queue, diameter, duration."""
        self._registers: dict[int | str, Value] = {}
        self._cached: dict[tuple[str, Value], Value] = {}
        self._pending: list[str] = []
        self._journal: list[tuple[int | str, Value | None]] = []
        self._random = random.Random(SEED)
        self._deadlock = deadlock

    # --- attempts -------------------------------------------------------------------------

    def mark(self) -> tuple[int, int]:
        """Where an attempt begins; `undo` takes back what was printed and set since then."""
        return len(self._pending), len(self._journal)

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget an attempt that had no value."""
        printed, written = mark
        del self._pending[printed:]
        while len(self._journal) > written:
            register, old = self._journal.pop()
            if old is None:
                self._registers.pop(register, None)
            else:
                self._registers[register] = old

    def settle(self) -> None:
        """Show what was printed; nothing before this is taken back."""
        lines, self._pending = self._pending, []
        self._journal.clear()
        if self.show is not None:
            for line in lines:
                self.show(line)

    @contextmanager
    def muted(self) -> Iterator[None]:
        """What is evaluated once more, to explain a value, prints and sets nothing."""
        mark = self.mark()
        try:
            yield
        finally:
            self.undo(mark)

    # --- the operators --------------------------------------------------------------------

    def print_both(self, out: Unforced, value: Unforced) -> Value:
        """Print(out, value)."""
        result = value_of(value)
        self._pending.append(f"{format_value(value_of(out))}  {format_value(result)}")
        return result

    def print_true(self, out: Unforced) -> bool:
        """PrintT(out)."""
        self._pending.append(format_value(value_of(out)))
        return True

    def java_time(self) -> int:
        """JavaTime: seconds, as TLC after 2.15 counts them."""
        return int(time.time()) & 0x7FFFFFFF

    def tlc_set(self, register: Unforced, value: Unforced) -> bool:
        """TLCSet(register, value)."""
        new = value_of(value)
        if register == "exit":
            if type(new) is not bool:
                raise EvaluationError(f'TLCSet("exit", v) takes a boolean, not {shown(new)}')
            self.ended = self.ended or new
            return True
        if register == "pause":
            return True
        key = self._register(register, "TLCSet")
        self._journal.append((key, self._registers.get(key)))
        self._registers[key] = new
        return True

    def tlc_get(self, register: Unforced) -> Value:
        """TLCGet(register)."""
        if isinstance(register, str) and not register.startswith(_NAMED):
            return self._named(register)
        key = self._register(register, "TLCGet")
        if key not in self._registers:
            raise EvaluationError(f"TLCGet({shown(register)}) is read before TLCSet has set it")
        return self._registers[key]

    def tlc_get_or(self, register: Unforced, default: Unforced) -> Value:
        """TLCGetOrDefault(register, default)."""
        key = self._register(register, "TLCGetOrDefault")
        return self._registers[key] if key in self._registers else value_of(default)

    def tlc_get_and_set(
        self,
        register: Unforced,
        operator: Callable[[Value, Value], Unforced],
        value: Unforced,
        default: Unforced,
    ) -> Value:
        """TLCGetAndSet(register, Op, value, default): the old value, replaced by Op(old, value)."""
        old = self.tlc_get_or(register, default)
        self.tlc_set(register, operator(old, value_of(value)))
        return old

    def random_element(self, elements: Unforced) -> Value:
        """RandomElement(S), of a product without its enumeration."""
        if isinstance(elements, Functions):
            arguments = canonical_sorted(elements.domain)
            return make_function({x: self.random_element(elements.range) for x in arguments})
        if isinstance(elements, Records):
            fields = elements.fields
            return Fn({name: self.random_element(of) for name, of in fields.items()})
        if isinstance(elements, Product):
            return tuple(map(self.random_element, elements.factors))
        if isinstance(elements, Powerset):
            items = canonical_sorted(elements.of)
            return frozenset(item for item in items if self._random.random() < 0.5)
        items = canonical_sorted(iterate(elements))
        if not items:
            raise EvaluationError("RandomElement of the empty set")
        return self._random.choice(items)

    def random_subset(self, size: Unforced, elements: Unforced) -> frozenset[Value]:
        """RandomSubset(k, S): k elements of S; all of them if there are fewer."""
        count = _natural(size, "RandomSubset")
        if isinstance(elements, SymbolicSet) and (elements.at_most() or 0) > 100 * count:
            return self._draws(count, elements)
        items = canonical_sorted(iterate(elements))
        return frozenset(self._random.sample(items, min(count, len(items))))

    def _draws(self, count: int, elements: SymbolicSet) -> frozenset[Value]:
        result: set[Value] = set()
        while len(result) < count:
            result.add(self.random_element(elements))
        return frozenset(result)

    def random_set_of_subsets(
        self, count: Unforced, mean: Unforced, elements: Unforced
    ) -> frozenset[Value]:
        """RandomSetOfSubsets(k, n, S): k draws of a subset, each element with probability n/|S|."""
        draws = _natural(count, "RandomSetOfSubsets")
        wanted = _natural(mean, "RandomSetOfSubsets")
        items = canonical_sorted(iterate(elements))
        if wanted > len(items):
            raise EvaluationError(
                f"RandomSetOfSubsets wants {wanted} of {len(items)} elements on average"
            )
        chance = wanted / len(items) if items else 0.0
        return frozenset(
            frozenset(item for item in items if self._random.random() < chance)
            for _ in range(draws)
        )

    def test_random_set_of_subsets(
        self, count: Unforced, mean: Unforced, elements: Unforced
    ) -> Value:
        """TestRandomSetOfSubsets(k, n, S): how many subsets five tries gave."""
        return tuple(len(self.random_set_of_subsets(count, mean, elements)) for _ in range(5))

    def tlc_cache(self, place: str, closure: Unforced, compute: Callable[[], Unforced]) -> Value:
        """TLCCache(e, closure): the value of e at that place for an equal closure."""
        key = (place, value_of(closure))
        if key not in self._cached:
            self._cached[key] = value_of(compute())
        return self._cached[key]

    # --- registers ------------------------------------------------------------------------

    def _register(self, register: Unforced, operator: str) -> int | str:
        if type(register) is int and register >= 0:
            return register
        if isinstance(register, str) and register.startswith(_NAMED):
            return register
        raise EvaluationError(
            f"{operator} takes the number of a register or its name, not {shown(register)}"
        )

    def _named(self, name: str) -> Value:
        match name:
            case "level":
                if self.level is None:
                    raise EvaluationError('TLCGet("level") has a value in a search of states only')
                return self.level
            case "config":
                return Fn({"mode": "bfs", "worker": 1, "deadlock": self._deadlock})
            case "revision":
                return _REVISION
            case "all":
                numbered = {k: v for k, v in self._registers.items() if isinstance(k, int)}
                return make_function({k: (v,) for k, v in numbered.items()})
            case "all:named":
                named = {k: v for k, v in self._registers.items() if isinstance(k, str)}
                return make_function({k: (v,) for k, v in named.items()})
        if name in _PROPERTIES:
            return _PROPERTIES[name]
        numbers = {} if self.statistics is None else self.statistics()
        if name == "stats" and numbers:
            counts: dict[Value, Value] = {}
            counts.update(numbers)
            return Fn(counts)
        if name in numbers:
            return numbers[name]
        if name in _LACKING or name.startswith("-D"):
            raise UnsupportedError(
                f"TLCGet({shown(name)}) is not supported by the Python evaluator."
            )
        raise EvaluationError(f"TLCGet({shown(name)}) has no value here")


def _natural(value: Unforced, operator: str) -> int:
    if type(value) is int and value >= 0:
        return value
    raise EvaluationError(f"{operator} takes a natural number, not {shown(value)}")
