"""Runs the Hypothesis machine under a profile and reduces what it finds to one divergence."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from conformance.replay.engine import Divergence, Driver, Kind, close, run_path
from conformance.replay.machine import DivergenceFound, Exploration, build_machine
from conformance.replay.minimise import minimise
from conformance.replay.shorten import shortest_failure
from conformance.replay.weights import Frequencies
from conformance.tla.values import Action, State
from conformance.verdict import Verdict


class Profile(StrEnum):
    """How long to search: `dev` seconds, `ci` a minute and derandomised, `nightly` long."""

    DEV = "dev"
    CI = "ci"
    NIGHTLY = "nightly"


@dataclass(frozen=True, slots=True)
class Effort:
    """What a profile stands for."""

    examples: int
    steps: int
    derandomize: bool


EFFORTS = {
    Profile.DEV: Effort(25, 30, derandomize=False),
    Profile.CI: Effort(150, 40, derandomize=True),
    Profile.NIGHTLY: Effort(10_000, 60, derandomize=False),
}


@dataclass(frozen=True, slots=True)
class ExploreResult:
    """What one run of the machine saw; `divergence` is minimal and was reproduced."""

    examples: int
    steps: int
    distinct_transitions: int
    frequencies: Frequencies
    seconds: float
    divergence: Divergence | None = None
    invariant: str = ""
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """FAIL on a divergence; INCONCLUSIVE on a flaky or empty run."""
        if self.divergence is not None:
            return Verdict.FAIL
        if self.note or not self.steps:
            return Verdict.INCONCLUSIVE
        return Verdict.PASS


def explore(
    exploration: Exploration,
    action_names: Sequence[str],
    *,
    profile: Profile = Profile.CI,
    examples: int | None = None,
    steps: int | None = None,
    seed: int | None = None,
    database: Path | None = None,
) -> ExploreResult:
    """Search for a divergence with Hypothesis, shrink it, and make it minimal.

    `examples` and `steps` override the profile's. With a seed the run repeats itself; the
    `ci` profile always does. `database` is the folder of Hypothesis's example database;
    derandomised runs repeat themselves and keep none.
    """
    effort = EFFORTS[profile]
    started = time.perf_counter()
    machine = build_machine(exploration, action_names)
    if seed is not None:
        hypothesis.seed(seed)(machine)
    derandomize = effort.derandomize and seed is None
    keeps = database is not None and not derandomize  # Hypothesis refuses to do both
    chosen = settings(
        max_examples=examples or effort.examples,
        stateful_step_count=steps or effort.steps,
        derandomize=derandomize,
        database=DirectoryBasedExampleDatabase(database) if database and keeps else None,
        deadline=None,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        phases=[phase for phase in Phase if phase is not Phase.explain],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    found, note = None, ""
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except DivergenceFound as failure:
        found = failure
    except Flaky as flaky:
        note = f"the system does not repeat itself: {flaky}"
    divergence = _reduce(exploration, found) if found else None
    return ExploreResult(
        examples=exploration.examples,
        steps=exploration.steps,
        distinct_transitions=len(exploration.transitions),
        frequencies=exploration.tally.frequencies(),
        seconds=time.perf_counter() - started,
        divergence=divergence,
        invariant=found.invariant if found else "",
        note=note,
    )


def _reduce(exploration: Exploration, found: DivergenceFound) -> Divergence:
    """The found path made minimal by fresh runs of the system."""
    first = attempt(exploration, found.path.initial, found.path.actions)
    if first is None:
        if found.divergence is not None:
            return found.divergence
        raise found

    def again(initial: State, actions: Sequence[Action]) -> Divergence | None:
        return attempt(exploration, initial, actions)

    return shortest_failure(exploration.oracle, minimise(first, again), again, limit=20_000)


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
            return Divergence(Kind.INVARIANT, initial, actions, bad, (), {}, name)
    return None
