"""A divergence as an ITF file: kept, shown to others, and replayed until it is fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from conformance.errors import DataError
from conformance.events import Reason
from conformance.inputs import read_text
from conformance.replay.engine import Divergence, Driver, close, run_path
from conformance.replay.interleave import SerialOrders, interrupted_system, parts
from conformance.replay.oracle import Oracle, allows
from conformance.replay.suite import MakeSystem
from conformance.replay.telling import behaviour_of, key
from conformance.replay.turns import TURNS, LoopingSystem, LoopOracle
from conformance.story.itf import about as about_of
from conformance.story.itf import keep
from conformance.story.key import without_variables
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Action, Json, State, load_trace


class ReplayOutcome(StrEnum):
    """What replaying a saved divergence shows."""

    FAILED = "FAILED"
    """The earlier failure is not known: a recorded trace, or a file of another tool."""
    AS_BEFORE = "FAILED as before"
    DIFFERENTLY = "FAILED differently"
    FIXED = "FIXED"
    ELSEWHERE = "took another branch"
    """The spec allows the path, and another one as well, which this implementation took."""


@dataclass(frozen=True, slots=True)
class SavedDivergence:
    """The path to a divergence; `key` is the finding's key, empty if it is not known."""

    model: str
    system: str
    key: str
    variables: tuple[str, ...]
    initial: State
    actions: tuple[Action, ...]
    constants: Mapping[str, str] = field(default_factory=dict)
    """The model's, as TLA+ expressions: an exploration may have had others than the model has."""
    deviations: tuple[str, ...] = ()
    """Known ones of the system, by which the specification was overridden."""


def save(
    path: Path,
    oracle: Oracle,
    divergence: Divergence,
    *,
    model: str,
    system: str,
    constants: Mapping[str, str] | None = None,
    deviations: Sequence[str] = (),
    reasons: Sequence[Reason] = (),
) -> None:
    """Write the spec's states along the path, and what diverged, into one ITF file."""
    about: dict[str, Json] = {"model": model, "system": system, "key": key(oracle, divergence)}
    if constants:
        about["constants"] = dict(constants)
    if deviations:
        about["deviations"] = list(deviations)
    keep(path, behaviour_of(oracle, divergence, reasons), about)


def load(path: Path) -> SavedDivergence:
    """Read a file that `save` wrote, or any ITF trace whose steps name their actions.

    DataError if it cannot be read, or if a step has no action.
    """
    text = read_text(path)
    try:
        trace = load_trace(text)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    meta = about_of(trace)
    if not trace.states:
        raise DataError(f"{path} holds no state: there is nothing to replay.")
    actions = tuple(action for action in trace.actions if action is not None)
    if len(actions) != len(trace.states) - 1:
        raise DataError(
            f"{path} does not say which action each step took (the key `action` in a state's "
            "#meta). Give the actions, or import the trace and audit it."
        )
    return SavedDivergence(
        str(meta.get("model", "")),
        str(meta.get("system", "")),
        str(meta.get("key", "")),
        trace.variables,
        trace.states[0],
        actions,
        _texts(meta.get("constants")),
        _names(meta.get("deviations")),
    )


def _texts(value: object) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {str(name): str(text) for name, text in pairs}


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, Sequence) else ()


def judge_of(saved: SavedDivergence, oracle: Oracle, make_system: MakeSystem) -> Oracle:
    """The oracle, which also knows the turns of this system's threads if the path may have some."""
    if saved.variables != (*oracle.variables, TURNS):
        return oracle
    system = LoopingSystem(make_system())
    try:
        return LoopOracle(oracle, system.looping.loop, system.looping.threads)
    finally:
        close(system)


def wrapped(
    path: Sequence[Action], system: SystemUnderTest, oracle: Oracle
) -> tuple[SystemUnderTest, Oracle]:
    """The two as a path needs them: that know turns of threads, and interrupted steps.

    UserError if the system lacks what they need.
    """
    if isinstance(oracle, LoopOracle):
        system = LoopingSystem(system)
    if any(parts(action) for action in path):
        system = interrupted_system(system)
        oracle = SerialOrders(oracle, system)
    return system, oracle


def replay_again(
    saved: SavedDivergence, oracle: Oracle, make_system: MakeSystem
) -> tuple[ReplayOutcome, Divergence | None]:
    """Drive the saved path against a fresh system and compare with how it failed before.

    The oracle is the one that `judge_of` gives. DataError if the spec does not allow the path any
    more.
    """
    if saved.variables != oracle.variables:
        raise DataError(
            "The saved trace has other variables than the spec has now: it was saved for another "
            "version of the spec and says nothing about this one."
        )
    system = make_system()
    try:
        system, oracle = wrapped(saved.actions, system, oracle)
        result = run_path(Driver(system, oracle), saved.initial, saved.actions)
    finally:
        close(system)
    if result.disabled and allows(oracle, saved.initial, saved.actions):
        return ReplayOutcome.ELSEWHERE, None
    if result.disabled:
        raise DataError(
            f"The spec does not allow {result.disabled} as step {result.steps + 1} of the saved "
            "trace: it was saved for another version of the spec or model."
        )
    if result.divergence is None:
        return ReplayOutcome.FIXED, None
    return _compared(saved, oracle, result.divergence), result.divergence


def _compared(saved: SavedDivergence, oracle: Oracle, divergence: Divergence) -> ReplayOutcome:
    """At the path's last step another version may differ in other variables."""
    if not saved.key:
        return ReplayOutcome.FAILED
    now = key(oracle, divergence)
    is_last = divergence.step == len(saved.actions)
    same = is_last and without_variables(saved.key) == without_variables(now)
    return ReplayOutcome.AS_BEFORE if same or saved.key == now else ReplayOutcome.DIFFERENTLY
