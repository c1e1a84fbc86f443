"""Runs the Hypothesis machine under a profile and reduces what it finds to one divergence."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from conformance.compared import ComparedStates
from conformance.replay.engine import Divergence, Driver, close, run_path
from conformance.replay.machine import DivergenceFound, EndlessExample, Exploration, build_machine
from conformance.replay.minimise import minimise
from conformance.replay.nearest import nearest_failure
from conformance.replay.oracle import Oracle
from conformance.replay.profile import EFFORTS, Effort, Profile
from conformance.replay.reach import ReachResult, ways_to
from conformance.replay.repeatable import drawn_alike
from conformance.replay.shorten import shortest_failure
from conformance.replay.weights import Frequencies
from conformance.story.kind import BehaviourKind
from conformance.tla import Action, State
from conformance.verdict import Verdict

_DETOUR_STATES = 5_000
_NEAREST_STEPS = 1_000
"""How far to look for a shorter counterexample: the evaluator takes a millisecond per state."""

GUIDED_SHARE = 10
"""For each action that the examples did not take, one example in this many is led to it."""


@dataclass(frozen=True, slots=True)
class ExploreResult:
    """The results of one run of the machine; `divergence` is minimal and was reproduced."""

    examples: int
    steps: int
    distinct_transitions: int
    frequencies: Frequencies
    seconds: float
    divergence: Divergence | None = None
    invariant: str = ""
    note: str = ""
    guided: Mapping[str, int] = field(default_factory=dict)
    """Actions that only examples which were led there took: the steps of the way to each."""
    disabled: tuple[str, ...] = ()
    """Actions that no reachable state of the model enables."""
    never_taken: tuple[str, ...] = ()
    """The other actions that were not taken."""
    compared: ComparedStates = field(default_factory=ComparedStates)

    @property
    def verdict(self) -> Verdict:
        """FAIL on a divergence; INCONCLUSIVE if flaky or empty, or if too little was compared."""
        if self.divergence is not None:
            return Verdict.FAIL
        if self.note or not self.steps or self.compared.gap:
            return Verdict.INCONCLUSIVE
        return Verdict.PASS


def explore(
    exploration: Exploration,
    action_names: Sequence[str],
    *,
    profile: Profile | None = Profile.CI,
    examples: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
    database: Path | None = None,
    map_oracle: Oracle | None = None,
) -> ExploreResult:
    """Search for a divergence with Hypothesis, shrink it, and make it minimal.

    Without a profile the active settings of Hypothesis hold. `examples` and `steps` override
    the profile's. With a seed the run repeats itself; the `ci` profile always does. `database`
    is the folder of Hypothesis's example database; derandomised runs repeat themselves and keep
    none. To an action that was not taken the examples are then led, by a shortest way of
    `map_oracle` (a model's complete graph, or else the exploration's own oracle).
    """
    started = time.perf_counter()
    effort = _effort(profile)
    chosen = _settings(profile, effort, examples, steps, seed, database)
    divergence, note = _run(exploration, action_names, chosen, seed)
    reach, missing = ReachResult({}, exhausted=False), _missing(exploration, action_names)
    if divergence is None and not note and missing:
        guide = map_oracle or exploration.oracle
        reach = ways_to(guide, missing, effort.search if map_oracle is None else sys.maxsize)
        few = settings(chosen, max_examples=max(1, chosen.max_examples // GUIDED_SHARE))
        for way in reach.ways.values():
            exploration.prefix = way
            divergence, note = _run(exploration, action_names, few, seed)
            if divergence is not None or note:
                break
        exploration.prefix = None
    left = _missing(exploration, action_names)
    disabled = [name for name in left if reach.exhausted and name not in reach.ways]
    return ExploreResult(
        examples=exploration.examples,
        steps=exploration.steps,
        distinct_transitions=len(exploration.transitions),
        frequencies=exploration.tally.frequencies(),
        seconds=time.perf_counter() - started,
        divergence=_reduce(exploration, divergence) if divergence else None,
        invariant=divergence.invariant if divergence else "",
        note=note,
        guided={n: len(way.actions) for n, way in reach.ways.items() if n not in left},
        disabled=tuple(disabled),
        never_taken=tuple(name for name in left if name not in disabled),
        compared=exploration.compared,
    )


def _effort(profile: Profile | None) -> Effort:
    if profile is not None:
        return EFFORTS[profile]
    active = settings()
    return Effort(active.max_examples, active.stateful_step_count, active.derandomize)


def _settings(
    profile: Profile | None,
    effort: Effort,
    examples: int | None,
    steps: int | None,
    seed: int | None,
    database: Path | None,
) -> settings:
    """What a run needs of Hypothesis; the rest stays as the active settings have it."""
    derandomize = effort.derandomize and seed is None
    keeper = settings().database if profile is None else None
    if database is not None:
        keeper = DirectoryBasedExampleDatabase(database)
    return settings(
        max_examples=examples or effort.examples,
        stateful_step_count=steps or effort.steps,
        derandomize=derandomize,
        database=None if derandomize else keeper,  # Hypothesis refuses to do both
        deadline=None,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        phases=[phase for phase in Phase if phase is not Phase.explain],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )


def _run(
    exploration: Exploration, action_names: Sequence[str], chosen: settings, seed: int | None
) -> tuple[DivergenceFound | None, str]:
    """One run of the machine: its divergence, and why the run is not reliable, if so."""
    machine = build_machine(exploration, action_names)
    if seed is not None:
        hypothesis.seed(seed)(machine)
    try:
        with drawn_alike():
            run_state_machine_as_test(machine, settings=chosen)
    except DivergenceFound as failure:
        return failure, ""
    except EndlessExample as failure:
        return failure.divergence, ""
    except Flaky as flaky:
        return None, f"the system does not repeat itself: {flaky}"
    return None, ""


def _missing(exploration: Exploration, action_names: Sequence[str]) -> tuple[str, ...]:
    counts = exploration.tally.frequencies().steps
    return tuple(name for name in action_names if not counts.get(name))


def _reduce(exploration: Exploration, divergence: DivergenceFound) -> Divergence:
    """The found path made minimal by fresh runs of the system."""
    first = attempt(exploration, divergence.path.initial, divergence.path.actions)
    if first is None:
        if divergence.divergence is not None:
            return divergence.divergence
        raise divergence

    def again(initial: State, actions: Sequence[Action]) -> Divergence | None:
        return attempt(exploration, initial, actions)

    oracle = exploration.oracle
    short = shortest_failure(oracle, minimise(first, again), again, limit=_DETOUR_STATES)
    if short.kind in (BehaviourKind.INVARIANT, BehaviourKind.ENDLESS):
        return short
    system = exploration.make_system()
    try:
        return nearest_failure(Driver(system, oracle), oracle, short, _NEAREST_STEPS)
    finally:
        close(system)


def attempt(
    exploration: Exploration, initial: State, actions: Sequence[Action]
) -> Divergence | None:
    """Drive a fresh system along a path; a divergence or a broken invariant, if it shows one."""
    system = exploration.make_system()
    try:
        driver = Driver(system, exploration.oracle)
        result = run_path(driver, initial, actions)
        if result.divergence is not None or result.disabled:
            return result.divergence
        return _broken(exploration, driver, initial, tuple(actions))
    finally:
        close(system)


def _broken(
    exploration: Exploration, driver: Driver, initial: State, actions: tuple[Action, ...]
) -> Divergence | None:
    for name, holds in exploration.invariants.items():
        bad = tuple(state for state in driver.candidates if not holds(state))
        if bad:
            return Divergence(BehaviourKind.INVARIANT, initial, actions, bad, (), {}, name)
    return None
