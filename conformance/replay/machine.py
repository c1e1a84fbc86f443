"""A Hypothesis state machine for any spec and system: the rules are the spec's actions.

No rule is written by hand for a protocol. A rule's precondition is that the spec enables the
action in a state that is still possible; its arguments are drawn from the enabled instances;
the oracle is step equality, and the invariants of the spec on every candidate state. An example
may begin with a given way (`Exploration.prefix`), to go on from a state that is hard to reach.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.errors import StopTest
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from conformance.compared import ComparedStates
from conformance.printable import counted
from conformance.replay.engine import Disabled, Divergence, Driver, close
from conformance.replay.oracle import Oracle
from conformance.replay.reach import Path
from conformance.replay.weights import ActionTally
from conformance.story.kind import BehaviourKind
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Action, State

Formula = Callable[[State], bool]
Instances = Mapping[str, Sequence[Action]]
"""Actions by name."""

_COPIES = 4
"""Of an action among the rules: all but one are for what is new to the example."""


class DivergenceFound(AssertionError):
    """Ends an example: the implementation departed from the spec, or broke an invariant."""

    def __init__(self, divergence: Divergence | None, invariant: str, path: Path) -> None:
        self.divergence, self.invariant, self.path = divergence, invariant, path
        what = f"invariant {invariant}" if invariant else str(divergence and divergence.kind)
        super().__init__(f"{what} after {counted(len(path.actions), 'step')}")


class EndlessExample(BaseException):
    """Ends the search at once: every example that Hypothesis shrinks would take as long again."""

    def __init__(self, divergence: DivergenceFound) -> None:
        super().__init__(str(divergence))
        self.divergence = divergence


@dataclass(slots=True)
class Exploration:
    """The subject of a machine's exploration, and its counts (shared by all examples)."""

    oracle: Oracle
    make_system: Callable[[], SystemUnderTest]
    invariants: Mapping[str, Formula] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    prefix: Path | None = None
    """The state in which every example begins; None: each example chooses an initial state."""
    tally: ActionTally = field(default_factory=ActionTally)
    transitions: set[int] = field(default_factory=set)
    watch: Callable[[State, Action, State], None] = lambda *_: None
    """Is called with every step that the specification allows."""
    examples: int = 0
    steps: int = 0
    compared: ComparedStates = field(default_factory=ComparedStates)
    failures: list[DivergenceFound] = field(default_factory=list)


