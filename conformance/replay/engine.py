"""Step equality: after each action the implementation's state is one that the spec allows."""

from __future__ import annotations

import time
import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from conformance.compared import ComparedStates
from conformance.deviations.tolerance import Reading, Tolerance, tolerance_of
from conformance.errors import UserError
from conformance.replay.boundary import Boundary, defined_at
from conformance.replay.oracle import Oracle
from conformance.replay.watch import WALL_SECONDS, StepNeverEnds, watch
from conformance.story.kind import BehaviourKind
from conformance.systems.capabilities import Capabilities
from conformance.systems.protocol import (
    ActionRefused,
    CannotSnapshot,
    Choosing,
    Observation,
    Offers,
    Patient,
    SystemFailed,
    SystemHangs,
    SystemUnderTest,
    raised_by_systems,
)
from conformance.tla import Action, State, Value, agree


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first step at which an implementation departs from the spec.

    `actions` is the whole path, the diverging action last; `before` are the spec states that
    were still possible, `allowed` those that the action leads to, `observed` what the
    implementation showed (empty when it raised).
    """

    kind: BehaviourKind
    initial: State
    actions: tuple[Action, ...]
    before: tuple[State, ...]
    allowed: tuple[State, ...]
    observed: Mapping[str, Value]
    detail: str = ""
    offered: tuple[Action, ...] = ()
    """Steps with which the implementation would go on, and the spec does not enable them."""

    @property
    def step(self) -> int:
        """The number of the diverging step, from 1; 0 for the initial state."""
        return len(self.actions)

    @property
    def action(self) -> Action | None:
        """The action at which it diverged."""
        return self.actions[-1] if self.actions else None


class Disabled(Exception):
    """The spec does not allow the next action in any state that is still possible.

    Not the implementation's fault: with nondeterminism it may have taken another branch.
    """


_REMEMBERED = 500_000
TRIES = 3
"""Runs of a path that diverges in real time before the divergence is believed."""
_LATE_TRIES = 12
"""Runs of a path, in all, whose steps took longer than its timers allow."""


class _Agreements:
    """Which observation once agreed with which state of the spec, both found by identity.

    Hashing and comparing states would cost more than a step of an implementation. What is kept
    here stays alive, so that no other object can take its identity.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[State, Observation]] = {}

    def holds(self, state: State, observed: Mapping[str, Value]) -> bool:
        """Whether exactly these two have agreed before."""
        known = self._known.get(id(state))
        return known is not None and known[1] is observed

    def keep(self, state: State, observed: Mapping[str, Value]) -> None:
        """Remember it, if the observation cannot change."""
        if type(observed) is Observation:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[id(state)] = (state, observed)


