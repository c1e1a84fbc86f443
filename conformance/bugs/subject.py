"""A model that a copy of the implementation is driven along, and how far it has come."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from enum import Enum, auto
from functools import cached_property
from pathlib import Path

from conformance import systems
from conformance.modelcheck.manifest import reference
from conformance.replay.engine import Disabled, Divergence, Driver, close
from conformance.replay.oracle import GraphOracle
from conformance.stages.context import Workbench
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite
from conformance.tla import Action, State

_ADAPTERS = Path(systems.__file__).resolve().parent
_HARNESS = _ADAPTERS.parent
_FRAME = re.compile(r'^  File "(.+)", line \d+', re.MULTILINE)
_JUDGEMENT = re.compile(r"^conformance\.", re.MULTILINE)


class Raiser(Enum):
    """Whose code an exception comes from."""

    IMPLEMENTATION = auto()
    ADAPTER = auto()
    HARNESS = auto()


def raised_in(traceback: str, package: Path) -> Raiser:
    """Whose frame is the innermost one, but for those of libraries.

    `package` is the folder of the copy that was run. An exception of a class of its own is the
    adapter's judgement of the implementation, such as a timer that is not there.
    """
    for frame in reversed(list(_FRAME.finditer(traceback))):
        file = Path(frame[1])
        if file.is_relative_to(package):
            return Raiser.IMPLEMENTATION
        if file.is_relative_to(_ADAPTERS):
            judges = _JUDGEMENT.search(traceback, frame.end()) is not None
            return Raiser.IMPLEMENTATION if judges else Raiser.ADAPTER
        if file.is_relative_to(_HARNESS):
            return Raiser.HARNESS
    return Raiser.HARNESS


class SearchSubject:
    """One model with its system.

    `notes` is what the copy notes when it comes by changed statements; None if nothing is noted.
    """

    def __init__(self, bench: Workbench, notes: set[int] | None) -> None:
        self.bench = bench
        self.oracle = GraphOracle(bench.graph)
        self.steps = 0
        self.reaches = notes is None
        """Whether anything that was driven came by a change; True if nobody can know."""
        self._notes: set[int] = set() if notes is None else notes
        self._reaching: set[Action] = set()
        self._sorted_for = 0

    @property
    def name(self) -> str:
        """The model's."""
        return self.bench.model.name

    @property
    def reference(self) -> str:
        """How the model is named to find it again."""
        return reference(self.bench.model)

    @cached_property
    def suite(self) -> Suite:
        """The minimal transition suite."""
        return transition_cover(self.bench.graph)

    @cached_property
    def left(self) -> deque[int]:
        """Tests that are to be driven, longest first: they find a deep fault 10 times sooner."""
        tests = self.suite.tests
        return deque(sorted(range(len(tests)), key=lambda number: -len(tests[number])))

    @cached_property
    def _driver(self) -> Driver:
        self._system = self.bench.make_system()
        return Driver(self._system, self.oracle)

    def close(self) -> None:
        """End the system, if one was made."""
        if "_driver" in self.__dict__:
            close(self._system)

    def next_test(self) -> int:
        """Take out the next test: those come first that have an action which reaches a change."""
        if len(self._reaching) > self._sorted_for:
            self._sorted_for = len(self._reaching)
            self.left = deque(sorted(self.left, key=lambda number: not self._may_reach(number)))
        return self.left.popleft()

    def _may_reach(self, number: int) -> bool:
        return not self._reaching.isdisjoint(self._actions(number))

    def _actions(self, number: int) -> Sequence[Action]:
        graph = self.bench.graph
        return [
            graph.actions[code] for code in graph.action[self.suite.tests[number].edges].tolist()
        ]

    def drive(self, number: int) -> Divergence | None:
        """Drive a test of the suite, and note which actions come by a change."""
        initial = self.bench.graph.states[self.suite.tests[number].initial]
        return self._drive(initial, self._actions(number))

    def _drive(self, initial: State, actions: Sequence[Action]) -> Divergence | None:
        self._notes.clear()
        divergence = self._driver.reset(initial)
        self.look_at_notes()
        for action in actions:
            if divergence is not None:
                break
            try:
                divergence = self._driver.step(action)
            except Disabled:  # the implementation took another branch
                break
            self.steps += 1
            if self.look_at_notes():
                self._reaching.add(action)
        return divergence

    def look_at_notes(self) -> bool:
        """Whether a change was come by since the last look."""
        reached = bool(self._notes)
        self.reaches = self.reaches or reached
        self._notes.clear()
        return reached
