r"""Parts of an action that become functions: recursive operators, `\A` with assignments inside.

How often such a part is entered is known only when it runs, so that what follows it cannot be
written once for each way through it. The part is a Python function, what follows is another one,
`k`, which the part calls for every way in which it holds, with the values that it has given to
the variables. Both end with True as soon as the search has found enough (ENABLED).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.tla.python.scope import Frame
from conformance.tla.python.writer import Writer

Then = Callable[[Frame], None]
"""Writes what follows, in the context with the variables assigned so far."""

Key = tuple[Hashable, ...]
"""What tells a part from others."""

Body = Callable[[Frame, Then], None]
"""Writes a part: in a context, with what follows it."""


@dataclass(frozen=True, slots=True)
class Assignments:
    """The variables that a search gives values to: those of the next or of the initial state."""

    variables: tuple[str, ...]
    initial: bool

    def of(self, context: Frame) -> Mapping[str, str]:
        """The Python names of the values given so far."""
        return context.now if self.initial else context.next

    def set(self, context: Frame, assigned: Mapping[str, str]) -> Frame:
        """The context with these values."""
        if self.initial:
            return Frame(context.env, assigned, context.next, context.primed)
        return Frame(context.env, context.now, assigned, context.primed)


@dataclass(frozen=True, slots=True)
class _Function:
    """A part's function, entered with values for the variables in `assigned`.

    `exits` are the sets of variables with values that the writer has presumed at its end,
    `reached` those that it has found.
    """

    name: str
    assigned: tuple[str, ...]
    exits: frozenset[frozenset[str]]
    reached: set[frozenset[str]] = field(default_factory=set)


class PendingFunctions:
    """The functions of one search that are being written."""

    def __init__(self, writer: Writer, assignments: Assignments) -> None:
        self._writer = writer
        self._assignments = assignments
        self._open: dict[tuple[Key, frozenset[str]], _Function] = {}

    def call(
        self,
        key: Key,
        params: Sequence[str],
        arguments: Sequence[str],
        body: Body,
        context: Frame,
        then: Then,
    ) -> None:
        """The part with this key, which `body` writes, and `then` for every way through it.

        Within the part itself, a call of the function that is being written.
        """
        assigned = frozenset(self._assignments.of(context))
        function = self._open.get((key, assigned))
        if function is None:
            function = self._define((key, assigned), params, body, context)
        self._enter(function, arguments, context, then)

    def open(self, like: Callable[[Key], bool]) -> int:
        """How many functions with such keys are being written, one inside the other."""
        return sum(like(key) for key, _ in self._open)

    def _define(
        self,
        key: tuple[Key, frozenset[str]],
        params: Sequence[str],
        body: Body,
        context: Frame,
    ) -> _Function:
        """Writes the function again until it ends only in the ways that were presumed within."""
        exits: frozenset[frozenset[str]] = frozenset()
        while True:
            function = self._open[key] = self._declared(key[1], exits)
            self._write(function, params, body, context)
            del self._open[key]
            if function.reached == exits:
                return function
            exits = frozenset(function.reached)

    def _declared(self, assigned: frozenset[str], exits: frozenset[frozenset[str]]) -> _Function:
        name = self._writer.emitter.fresh("part")
        ordered = tuple(name for name in self._assignments.variables if name in assigned)
        return _Function(name, ordered, exits)

    def _write(
        self, function: _Function, params: Sequence[str], body: Body, context: Frame
    ) -> None:
        emitter = self._writer.emitter
        values = {name: emitter.fresh(f"n_{name}") for name in function.assigned}
        k = emitter.fresh("k")

        def done(reached: Frame) -> None:
            assigned = self._assignments.of(reached)
            function.reached.add(frozenset(assigned))
            passed = [assigned.get(name, "UNSET") for name in self._assignments.variables]
            emitter.line(f"if {k}({', '.join(passed)}): return True")

        with self._writer.function(
            f"def {function.name}({', '.join([*params, *values.values(), k])}):"
        ):
            body(self._assignments.set(context, values), done)

    def _enter(
        self, function: _Function, arguments: Sequence[str], context: Frame, then: Then
    ) -> None:
        emitter = self._writer.emitter
        names = {name: emitter.fresh(f"n_{name}") for name in self._assignments.variables}
        new = [name for name in names if name not in function.assigned]
        k = emitter.fresh("k")
        with self._writer.function(f"def {k}({', '.join(names.values())}):"):
            for exit_ in sorted(function.exits, key=sorted):
                tests = [f"{names[n]} is {'not ' if n in exit_ else ''}UNSET" for n in new]
                with emitter.block(f"if {' and '.join(tests) or 'True'}:"):
                    assigned = {name: names[name] for name in names if name in exit_}
                    then(self._assignments.set(context, assigned))
        before = self._assignments.of(context)
        passed = [*arguments, *(before[name] for name in function.assigned), k]
        emitter.line(f"if {function.name}({', '.join(passed)}): return True")
