"""The small protocol that an implementation's adapter fulfils to be driven by a spec."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable

from conformance.tla import Action, State, Value

if TYPE_CHECKING:
    from conformance.deviations.tolerance import Tolerance


class ActionRefused(Exception):
    """The implementation cannot take an action that the spec allows.

    Raised by an adapter's `apply`. A refusal is a divergence, as is any other exception
    that escapes from the implementation; the message says why it could not.
    """


_StepT = TypeVar("_StepT")


def step_of(steps: Mapping[str, _StepT], action: Action) -> _StepT:
    """What an adapter has for an action, by its name; ActionRefused if it has nothing."""
    step = steps.get(action.name)
    if step is None:
        raise ActionRefused(f"the adapter knows no action {action.name}")
    return step


class SystemFailed(Exception):
    """An implementation outside this process raised an exception, broke its protocol or is gone.

    A divergence, told in the words of the message: our own traceback would say nothing of it.
    """


class SystemHangs(SystemFailed):
    """An implementation outside this process has not answered in time."""


class EndedFromOutside(BaseException):
    """Ends a system's call, and is not raised by the system: a time limit of the harness."""


def raised_by_systems() -> tuple[type[BaseException], ...]:
    """Of the exception that is being handled: what is a divergence if a system's call raises it.

    For an `except` clause, which asks when something was raised. A system must not end the run
    that judges it: `sys.exit` is a divergence, and so are the cancellation of its own task and
    what a test framework raises to fail or skip a test. An interrupt of the user is none.
    """
    interrupted = isinstance(sys.exception(), KeyboardInterrupt | EndedFromOutside)
    return () if interrupted else (BaseException,)


class CannotSnapshot(Exception):
    """The system cannot go back to its present state; the message says what is in the way.

    Raised by `Snapshots.snapshot`: the harness sets the system up again, and walks there.
    """


class Observation(Mapping[str, Value]):
    """Observed values that can never change: a copy of the mapping that it is made of.

    An adapter that makes one observation per distinct state of its implementation, and gives
    that same object again, spares the harness the comparison: once an observation was found
    equal to a state of the spec, it stays so. Any other mapping is compared every time.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    def __getitem__(self, variable: str) -> Value:
        return self._values[variable]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@runtime_checkable
class SystemUnderTest(Protocol):
    """One instance of an implementation, driven action by action.

    An adapter maps the spec's actions to calls of the implementation and the
    implementation's state to values of the spec's variables. It never decides whether
    a state is right: that is the spec's business.

    A call that has not come back after 2 s of the processor's time, or 30 s by the clock (or what
    `Limited` says), is interrupted and is a divergence. What takes longer to start is started by
    the factory.
    """

    @property
    def variables(self) -> tuple[str, ...]:
        """The spec's variables that `observe` gives: all, or a declared subset.

        Ghost variables do not exist in an implementation. The harness completes what is
        missing from the spec's successors and keeps the set of candidates.
        """

    def reset(self, initial: Mapping[str, Value]) -> None:
        """Start afresh in an initial state of the spec (all of its variables are given)."""

    def apply(self, action: Action) -> None:
        """Make the implementation take one step. Raises ActionRefused if it cannot."""

    def observe(self) -> Mapping[str, Value]:
        """The present values of exactly `variables`, in the normal form of TLA+ values.

        Of `LeavesOut` those that can be seen now.
        """


@runtime_checkable
class LeavesOut(Protocol):
    """Optional: a system whose observations lack a variable where it cannot be seen."""

    @property
    def sometimes(self) -> frozenset[str]:
        """Those of `variables` that an observation may lack; the others are in each."""


@runtime_checkable
class Adapting(Protocol):
    """Optional: a system that drives another one in a further way; messages name the inner one."""

    @property
    def adapter(self) -> SystemUnderTest:
        """The system that it wraps."""


@runtime_checkable
class Patient(Protocol):
    """Optional: a system in real time, of which a look may come too early.

    Where time is real, a test may fail because the machine was busy. Waiting costs nothing, so
    several tests run side by side, each with a system of its own in a thread of its own; the
    system ends its calls itself. One that diverges is run again alone before it is believed.
    """

    @property
    def lanes(self) -> int:
        """How many of these systems may run side by side."""

    def foresee(self, actions: Sequence[Action]) -> str:
        """The path that comes after the next reset: which timers will have to fire.

        Gives the reason why the system cannot be driven along it; empty if it can.
        """

    def be_alone(self) -> None:
        """From now on no other test runs beside this system's: there is time to look for long."""

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again after the last `apply`."""

    def look_again(self, seconds: float) -> Mapping[str, Value]:
        """Observe as soon as something may have changed, after so many seconds at the latest."""

    @property
    def late(self) -> str:
        """Which timer may have run out before the path came to it, as the steps took too long, or
        why what was looked for may not have had its time; empty if neither. A divergence is not
        believed then: it may be the machine's."""