class Driver:
    """Drives one system along actions, keeping the spec states that its observations allow.

    `within` is entered for each call of the system; by default a watch, which ends a call that
    would never end.
    """

    __slots__ = (
        "_actions",
        "_agreed",
        "_agreements",
        "_boundary",
        "_choosing",
        "_indexes",
        "_initial",
        "_looks",
        "_offers",
        "_oracle",
        "_patient",
        "_seen",
        "_snapshots",
        "_sometimes",
        "_system",
        "_watch",
        "candidates",
        "steps_taken",
        "tolerance",
    )

    def __init__(
        self,
        system: SystemUnderTest,
        oracle: Oracle,
        within: AbstractContextManager[None] | None = None,
    ) -> None:
        self._system = system
        self._watch = within or _watch_over(system)
        self._oracle = oracle
        self._boundary = Boundary(system, oracle.variables)
        self._looks, self._seen = 0, dict.fromkeys(self._boundary.sometimes, 0)
        self.tolerate(tolerance_of(system))
        self.steps_taken = 0
        """Steps that the system has taken; those before a snapshot that was restored are none."""
        self.candidates: tuple[State, ...] = ()
        self._initial: State = ()
        self._actions: list[Action] = []
        able = Capabilities(system)
        self._offers, self._patient, self._choosing = able.offers, able.patient, able.choosing
        self._snapshots = able.snapshots if self.repeats else None
        self._agreed: set[State] = set()

    def tolerate(self, tolerance: Tolerance) -> None:
        """From now on these differences are set aside."""
        self.tolerance = tolerance
        positions = {name: index for index, name in enumerate(self._oracle.variables)}
        always, sometimes = (
            tuple((name, positions[name]) for name in names if name not in tolerance.hidden)
            for names in (self._boundary.always, self._boundary.sometimes)
        )
        self._indexes, self._sometimes = always, sometimes
        self._seen = {name: self._seen.get(name, 0) for name, _ in sometimes}
        self._agreements = _Agreements()

    def differing(self, state: State, observed: Mapping[str, Value]) -> tuple[Reading, ...]:
        """The differences between state and observation, without those that are set aside."""
        return tuple(
            Reading(name, state[index], seen)
            for name, index in (*self._indexes, *self._sometimes)
            if (seen := observed.get(name)) is not None
            and not self._agrees(name, state[index], seen)
        )

    def _agrees(self, name: str, expected: Value, seen: Value | None) -> bool:
        if seen is None or seen is expected or agree(expected, seen):
            return True
        return self.tolerance.accepts(name, expected, seen)

    @property
    def lanes(self) -> int:
        """How many such systems may run side by side; more than one only in real time."""
        return 1 if self._patient is None else self._patient.lanes

    @property
    def in_real_time(self) -> bool:
        """Whether a divergence may be the machine's: it was too busy."""
        return self._patient is not None

    @property
    def late(self) -> str:
        """Why a divergence at the last step may be the machine's, which was too slow."""
        return "" if self._patient is None else self._patient.late

    def foresee(self, actions: Sequence[Action]) -> str:
        """Why the system cannot be driven along this path; empty if it can."""
        return "" if self._patient is None else self._patient.foresee(actions)

    def be_alone(self) -> None:
        """From now on no other test runs at the same time as this driver's."""
        if self._patient is not None:
            self._patient.be_alone()

    @property
    def repeats(self) -> bool:
        """Whether what agreed once need not be looked at again."""
        return Capabilities(self._system).repeats

    def retrace(self, action: Action, candidates: tuple[State, ...]) -> Divergence | None:
        """Take an action that led to these candidates before, after the very same steps."""
        before = self.candidates
        self._actions.append(action)
        self.steps_taken += 1
        try:
            with self._watch:
                if self._choosing is not None:
                    self._tell(self._choosing, candidates[0])
                self._system.apply(action)
        except UserError:
            raise  # not the system's fault
        except raised_by_systems() as error:
            return self._failed(error, before, candidates)
        self.candidates = candidates
        return None

    def snapshot(self) -> object | None:
        """A way back to the system's present state; None if there is none."""
        if self._snapshots is None:
            return None
        try:
            with self._watch:
                return self._snapshots.snapshot()
        except CannotSnapshot:
            return None

    @property
    def goes_back(self) -> bool:
        """Whether snapshots lead back."""
        return self._snapshots is not None

    def never_go_back(self) -> None:
        """From now on nothing leads back."""
        self._snapshots = None

    def go_back(
        self,
        snapshot: object,
        initial: State,
        actions: Sequence[Action],
        candidates: tuple[State, ...],
    ) -> Divergence | None:
        """Be where the system was after these actions, when the snapshot was taken there."""
        self._initial, self._actions, self.candidates = initial, list(actions), candidates
        assert self._snapshots is not None
        try:
            with self._watch:
                self._snapshots.restore(snapshot)
        except raised_by_systems() as error:
            return self._failed(error, candidates, candidates)
        return None

    def reset(self, initial: State, *, look: bool = True) -> Divergence | None:
        """Start the system in `initial`; a divergence if it shows another state."""
        self._initial = initial
        self._actions = []
        self.candidates = (initial,)
        try:
            with self._watch:
                self._system.reset(dict(zip(self._oracle.variables, initial, strict=True)))
                if not look:
                    return None
                observed = self._boundary.admit(self._system.observe())
        except UserError:
            raise  # not the system's fault
        except raised_by_systems() as error:
            return self._failed(error, (initial,), (initial,))
        self._count(observed)
        if self._agreements.holds(initial, observed):
            return None
        if self._matches(initial, observed):
            return self._compare_offers((initial,), observed)
        return self._divergence(BehaviourKind.WRONG_INITIAL, (), (initial,), observed)

    def step(self, action: Action, wanted: Collection[State] = ()) -> Divergence | None:
        """Take one action in the spec and the system; None when they agree.

        `wanted`: to one of these states a system goes that can be told how to choose. Raises
        Disabled when the spec allows the action in no candidate state.
        """
        before = self.candidates
        successors = self._oracle.successors
        if len(before) == 1:
            allowed: Sequence[State] = successors(before[0], action)
        else:
            merged = dict.fromkeys(t for state in before for t in successors(state, action))
            allowed = tuple(merged)
        if not allowed:
            raise Disabled(str(action))
        self._actions.append(action)
        self.steps_taken += 1
        try:
            with self._watch:
                if self._choosing is not None and len(allowed) > 1:
                    self._choose(self._choosing, allowed, wanted)
                self._system.apply(action)
                observed = self._boundary.admit(self._system.observe())
                if self._patient is not None:
                    observed = self._look_again(self._patient, allowed, observed)
        except UserError:
            raise  # not the system's fault
        except raised_by_systems() as error:
            return self._failed(error, before, allowed)
        self._count(observed)
        if len(allowed) == 1 and self._agreements.holds(allowed[0], observed):
            self.candidates = tuple(allowed)
            return None
        self.candidates = tuple(state for state in allowed if self._matches(state, observed))
        if self.candidates:
            return self._compare_offers(before, observed)
        return self._divergence(BehaviourKind.NOT_ALLOWED, before, allowed, observed)

    def _choose(
        self, system: Choosing, allowed: Sequence[State], wanted: Collection[State]
    ) -> None:
        """Where any choice will do, it is the system's own."""
        fitting = [state for state in allowed if state in wanted]
        if 0 < len(fitting) < len(allowed):
            self._tell(system, fitting[0])

    def _tell(self, system: Choosing, state: State) -> None:
        system.choose(dict(zip(self._oracle.variables, state, strict=True)))

    @property
    def chooses(self) -> bool:
        """Whether the system can be told how to choose."""
        return self._choosing is not None

    def ways_on(self, initial: State, actions: Sequence[Action]) -> Sequence[Collection[State]]:
        """After each action, the states from which the rest of the path can be taken; nothing of a
        system that cannot be told how to choose."""
        if self._choosing is None:
            return [()] * len(actions)
        successors = self._oracle.successors
        reached: list[dict[State, None]] = [{initial: None}]
        for action in actions:
            after = (t for state in reached[-1] for t in successors(state, action))
            reached.append(dict.fromkeys(after))
        wanted: list[Collection[State]] = [reached[-1]]
        for states, action in zip(reached[-2:0:-1], actions[:0:-1], strict=True):
            on = wanted[-1]
            wanted.append({s for s in states if any(t in on for t in successors(s, action))})
        return wanted[::-1]

    def _look_again(
        self, system: Patient, allowed: Sequence[State], observed: Mapping[str, Value]
    ) -> Mapping[str, Value]:
        """What is seen once it is allowed, or when the system's patience is at its end."""
        until = time.monotonic() + system.patience
        while not any(self._matches(state, observed) for state in allowed):
            left = until - time.monotonic()
            if left <= 0:
                break
            observed = self._boundary.admit(system.look_again(left))
        return observed

    def _count(self, observed: Mapping[str, Value]) -> None:
        self._looks += 1
        for name in self._seen:
            self._seen[name] += observed.get(name) is not None

    def take_compared(self) -> ComparedStates:
        """The variables compared since the last call, with the number of states."""
        seen = {name: self._looks for name, _ in self._indexes} | self._seen
        names = self._oracle.variables
        self._looks, self._seen = 0, dict.fromkeys(self._seen, 0)
        return ComparedStates({name: seen[name] for name in names if name in seen}, tuple(names))

    def _compare_offers(
        self, before: Sequence[State], observed: Mapping[str, Value]
    ) -> Divergence | None:
        """Keep the candidates in which the spec enables exactly what the system would start.

        A state in which they once agreed is not asked again.
        """
        if self._offers is not None and not self._agreed.issuperset(self.candidates):
            divergence = self._ask_offers(self._offers, before)
            if divergence is not None:
                return divergence
        self._agreements.keep(self.candidates[0], observed)
        return None

    def _ask_offers(self, system: Offers, before: Sequence[State]) -> Divergence | None:
        try:
            with self._watch:
                offered = self._boundary.admit_offers(system.offers())
        except UserError:
            raise  # not the system's fault
        except raised_by_systems() as error:
            return self._raised(error, before, self.candidates)
        names = system.offerable
        enabled = {state: self._enabled(state, names) for state in self.candidates}
        agreeing = tuple(state for state in self.candidates if enabled[state] == offered)
        if agreeing:
            self.candidates = agreeing
            self._agreed.update(agreeing)
            return None
        nearest = min(enabled.values(), key=lambda actions: len(actions ^ offered))
        more = tuple(sorted(offered - nearest, key=str))
        detail = _offer_lines(more, sorted(nearest - offered, key=str))
        divergence = self._divergence(BehaviourKind.OFFERS, before, self.candidates, {}, detail)
        return replace(divergence, offered=more)

    def _enabled(self, state: State, names: frozenset[str]) -> frozenset[Action]:
        return frozenset(a for a in self._oracle.enabled(state) if a.name in names)

    def _matches(self, state: State, observed: Mapping[str, Value]) -> bool:
        for name, index in self._indexes:
            seen, expected = observed[name], state[index]
            if seen is not expected and not self._agrees(name, expected, seen):
                return False
        return all(
            self._agrees(name, state[index], observed.get(name)) for name, index in self._sometimes
        )

    def _divergence(
        self,
        kind: BehaviourKind,
        before: Sequence[State],
        allowed: Sequence[State],
        observed: Mapping[str, Value],
        detail: str = "",
    ) -> Divergence:
        return Divergence(
            kind,
            self._initial,
            tuple(self._actions),
            tuple(before),
            tuple(allowed),
            dict(observed),
            detail,
        )

    def _failed(
        self, error: BaseException, before: Sequence[State], allowed: Sequence[State]
    ) -> Divergence:
        """Of a step: it was refused, or the system raised something else."""
        if isinstance(error, ActionRefused):
            return self._divergence(BehaviourKind.REFUSED, before, allowed, {}, str(error))
        return self._raised(error, before, allowed)

    def _raised(
        self, error: BaseException, before: Sequence[State], allowed: Sequence[State]
    ) -> Divergence:
        kind = (
            BehaviourKind.ENDLESS
            if isinstance(error, StepNeverEnds | SystemHangs)
            else BehaviourKind.RAISED
        )
        foreign = isinstance(error, SystemFailed)
        detail = str(error) if foreign else traceback.format_exc(limit=-12)
        return self._divergence(kind, before, allowed, {}, detail)


