"""Interrupted steps: an action stopped in its middle by another has to come out as the two in turn.

An interrupted step is an action of its own, `A_interrupted_by_B(args, point, args)`, that a wrapped
system takes and a wrapped oracle knows: the spec allows what the two actions lead to in one order
or the other, and where the first disables the second, what it leads to alone. So a path that ends
with one is driven, told, saved and replayed like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product

from conformance.errors import UserError
from conformance.replay.engine import close
from conformance.replay.oracle import Oracle, Successors
from conformance.systems.capabilities import Capabilities
from conformance.systems.protocol import (
    CannotSnapshot,
    SystemUnderTest,
)
from conformance.tla import Action, Fn, State, Value

_BETWEEN = "_interrupted_by_"
"""What joins the names: a name again, so that the step can be written down and read."""


def together(running: str, between: str) -> str:
    """The name of a step in which the one action interrupts the other."""
    return f"{running}{_BETWEEN}{between}"


def interrupted(running: Action, point: int, between: Action) -> Action:
    """The step in which `between` interrupts `running` at its `point`-th interruption."""
    name = together(running.name, between.name)
    return Action(name, (running.args, point, between.args))


def parts(action: Action) -> tuple[Action, int, Action] | None:
    """What `interrupted` was given; None for an action of the spec."""
    running, separator, between = action.name.partition(_BETWEEN)
    if not separator:
        return None
    args, point, others = action.args
    assert isinstance(point, int)
    assert isinstance(args, tuple)
    assert isinstance(others, tuple)
    return Action(running, args), point, Action(between, others)


def action_text(action: Action) -> str:
    """An action as a reader of a story wants it."""
    both = parts(action)
    if both is None:
        return str(action)
    running, point, between = both
    return f"{running}, stopped at its interruption {point} for {between}"


class SerialOrders:
    """An oracle that also knows interrupted steps: they lead where the two in turn would."""

    def __init__(self, oracle: Oracle, system: InterruptedSystem) -> None:
        self._oracle = oracle
        self._system = system

    @property
    def variables(self) -> tuple[str, ...]:
        return self._oracle.variables

    def initial_states(self) -> Sequence[State]:
        return self._oracle.initial_states()

    def enabled(self, state: State) -> Sequence[Action]:
        """The spec's own: who wants interrupted steps makes them."""
        return self._oracle.enabled(state)

    def successors(self, state: State, action: Action) -> Successors:
        both = parts(action)
        if both is None:
            return self._oracle.successors(state, action)
        running, _, between = both
        if not all(self._oracle.successors(state, pair) for pair in (running, between)):
            return ()
        midway = self._system.midway(running, between)
        if midway:
            return tuple(dict.fromkeys(self._ended(state, running, between, midway)))
        orders = (*self._in_turn(state, running, between), *self._in_turn(state, between, running))
        if self._system.in_parts(running, between):
            return tuple(self._mixed(orders))
        return tuple(dict.fromkeys(orders))

    def _ended(
        self, state: State, running: Action, between: Action, midway: Iterable[Action]
    ) -> Iterator[State]:
        """The states after a step and the death of its process, and after a step half done."""
        for after in self._oracle.successors(state, running):
            yield from self._oracle.successors(after, between)
        for action in midway:
            yield from self._oracle.successors(state, action)

    def _mixed(self, orders: Iterable[State]) -> Iterator[State]:
        """The states whose parts each agree with one of the two orders."""
        values = map(dict.fromkeys, zip(*orders, strict=True))
        in_entries = self._system.in_entries
        return product(
            *(
                _mixed_entries(each) if variable in in_entries else each
                for variable, each in zip(self.variables, values, strict=True)
            )
        )

    def bounded(self, state: State, running: Action, between: Action) -> bool:
        """Whether an order of the two is missing because it would leave the model's bounds."""
        orders = ((running, between), (between, running))
        return any(
            second.name in self._system.unconditional
            and not all(
                self._oracle.successors(after, second)
                for after in self._oracle.successors(state, first)
            )
            for first, second in orders
        )

    def _in_turn(self, state: State, first: Action, second: Action) -> Iterator[State]:
        """The first alone, where the second is disabled by it or need not be taken."""
        for after in self._oracle.successors(state, first):
            following = self._oracle.successors(after, second)
            yield from following
            if not following or second.name in self._system.voluntary:
                yield after


