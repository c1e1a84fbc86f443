"""The system under test: a purgatory's threads, driven by DelayedOperations.tla's actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import takewhile

from conformance.systems.delayed.observation import OF_PURGATORY, VARIABLES
from conformance.systems.delayed.sections import (
    FINISH_WITH_TRIGGER,
    FIRST_LOOK,
    SECTIONS,
    Role,
    Section,
    SectionKind,
    ThreadState,
    kind_of,
)
from conformance.systems.delayed.settings import DelayedSettings, settings_of
from conformance.systems.delayed.world import World
from conformance.systems.protocol import ActionRefused, Observation
from conformance.systems.threads import WholeSections
from conformance.tla import Action, Value
from impl.deterministic_scheduler import DeadlockError

REAPER = "reaper"
EXECUTOR = "executor"
_ENVIRONMENT = "AdvanceClock"


class _Step:
    """One action under way: it goes from point to point until the next action begins."""

    def __init__(self, world: World, thread: ThreadState, section: Section) -> None:
        self._scheduler = world.scheduler
        self._thread = thread
        self._section = section
        self._once = set(section.once)
        self._begun_at = self._scheduler.point(thread.name)
        self._may_return = section.same
        self.has_begun = False
        self.is_over = False

    @property
    def point(self) -> str:
        """Where the thread stands."""
        return self._scheduler.point(self._thread.name)

    @property
    def can_go_on(self) -> bool:
        """Whether no other thread holds what this one needs."""
        return not self.is_over and self._thread.name in self._scheduler.runnable()

    def go_on(self) -> str:
        """To the next point; its name, empty at the end of the step."""
        if self.is_over:
            return ""
        self.has_begun = True
        try:
            self._scheduler.step(self._thread.name)
        except ActionRefused:
            self.is_over = True
            raise
        self.is_over = not self._passes()
        return "" if self.is_over else self.point

    def _passes(self) -> bool:
        kind = kind_of(self.point)
        if kind in self._once:
            self._once.discard(kind)
            return True
        if self._may_return and self.point == self._begun_at:
            self._may_return = False
            return True
        return kind in self._section.freely


class DelayedOperationsSystem(WholeSections):
    """Requests, completers, cancellers, a reaper and an executor around one purgatory."""

    variables = VARIABLES
    repeatable = True

    def __init__(self, settings: DelayedSettings) -> None:
        self._settings = settings
        self._triggers = frozenset(o.name for o in settings.operations if o.triggers is not None)
        self._threads: dict[str, ThreadState] = {}

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A new purgatory; every thread before its first section. There is one initial state."""
        self._world = world = World(self._settings)
        self._threads = {}
        for operation in self._settings.operations:
            self._spawn(operation.name, Role.REQUEST, world.request(operation.name))
        for name, key in self._settings.completers.items():
            self._spawn(name, Role.COMPLETER, world.completer(key))
        for name, key in self._settings.cancellers.items():
            self._spawn(name, Role.CANCELLER, world.canceller(key))
        for thread in self._threads.values():
            world.scheduler.step(thread.name)

    def _spawn(self, name: str, role: Role, body: Callable[[], None]) -> ThreadState:
        self._world.scheduler.spawn(name, body)
        self._threads[name] = ThreadState(name, role)
        return self._threads[name]

    def apply(self, action: Action) -> None:
        """Let one thread take one section. Raises ActionRefused if it stands elsewhere."""
        step = self._begin(action)
        if not step.can_go_on:
            raise ActionRefused(f"another thread holds what it needs at: {step.point}")
        _finish(step)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        return Observation({name: value(self._world) for name, value in OF_PURGATORY.items()})

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """All but the passing of time."""
        return frozenset(SECTIONS) - {_ENVIRONMENT}

    def offers(self) -> frozenset[Action]:
        """The section that each thread would take next, if nobody holds what it needs."""
        world = self._world
        offered = [
            Action(self._next_action(name), (name,))
            for name in world.scheduler.runnable()
            if name in self._threads
        ]
        if world.executor.tasks and not self._is_busy(EXECUTOR):
            offered.append(Action("TakeDue", (EXECUTOR,)))
        return frozenset(offered)

    def _next_action(self, name: str) -> str:
        point = self._world.scheduler.point(name)
        return self._threads[name].next_action(kind_of(point)) or f"unknown at {point}"

    def _is_busy(self, name: str) -> bool:
        thread = self._threads.get(name)
        return (
            thread is not None
            and kind_of(self._world.scheduler.point(name)) != SectionKind.FINISHED
        )

    # ---- taking a step ---------------------------------------------------------------------

    def _begin(self, action: Action) -> _Step:
        name, args = action
        world = self._world
        if name == _ENVIRONMENT:
            assert isinstance(args[0], int)
            thread = self._start(REAPER, Role.REAPER, world.reaper(args[0]))
        elif name == "TakeDue":
            if not world.executor.tasks:
                raise ActionRefused("nothing is due")
            thread = self._start(EXECUTOR, Role.EXECUTOR, world.executor.run_next)
        else:
            thread = self._standing_before(name, str(args[0]))
        if name == "AddTimer":
            self._world.clock.sleep(1)  # Deadlines differ, so that their order is the spec's.
        section = self._section(name, thread)
        thread.begin(name, self._world.scheduler.point(thread.name))
        return _Step(self._world, thread, section)

    def _section(self, action: str, thread: ThreadState) -> Section:
        if action == "Finish" and thread.claimed in self._triggers:
            return FINISH_WITH_TRIGGER
        if action == "Look" and thread.role is Role.REQUEST and not thread.checking:
            return FIRST_LOOK if thread.last == "Acquire" else SECTIONS[action]
        return SECTIONS[action]

    def _start(self, name: str, role: Role, body: Callable[[], None]) -> ThreadState:
        if self._is_busy(name):
            raise ActionRefused(f"the {name} stands at: {self._world.scheduler.point(name)}")
        return self._spawn(name, role, body)

    def _standing_before(self, action: str, name: str) -> ThreadState:
        thread = self._threads.get(name)
        if thread is None or not self._is_busy(name):
            raise ActionRefused(f"the thread {name} has ended")
        would = self._next_action(name)
        if would != action:
            raise ActionRefused(f"the thread {name} would take {would} next")
        return thread

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """Its threads can always be stopped."""
        return True

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether these are two threads' steps."""
        return _thread_of(running) != _thread_of(between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """As Interruptible.interrupt says; a thread that only waits for a lock is disabled."""
        first = self._begin(running)
        stops = (first.go_on() for _ in range(point))
        stood_at = list(takewhile(bool, stops))
        steps = [first]
        # Disabled by the other: what it left undone is judged by the state.
        with suppress(ActionRefused):
            steps.insert(0, self._begin(between))
        for step in steps:
            _finish_beside(step, [other for other in steps if other is not step])
        return stood_at[-1] if len(stood_at) == point else ""


def _finish_beside(step: _Step, others: list[_Step]) -> None:
    """To its end; where another one holds what it needs, that goes on."""
    while not step.is_over:
        able = [each for each in (step, *others) if each.can_go_on]
        if able:
            with suppress(ActionRefused):  # The clock's: fewer wait, as the other came first.
                able[0].go_on()
        elif step.has_begun:
            raise DeadlockError(f"a thread waits for ever at: {step.point}")
        else:
            return  # It waits for a lock that the other one has taken and keeps: disabled.


def _finish(step: _Step) -> None:
    while not step.is_over:
        step.go_on()


def _thread_of(action: Action) -> str:
    return REAPER if action.name == _ENVIRONMENT else str(action.args[0])


def create(constants: Mapping[str, Value]) -> DelayedOperationsSystem:
    """The system for a model's constants."""
    return DelayedOperationsSystem(settings_of(constants))