def _watch_over(system: SystemUnderTest) -> AbstractContextManager[None]:
    """A system that ends its calls itself is given the time to do so."""
    longest = Capabilities(system).longest_call
    return watch(longest) if longest > WALL_SECONDS else watch()


def _offer_lines(more: Sequence[Action], less: Sequence[Action]) -> str:
    lines = [f"would take {action}, which the spec does not enable" for action in more]
    lines += [f"would not take {action}, which the spec enables" for action in less]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PathResult:
    """One path's end: steps taken, and the divergence or the action that was not enabled.

    `not_driven`: why the system cannot be driven along it at all. `late`: why the machine may have
    been too slow for it, so that the end says nothing of the system.
    """

    steps: int
    divergence: Divergence | None = None
    disabled: str = ""
    not_driven: str = ""
    late: str = ""

    @property
    def spoiled(self) -> bool:
        """Whether it ended early, and that may be the machine's doing."""
        return bool(self.late) and (self.divergence is not None or bool(self.disabled))


class StepTrail:
    """The steps of the last path, as far as they agreed: where a path begins with the same ones, a
    system that repeats itself is not looked at again until it leaves them.

    Suites of a graph come by most transitions on the way to others: of their steps, sorted, more
    than half are such beginnings. A system that has snapshots goes back to where the paths part.
    """

    __slots__ = ("_actions", "_candidates", "_initial", "_marks")

    def __init__(self) -> None:
        self._initial: State | None = None
        self._actions: list[Action] = []
        self._candidates: list[tuple[State, ...]] = []
        self._marks: list[tuple[int, object]] = []

    def keep(
        self,
        initial: State,
        actions: Sequence[Action],
        wanted: Sequence[Collection[State]] | None = None,
    ) -> int:
        """Forget all but the common beginning; how many steps that has, -1 for not even a state.

        A system that can be told how to choose may have gone elsewhere on the last path than this
        one needs: with `wanted`, where each action is to lead, the beginning ends there.
        """
        common = -1
        if self._initial is initial:
            common = common_steps(self._actions, actions)
            kept = zip(self._candidates[:common], wanted or (), strict=False)
            elsewhere = (n for n, (ours, on) in enumerate(kept) if not any(s in on for s in ours))
            common = next(elsewhere, common)
        self._initial = None
        del self._actions[max(common, 0) :], self._candidates[max(common, 0) :]
        while self._marks and self._marks[-1][0] > common:
            self._marks.pop()
        return common

    def begin(self, initial: State) -> None:
        """The system was found in its initial state."""
        self._initial = initial

    def add(self, action: Action, candidates: tuple[State, ...]) -> None:
        """A further step agreed."""
        self._actions.append(action)
        self._candidates.append(candidates)

    def candidates(self, step: int) -> tuple[State, ...]:
        """Those after a step, counted from 0."""
        return self._candidates[step]

    def mark(self, driver: Driver, steps: int) -> None:
        """Take a snapshot after so many steps, unless there is one."""
        if self._marks and self._marks[-1][0] >= steps:
            return
        snapshot = driver.snapshot()
        if snapshot is not None:
            self._marks.append((steps, snapshot))

    def last_mark(self) -> tuple[int, object] | None:
        """After how many of the kept steps the last snapshot was taken, and the snapshot."""
        return self._marks[-1] if self._marks else None