def _mixed_entries(functions: Collection[Value]) -> Collection[Value]:
    """The functions of which each entry is one of these functions'."""
    known = [function for function in functions if isinstance(function, Fn)]
    if len(known) < len(functions) or len({frozenset(function) for function in known}) != 1:
        return functions
    keys = tuple(known[0])
    entries = (dict.fromkeys(function[key] for function in known) for key in keys)
    return [Fn(dict(zip(keys, values, strict=True))) for values in product(*entries)]


class InterruptedSystem:
    """A system that also takes interrupted steps. `stood_at`: where one was interrupted last.

    What the system would do next is left out: that is asked where its steps are not interrupted.
    """

    def __init__(self, system: SystemUnderTest) -> None:
        able = Capabilities(system)
        interruptible = able.interruptible
        if interruptible is None:
            raise UserError(
                "The steps of this system cannot be interrupted: its adapter lacks what "
                "conformance.systems.protocol.Interruptible asks for. Add it, or leave this out."
            )
        self.adapter = system
        self._able = able
        self._interruptible = interruptible
        self.possible = interruptible.make_interruptible()
        self.voluntary = interruptible.voluntary
        self.unconditional = interruptible.unconditional
        self.in_entries = able.in_entries
        self.repeatable = able.repeats
        self.stood_at = ""

    @property
    def variables(self) -> tuple[str, ...]:
        return self.adapter.variables

    @property
    def sometimes(self) -> frozenset[str]:
        return self._able.may_lack

    def reset(self, initial: Mapping[str, Value]) -> None:
        self.stood_at = ""
        self.adapter.reset(initial)

    def apply(self, action: Action) -> None:
        both = parts(action)
        if both is None:
            self.adapter.apply(action)
        else:
            self.stood_at = self._interruptible.interrupt(*both)

    def observe(self) -> Mapping[str, Value]:
        return self.adapter.observe()

    def snapshot(self) -> object:
        """As the system does, if it does."""
        snapshots = self._able.snapshots
        if snapshots is None:
            raise CannotSnapshot("the adapter has no snapshots")
        return snapshots.snapshot()

    def restore(self, snapshot: object) -> None:
        """As the system does."""
        snapshots = self._able.snapshots
        assert snapshots is not None, "it gave the snapshot"
        self.stood_at = ""
        snapshots.restore(snapshot)

    def concurrent(self, running: Action, between: Action) -> bool:
        """As the system says."""
        return self._interruptible.concurrent(running, between)

    def in_parts(self, running: Action, between: Action) -> bool:
        """As the system says."""
        return self._interruptible.in_parts(running, between)

    def midway(self, running: Action, between: Action) -> Sequence[Action]:
        """As the system says, if its processes die."""
        dies = self._able.dies_midway
        return () if dies is None else dies.midway(running, between)

    def close(self) -> None:
        close(self.adapter)


class InterruptedChoosingSystem(InterruptedSystem):
    """One that can be told how to choose, as its steps lead to where two are to meet."""

    def choose(self, wanted: Mapping[str, Value]) -> None:
        """As the system does."""
        choosing = self._able.choosing
        assert choosing is not None, "`interrupted_system` has asked"
        choosing.choose(wanted)


def interrupted_system(system: SystemUnderTest) -> InterruptedSystem:
    """The system with interrupted steps; UserError if it knows no interruption."""
    chooses = Capabilities(system).choosing is not None
    return (InterruptedChoosingSystem if chooses else InterruptedSystem)(system)