class SpecMachine(RuleBasedStateMachine):
    """The part of the machine that does not depend on the spec; `build_machine` adds rules."""

    exploration: Exploration

    def __init__(self) -> None:
        super().__init__()
        self._system = self.exploration.make_system()
        self._driver = Driver(self._system, self.exploration.oracle)
        self._actions: list[Action] = []
        self._initial: State = ()
        self._enabled: Instances = {}
        self._fresh: Instances = {}
        self._transitions: set[tuple[State, Action]] = set()

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        """Choose one of the spec's initial states, or go the given way."""
        prefix = self.exploration.prefix
        if prefix is not None:
            self._begin(prefix.initial)
            self._go(prefix.actions)
            return
        states = self.exploration.oracle.initial_states()
        self._begin(states[data.draw(st.integers(0, len(states) - 1))])

    @rule()
    @precondition(lambda self: self.is_stuck)
    def stay(self) -> None:
        """Where the spec deadlocks: Hypothesis wants a rule in every state."""

    def take(self, name: str, data: st.DataObject, *, fresh: bool) -> None:
        """One step by an enabled instance of the action called `name`."""
        instances = self._instances(fresh=fresh)[name]
        action = instances[data.draw(st.integers(0, len(instances) - 1))]
        self._transitions.add((self._driver.candidates[0], action))
        self._step(action)

    @property
    def is_stuck(self) -> bool:
        """Whether the example has begun and no action is enabled."""
        return bool(self._driver.candidates) and not self._enabled

    def enables(self, name: str, *, fresh: bool) -> bool:
        """Whether the spec allows the action now; `fresh`: one not yet taken in this state."""
        return name in self._instances(fresh=fresh)

    def _instances(self, *, fresh: bool) -> Instances:
        return self._fresh if fresh else self._enabled

    def teardown(self) -> None:
        """End the example. Nothing is a target of Hypothesis's: what is new once is new no more."""
        close(self._system)
        self.exploration.compared += self._driver.take_compared()
        if not isinstance(sys.exception(), StopTest):  # else Hypothesis broke it off, to discard it
            self.exploration.examples += 1

    def _begin(self, initial: State) -> None:
        self._initial = initial
        self._check(self._driver.reset(initial))

    def _go(self, actions: Sequence[Action]) -> None:
        """As far along the way as the system's own choices leave it open; one that can be told how
        to choose goes where the way leads."""
        for action, wanted in zip(
            actions, self._driver.ways_on(self._initial, actions), strict=True
        ):
            try:
                self._step(action, wanted)
            except Disabled:
                return

    def _step(self, action: Action, wanted: Collection[State] = ()) -> None:
        before = self._driver.candidates
        divergence = self._driver.step(action, wanted)
        exploration = self.exploration
        self._actions.append(action)
        exploration.tally.take(action.name)
        exploration.steps += 1
        self._check(divergence)
        after = self._driver.candidates[0]
        exploration.transitions.add(hash((before[0], action, after)))
        exploration.watch(before[0], action, after)

    def _check(self, divergence: Divergence | None) -> None:
        if divergence is not None:
            self._fail(divergence, "")
        for name, holds in self.exploration.invariants.items():
            if not all(holds(state) for state in self._driver.candidates):
                self._fail(None, name)
        self._refresh()

    def _fail(self, divergence: Divergence | None, invariant: str) -> None:
        divergence_found = DivergenceFound(
            divergence, invariant, Path(self._initial, tuple(self._actions))
        )
        self.exploration.failures.append(divergence_found)
        if divergence is not None and divergence.kind is BehaviourKind.ENDLESS:
            raise EndlessExample(divergence_found)
        raise divergence_found

    def _refresh(self) -> None:
        oracle, candidates = self.exploration.oracle, self._driver.candidates
        actions = dict.fromkeys(a for state in candidates for a in oracle.enabled(state))
        grouped: dict[str, list[Action]] = {}
        for action in actions:
            grouped.setdefault(action.name, []).append(action)
        self._enabled, self._fresh = grouped, self._not_yet_taken(grouped)
        self.exploration.tally.visit(frozenset(grouped))

    def _not_yet_taken(self, enabled: Instances) -> Instances:
        """What this example has not yet chosen in this state.

        What other examples chose must not count: Hypothesis runs an example again, and it has to
        repeat itself whatever was seen meanwhile.
        """
        here, names = self._driver.candidates[0], self._transitions
        left = {
            name: [action for action in actions if (here, action) not in names]
            for name, actions in enabled.items()
        }
        return {name: actions for name, actions in left.items() if actions}


def build_machine(exploration: Exploration, action_names: Sequence[str]) -> type[SpecMachine]:
    """A state machine class whose rules are the named actions of the spec.

    An action stands several times among the rules, because Hypothesis chooses uniformly among
    those that are enabled: rare actions more often (`exploration.weights`), and each mostly as one
    that the example has not yet taken in this state, lest it go round in circles.
    """
    namespace: dict[str, object] = {"exploration": exploration, "__module__": __name__}
    for name in action_names:
        for copy in range(_COPIES * exploration.weights.get(name, 1)):
            # Numbered, so that no action hides a method of the machine.
            namespace[f"{name}_{copy + 1}"] = _rule(name, fresh=copy % _COPIES > 0)
    return type("SpecMachine", (SpecMachine,), namespace)


def _rule(name: str, *, fresh: bool) -> object:
    def enabled(machine: SpecMachine) -> bool:
        return machine.enables(name, fresh=fresh)

    def step(self: SpecMachine, data: st.DataObject) -> None:
        self.take(name, data, fresh=fresh)

    step.__name__ = "step"
    return precondition(enabled)(rule(data=st.data())(step))