def common_steps(first: Sequence[object], other: Sequence[object]) -> int:
    """With how many steps both paths begin."""
    common = 0
    for ours, theirs in zip(first, other, strict=False):
        if ours != theirs:
            break
        common += 1
    return common


def run_path(
    driver: Driver,
    initial: State,
    actions: Iterable[Action],
    trail: StepTrail | None = None,
    marks: Collection[int] = (),
    states: Sequence[State] = (),
) -> PathResult:
    """Drive along one path from `initial` until its end, a divergence or a disabled action.

    With a `trail`, which then is this path's, what it shares with the last one is not looked at.
    `marks`: after how many steps later paths will part from this one. `states`: where each action
    leads; without them anywhere from where the rest can be taken.
    """
    actions = tuple(actions)
    if reason := driver.foresee(actions):
        return PathResult(0, not_driven=reason)
    trail = StepTrail() if trail is None else trail
    wanted = [(state,) for state in states] or driver.ways_on(initial, actions)
    known = trail.keep(initial, actions, wanted if driver.chooses else None)
    steps, divergence = _begin(driver, initial, actions, trail, known)
    if divergence is not None:
        return PathResult(steps, divergence, late=driver.late)
    trail.begin(initial)
    if steps in marks:
        trail.mark(driver, steps)
    for action in actions[steps:]:
        try:
            if steps < known:
                divergence = driver.retrace(action, trail.candidates(steps))
            else:
                divergence = driver.step(action, wanted[steps])
        except Disabled as disabled:
            return PathResult(steps, disabled=str(disabled), late=driver.late)
        steps += 1
        if divergence is not None:
            return PathResult(steps, divergence, late=driver.late)
        if steps > known:
            trail.add(action, driver.candidates)
        if steps in marks:
            trail.mark(driver, steps)
    return PathResult(steps)