@runtime_checkable
class Choosing(Protocol):
    """Optional: a system that can be told how to choose where the spec leaves it a choice.

    A path then leads where it was planned to. Without this the system decides, and a path may end
    early, as its next action is not enabled where the system went.
    """

    def choose(self, wanted: Mapping[str, Value]) -> None:
        """To which state of the spec the next `apply` is to lead, if it is the system's choice."""


@runtime_checkable
class Repeatable(Protocol):
    """Optional: a system that repeats itself, and that no look changes.

    Where it was once found right, the same steps from the same beginning lead again: the harness
    goes that way without looking, and looks at what comes after it. Clock, threads, disk and
    everything random are then arguments of the implementation; see the bundled adapters.
    """

    @property
    def repeatable(self) -> bool:
        """Whether the state depends on the initial state and the actions alone."""


@runtime_checkable
class Limited(Protocol):
    """Optional: a system that ends its calls itself, after longer than others get."""

    @property
    def longest_call(self) -> float:
        """Seconds by the clock after which a call has ended, or is ended by the harness."""


@runtime_checkable
class Snapshots(Protocol):
    """Optional: a system that can go back.

    If it is `Repeatable` too, the harness returns to where the next test leaves the last one, in
    place of setting the system up again and walking there.
    """

    def snapshot(self) -> object:
        """An opaque copy of the present state. Raises CannotSnapshot where there can be none."""

    def restore(self, snapshot: object) -> None:
        """Return to a state that `snapshot` gave; the snapshot stays usable."""


@runtime_checkable
class Offers(Protocol):
    """Optional: a system that tells which steps it would take by itself now.

    Driving a system along what the spec allows cannot show that it would do more. With this
    the harness compares, in every state, what the system would start with what the spec
    enables: too much and too little are both divergences.
    """

    @property
    def offerable(self) -> frozenset[str]:
        """The names of the spec's actions that the system starts by itself."""

    def offers(self) -> frozenset[Action]:
        """The instances of these actions that it would start now; changes nothing."""


class SpecSteps(Protocol):
    """The specification's steps, for whoever composes them."""

    @property
    def variables(self) -> tuple[str, ...]:
        """In the order of a state's values."""

    def successors(self, state: State, action: Action) -> Sequence[State]:
        """Where the action leads; empty if it is not enabled."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn of a thread's own loop did."""

    asked: tuple[str, ...] = ()
    """Its requests in their order, by the specification's names of messages."""
    waited: bool = False
    """Whether it found nothing to do, and waited."""
    delayed: bool = False
    """Whether what it works at is left alone from now on, until a back-off has passed."""


class Loop(Protocol):
    """The loop of a kind of thread: which of the specification's steps a turn takes, in order."""

    @property
    def steps(self) -> frozenset[str]:
        """The actions that only turns take."""

    @property
    def forgetting(self) -> frozenset[str]:
        """Actions after which the back-off of their first argument's thread is over."""

    def turn(
        self, spec: SpecSteps, state: State, thread: str, *, delayed: bool, lost: bool
    ) -> tuple[State, Turn] | None:
        """Where a turn must lead, and what it must do; None where there is no turn to take.

        `delayed`: its back-off runs. `lost`: no message of it arrives.
        """


@runtime_checkable
class Looping(Protocol):
    """Optional: a system whose threads' own loops can be driven, a turn at a time.

    Driving steps cannot show in which order a thread takes them, nor that it backs off. With this
    a turn of the real loop has to come out as the specification's steps in the loop's order.
    """

    @property
    def loop(self) -> Loop:
        """What a turn is."""

    @property
    def threads(self) -> tuple[str, ...]:
        """Whose loops there are: values of the specification."""

    def make_looping(self) -> bool:
        """Called before the first reset, if at all. False if this model's steps are not apart."""

    def take_turn(self, thread: str, *, lost: bool) -> Turn:
        """Let the loop's body run once. Raises ActionRefused if there is nothing to run."""

    def backs_off(self, thread: str) -> bool:
        """Whether its back-off runs now."""

    def end_back_off(self, thread: str) -> None:
        """Let the back-off pass."""


