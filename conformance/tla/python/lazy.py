"""The lazy values of generated code: LET definitions and arguments, computed where first needed.

A lazy value is a Python variable. Where a path first needs it, its code is written; where it may
have been computed already, in another branch or an earlier round of a loop, behind a test.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Set
from contextlib import contextmanager

from conformance.tla.front import syntax as s
from conformance.tla.python.emitter import Emitter, SourceLine
from conformance.tla.python.protocol import Services
from conformance.tla.python.scope import (
    Closure,
    Entry,
    Frame,
    LazyDefinition,
    PythonCode,
    Slot,
    common,
)

_WORTH_SHARING = 8
"""Nodes of an expression from which on its code may be moved into a function."""


class LazyValues:
    """The base of `Writer`: the body of one generated function and its lazy values.

    `partial`: states are being built (initial or next), so what depends on the variables that
    are being assigned must not be remembered from one branch to another. `shared` are the lazy
    expressions (by id) whose code stands once, in a function; `emissions` counts the others.
    """

    def __init__(
        self,
        services: Services,
        *,
        partial: bool = False,
        initial: bool = False,
        shared: Set[int] = frozenset(),
    ) -> None:
        self.services = services
        self.shared = shared
        self.emissions: dict[int, int] = {}
        self.emitter = Emitter()
        self.partial = partial
        self.initial = initial
        # The functions of recursive operators that are being written, by uid.
        self._recursive: dict[int, str] = {}
        self._repetitions = 0
        self._tops: dict[int, SourceLine] = {}

    @abstractmethod
    def expr(self, node: s.Expr, context: Frame) -> PythonCode:
        """A Python expression for `node`; statements that it needs are written."""

    def lazy(self, node: s.Expr, context: Frame) -> LazyDefinition:
        """An entry for an expression that is computed where first needed."""
        emitter = self.emitter
        entry = LazyDefinition(
            node, context, emitter.placeholder(), emitter.loops, emitter.function
        )
        if id(node) in self.shared and not self._volatile(entry, context.primed):
            self._share(entry, context)
        return entry

    def _share(self, lazy: LazyDefinition, context: Frame) -> None:
        """Computes the value in a function of its own, which all uses call."""
        assert lazy.node is not None
        name, function = self.emitter.fresh("l"), self.emitter.fresh("g")
        self.emitter.line(f"{name} = UNSET")
        with self.function(f"def {function}():"):
            self.emitter.line(f"nonlocal {name}")
            with self.emitter.block(f"if {name} is UNSET:"):
                code = self.expr(lazy.node, context)
                self.emitter.line(f"{name} = {code.text}")
            self.emitter.line(f"return {name}")
        lazy.function_name, lazy.kind = function, code.kind
        lazy.name = name

    def force(self, lazy: LazyDefinition, context: Frame) -> PythonCode:
        primed = context.primed or lazy.context.primed
        inner = context.within(lazy.context.env, primed=primed)
        if lazy.node is not None and self._trivial(lazy.node):
            return self.expr(lazy.node, inner)
        if lazy.name and primed == lazy.context.primed:
            return PythonCode(
                f"({lazy.name} if {lazy.name} is not UNSET else {lazy.function_name}())", lazy.kind
            )
        emitter = self.emitter
        for function in self._functions(lazy):
            slot = lazy.slots.get((function, primed))
            if slot is not None and emitter.is_known(slot.name):
                return PythonCode(slot.name, slot.kind, atom=True)
        slot = self._slot(lazy, primed)
        if not self._volatile(lazy, primed) and (emitter.loops > slot.loops or slot.emitted):
            _declare(slot)
            with emitter.block(f"if {slot.name} is UNSET:"):
                self._compute(lazy, slot, inner)
        else:
            self._compute(lazy, slot, inner)
        emitter.know(slot.name)
        return PythonCode(slot.name, slot.kind, atom=True)

    def _compute(self, lazy: LazyDefinition, slot: Slot, context: Frame) -> None:
        if lazy.node is None:
            # An argument whose value was at hand comes as it is.
            a = lazy.thunk
            code = PythonCode(f"{a}() if {a}.__class__ is FunctionType else {a}", lazy.kind)
        else:
            code = self._counted(lazy.node, context)
        self.emitter.line(f"{slot.name} = {code.text}")
        slot.kind = common(slot.kind, code.kind) if slot.emitted else code.kind
        slot.emitted = True

    def _counted(self, node: s.Expr, context: Frame) -> PythonCode:
        """The code of a lazy value; what is repeated within a repetition is not counted."""
        times = self.emissions.get(id(node), 0) + 1
        if not self._repetitions and self.services.analysis.of(node).size >= _WORTH_SHARING:
            self.emissions[id(node)] = times
        self._repetitions += times > 1
        code = self.expr(node, context)
        self._repetitions -= times > 1
        return code

    def _functions(self, lazy: LazyDefinition) -> tuple[int, ...]:
        return tuple({function for function, _ in lazy.slots})

    def _slot(self, lazy: LazyDefinition, primed: bool) -> Slot:
        emitter = self.emitter
        key = (emitter.function, primed)
        if key not in lazy.slots:
            name = emitter.fresh("l")
            if emitter.function == lazy.function:
                lazy.slots[key] = Slot(name, lazy.declaration, lazy.loops)
            else:
                lazy.slots[key] = Slot(name, self._tops[emitter.function], 0)
        return lazy.slots[key]

    def _trivial(self, node: s.Expr) -> bool:
        if isinstance(node, s.Number | s.String | s.Bound | s.Variable):
            return True
        return self.services.analysis.of(node).constant

    def _volatile(self, lazy: LazyDefinition, primed: bool) -> bool:
        if not self.partial or lazy.node is None:
            return False
        facts = self.services.analysis.of(lazy.node)
        if facts.primes or (facts.variables and (primed or self.initial)):
            return True
        entries = (lazy.context.env.get(uid) for uid in facts.free | facts.calls)
        return any(self._volatile_entry(entry, primed) for entry in entries)

    def volatile(self, node: s.Expr, context: Frame) -> bool:
        """Whether a name or call stands for something about the state that is being built."""
        free = self.services.analysis.of(node).free
        uids = free | ({node.target} if isinstance(node, s.Call) else set())
        entries = (context.env.get(uid) for uid in uids if isinstance(uid, int))
        return any(self._volatile_entry(entry, context.primed) for entry in entries)

    def _volatile_entry(self, entry: Entry | None, primed: bool) -> bool:
        if isinstance(entry, Closure):
            facts = self.services.analysis.of_definition(entry.definition.uid)
            return facts.primes or bool(facts.free) or (bool(facts.variables) and self.initial)
        return isinstance(entry, LazyDefinition) and self._volatile(entry, primed)

    @contextmanager
    def function(self, header: str) -> Iterator[None]:
        """A function nested in this one."""
        with self.emitter.nested_function(header):
            self._tops[self.emitter.function] = self.emitter.placeholder()
            yield


def _declare(slot: Slot) -> None:
    declaration = f"{slot.name} = UNSET"
    line = slot.declaration
    if line.text is None:
        line.text = declaration
    elif declaration not in line.text.split("; "):
        line.text += f"; {declaration}"