def _begin(
    driver: Driver, initial: State, actions: tuple[Action, ...], trail: StepTrail, known: int
) -> tuple[int, Divergence | None]:
    """Set the system up, or go back to where it was on the last path: after how many steps."""
    mark = trail.last_mark() if driver.goes_back else None
    if mark is None:
        return 0, driver.reset(initial, look=known < 0)
    steps, snapshot = mark
    candidates = trail.candidates(steps - 1) if steps else (initial,)
    return steps, driver.go_back(snapshot, initial, actions[:steps], candidates)


def run_until_believed(
    driver: Driver,
    initial: State,
    actions: Sequence[Action],
    believed: int = TRIES,
    states: Sequence[State] = (),
) -> tuple[PathResult, int]:
    """The path's outcome, and how often it was driven for it: in real time a divergence is believed
    when it comes each time that all was in time, after so many such runs.
    """
    tries, in_time = 0, 0
    while True:
        tries += 1
        outcome = run_path(driver, initial, actions, states=states)
        in_time += not outcome.late
        diverges = outcome.divergence is not None and driver.in_real_time
        if not (diverges or outcome.spoiled):
            return outcome, tries
        if in_time == believed or tries == _LATE_TRIES:
            return outcome, tries


def close(system: SystemUnderTest) -> None:
    """Release the system's resources, if it has any. UserError if a user's own adapter cannot."""
    try:
        Capabilities(system).close()
    except (UserError, SystemFailed):
        raise
    except raised_by_systems() as error:
        if type(Capabilities(system).innermost).__module__.startswith("conformance."):
            raise  # our own adapter's fault
        raise UserError(
            f"The adapter's close ({defined_at(system, 'close')}) raised {type(error).__name__}: "
            f"{error}. Mend it: it releases what the adapter holds, after any step."
        ) from error