@runtime_checkable
class Interruptible(Protocol):
    """Optional: a system whose steps can be stopped where a real thread can be interrupted.

    With this the harness lets one thread stand still in the middle of an action, between two
    sections under a lock, while another takes an action of its own. Whatever comes out has to be
    what the spec allows for the two in one order or the other.
    """

    def make_interruptible(self) -> bool:
        """Called before the first reset, if at all; may make every step slower.

        False if it cannot be done for this model's constants.
        """

    @property
    def voluntary(self) -> frozenset[str]:
        """Actions that need not be taken: in another's middle there may be no reason to."""

    @property
    def unconditional(self) -> frozenset[str]:
        """Actions that only a model's bounds disable: where these do, nothing is judged."""

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of one process take these."""

    def in_parts(self, running: Action, between: Action) -> bool:
        """Whether one is a single step of the spec that the other is known to see in parts.

        Then every variable for itself has to be what one of the two orders gives.
        See `InEntries` for what is smaller than a variable.
        """

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Stop `running` at its `point`-th interruption, from 1; `between` goes first from there.

        Where `between` waits for a lock that `running` holds, `running` goes on to the next
        interruption. Ends both. Gives the name of the point, empty if `running` ended before it;
        then `between` comes after it. That one of them is refused, because the other came first, is
        no error: what it left undone is judged by the state. Any other exception is a divergence.
        """


@runtime_checkable
class DiesMidway(Protocol):
    """Optional, of an `Interruptible` system: a process may die in the middle of its step."""

    def midway(self, running: Action, between: Action) -> Sequence[Action]:
        """Where `between` is the death of the process that takes `running`: what it may come to.

        Each of these actions says what is left and read back, of both steps together; `between`
        is one of them where nothing was done yet. That `running` was done and `between` came then
        is allowed, too. Empty where nobody dies.
        """


@runtime_checkable
class InEntries(Protocol):
    """Optional, of an `Interruptible` system: one step may go over many objects, one by one.

    Another thread may then come between two objects.
    """

    @property
    def in_entries(self) -> frozenset[str]:
        """Variables that are functions of such objects.

        Where a step is seen in parts, each entry of them has to be what one of the orders gives.
        """


@runtime_checkable
class Tolerant(Protocol):
    """Optional: a system whose maker has declared departures of what it shows."""

    @property
    def tolerance(self) -> Tolerance:
        """What is set aside."""


@runtime_checkable
class Closeable(Protocol):
    """Optional: a system that holds files, threads or sockets."""

    def close(self) -> None:
        """Release them. Called once, after the last use."""


@runtime_checkable
class Selective(Protocol):
    """Optional, of a factory: it tells which models its systems can run."""

    def cannot_take(self, specification: str, constants: Mapping[str, Value]) -> str:
        """Why it cannot make a system for this root module and these constants; empty if it can."""


@runtime_checkable
class Distant(Protocol):
    """Optional, of a factory: its systems are driven in real time, by what they let in.

    The tests of a suite are driven side by side. They are not asked for random traces: what comes
    next is not known there, so no timer could be made ready for it.
    """

    def beyond_reach(self) -> Mapping[str, str]:
        """The actions that cannot be brought about at all, by name, and why."""

    def passes(self, constants: Mapping[str, Value], state: Mapping[str, Value]) -> str:
        """Why no system stays in this state of a model with these constants until the next step;
        empty if one does."""


@runtime_checkable
class Restless(Protocol):
    """Optional, of a factory of distant systems: where these go on by themselves, at once.

    No test takes another step there, and none ends there.
    """

    def goes_on(self, constants: Mapping[str, Value], state: Mapping[str, Value]) -> frozenset[str]:
        """The names of the actions of which one comes next in this state of a model with these
        constants; empty where the systems stay."""


@runtime_checkable
class Shareable(Protocol):
    """Optional, of a factory of distant systems: several processes may drive what it stands for."""

    def shared_name(self, constants: Mapping[str, Value]) -> str:
        """The name under which another process drives it along a model while it is driven here;
        empty if the model's steps would be felt along other models."""


@runtime_checkable
class Paced(Protocol):
    """Optional, of a factory: how fast its systems are. `gate --minutes` plans with it."""

    def steps_a_second(self, specification: str) -> float:
        """About how many steps a system takes in a second, by the root module that drives it."""


@runtime_checkable
class Preparing(Protocol):
    """Optional, of a factory: its systems need what is fetched or compiled once on a machine."""

    def make_ready(self, tell: Callable[[str], None]) -> None:
        """Do it, unless it is done; `tell` takes a line for each part of what takes long."""


@runtime_checkable
class StandsOn(Protocol):
    """Optional, of a factory: its specification takes steps of another one as they are.

    A tier's suites need not take each of those again: it is told, and makes no pass vacuous.
    """

    def taken_elsewhere(self) -> Mapping[str, str]:
        """Such actions, by name, and whose suites take the step itself."""


SystemFactory: TypeAlias = Callable[[Mapping[str, Value]], SystemUnderTest]
"""Makes a system from the values of the model's constants, by name."""
