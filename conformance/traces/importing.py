"""Imports what a foreign implementation wrote: NDJSON, one event per line, and ITF traces.

An event is `{"trace": id, "step": n, "action": {"name": ..., "args": [...]}, "state": {...}}`
with values as in ITF. Step 0 has no action and gives the initial state. The variables of a
trace's first state are those that it observes: any subset of the spec's, the same in every
line. Lines of several traces may be mixed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from conformance.errors import DataError, UserError
from conformance.tla.itf import Json, from_itf, load_trace
from conformance.tla.observation import shows
from conformance.tla.values import Action, State, Value, fingerprint
from conformance.traces.manifest import Identity, Manifest, read_manifest
from conformance.traces.model import End, PartialState, Trace, TraceStep, is_complete
from conformance.traces.states import infer_columns
from conformance.traces.writer import write_store


class Completer(Protocol):
    """The spec, as far as completing unobserved variables needs it."""

    def initial_states(self) -> Sequence[State]:
        """The states that Init allows."""

    def successors(self, state: State, action: Action) -> Sequence[State]:
        """The states that the action leads to; empty where it is not enabled."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a trace cannot be judged whole, and where that stands."""

    trace: str
    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}\n{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A store that was imported; every trace with a problem is in it and listed here."""

    manifest: Manifest
    problems: tuple[Problem, ...]
    ambiguous: int
    """Traces whose observations several behaviours of the spec show: one of them was stored."""


@dataclass(slots=True)
class _Reading:
    """A trace while its events come in."""

    name: str
    file: str
    line: int
    variables: frozenset[str] = frozenset()
    states: list[PartialState] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    problem: Problem | None = None


def import_traces(
    paths: Sequence[Path],
    identity: Identity,
    store: Path,
    *,
    spec: Completer | None = None,
    replace: bool = False,
) -> ImportResult:
    """Import files into a new store at `store`.

    `spec` completes variables that were not observed; without it such states stay partial,
    and the audit cannot judge them. What cannot be read makes its trace inconclusive; only a
    file that cannot be opened, or holds no trace at all, is an error.
    """
    readings = list(_readings(paths, identity))
    if not readings:
        names = ", ".join(map(str, paths))
        raise UserError(f"No trace was found in {names}: nothing was imported.")
    traces: list[Trace] = []
    ambiguous = 0
    for number, reading in enumerate(readings):
        trace, choices = _trace(number, reading, spec)
        traces.append(trace)
        ambiguous += choices > 1
    reference = list(spec.initial_states()) if spec is not None else []
    states = [state for trace in traces for state in trace.states if state]
    columns = infer_columns(identity.variables, states, reference)
    write_store(store, identity, columns, traces, replace=replace)
    problems = tuple(reading.problem for reading in readings if reading.problem)
    return ImportResult(read_manifest(store), problems, ambiguous)


def _readings(paths: Sequence[Path], identity: Identity) -> Iterator[_Reading]:
    known = frozenset(map(str, identity.parsed_actions()))
    for path in paths:
        try:
            if path.name.endswith(".itf.json"):
                yield _read_itf(path, identity, known)
            else:
                yield from _Events(path, identity, known).read()
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}.") from error


class _Events:
    """Reads one NDJSON file."""

    def __init__(self, path: Path, identity: Identity, known: frozenset[str]) -> None:
        self._path = path
        self._variables = tuple(identity.variables)
        self._known = known
        self._readings: dict[str, _Reading] = {}

    def read(self) -> Iterable[_Reading]:
        """Its traces, in the order in which they begin."""
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    self._event(number, line)
        return self._readings.values()

    def _event(self, number: int, line: bytes) -> None:
        try:
            event = json.loads(line)
        except ValueError as error:
            # Whose event it was is unknown: it is a trace of its own, so that it is counted.
            self._reading(f"line {number}", number).problem = self._problem(
                f"line {number}", number, f"not JSON: {error}"
            )
            return
        if not isinstance(event, dict) or "trace" not in event:
            self._reading(f"line {number}", number).problem = self._problem(
                f"line {number}", number, 'an event is an object with the key "trace"'
            )
            return
        name = json.dumps(event["trace"])
        reading = self._reading(name, number)
        if reading.problem is None:
            try:
                self._extend(reading, event)
            except DataError as error:
                reading.problem = self._problem(name, number, str(error))

    def _reading(self, name: str, number: int) -> _Reading:
        return self._readings.setdefault(name, _Reading(name, str(self._path), number))

    def _problem(self, name: str, number: int, reason: str) -> Problem:
        return Problem(name, str(self._path), number, reason)

    def _extend(self, reading: _Reading, event: Mapping[str, Json]) -> None:
        step = event.get("step")
        if step != len(reading.states) or isinstance(step, bool):
            raise DataError(f"step {len(reading.states)} is missing, step {step!r} came")
        state = self._state(reading, event.get("state"))
        if reading.states:
            reading.actions.append(self._action(event.get("action")))
        elif event.get("action") is not None:
            raise DataError("step 0 is the initial state and has no action")
        reading.states.append(state)

    def _state(self, reading: _Reading, data: Json) -> PartialState:
        if not isinstance(data, Mapping):
            raise DataError("the event has no state")
        observed = frozenset(data)
        unknown = sorted(observed.difference(self._variables))
        if unknown:
            raise DataError(f"the spec has no variable {unknown[0]}")
        if not reading.states:
            reading.variables = observed
        missing = sorted(reading.variables.symmetric_difference(observed))
        if missing or not observed:
            what = missing[0] if missing else "at all"
            raise DataError(f"the variable {what} is not observed throughout")
        return tuple(from_itf(data[n]) if n in data else None for n in self._variables)

    def _action(self, data: Json) -> Action:
        match data:
            case {"name": str(name), **rest}:
                args = rest.get("args", [])
                if isinstance(args, Sequence) and not isinstance(args, str):
                    return _known(Action(name, tuple(map(from_itf, args))), self._known)
        raise DataError('the action is not of the form {"name": ..., "args": [...]}')


def _known(action: Action, known: frozenset[str]) -> Action:
    if str(action) in known:
        return action
    if any(action.name == other.partition("(")[0] for other in known):
        raise DataError(f"the spec has no action {action}: it has others called {action.name}")
    raise DataError(f"the spec has no action {action.name}")


def _read_itf(path: Path, identity: Identity, known: frozenset[str]) -> _Reading:
    """One ITF file is one trace."""
    reading = _Reading(path.name, str(path), 1)
    try:
        trace = load_trace(path.read_text(encoding="utf-8"))
        unknown = [name for name in trace.variables if name not in identity.variables]
        if unknown or not trace.states:
            raise DataError(f"the spec has no variable {unknown[0]}" if unknown else "no state")
        positions = [
            trace.variables.index(name) if name in trace.variables else None
            for name in identity.variables
        ]
        for number, state in enumerate(trace.states):
            if number:
                action = trace.actions[number - 1]
                if action is None:
                    raise DataError(f'state {number} does not say its action (#meta "action")')
                reading.actions.append(_known(action, known))
            reading.states.append(tuple(None if p is None else state[p] for p in positions))
    except (DataError, UnicodeDecodeError) as error:
        reading.problem = Problem(reading.name, str(path), 1, str(error))
    return reading


def _trace(number: int, reading: _Reading, spec: Completer | None) -> tuple[Trace, int]:
    """The trace, and how many last states the observations leave possible."""
    states = tuple(reading.states)
    actions = reading.actions[: max(len(states) - 1, 0)]
    problem = str(reading.problem) if reading.problem else None
    end, choices = End.IMPORTED, 1
    if states and spec is not None and not is_complete(states[0]):
        states, diverged, choices = complete_path(states, actions, spec)
        actions = actions[: len(states) - 1]
        if diverged:
            end, problem = (
                End.DIVERGED,
                f"no state of the spec has the observed values\n{problem or ''}",
            )
    steps = tuple(TraceStep(a, s) for a, s in zip(actions, states[1:], strict=True))
    source = f"{reading.file}:{reading.line} {reading.name}"
    initial = states[0] if states else ()
    return Trace(number, 0, initial, steps, end, problem and problem.rstrip(), source), choices


def complete_path(
    observed: Sequence[PartialState], actions: Sequence[Action], spec: Completer
) -> tuple[tuple[PartialState, ...], bool, int]:
    """A behaviour of the spec that shows the observations.

    Returns its states, whether the observations left the spec (then the last state is the
    first that it does not allow, as it was observed), and how many last states are possible.
    """
    first = tuple(state for state in spec.initial_states() if shows(state, observed[0]))
    if not first:
        return (observed[0],), True, 0
    path = [first]
    for partial, action in zip(observed[1:], actions, strict=True):
        after = dict.fromkeys(t for state in path[-1] for t in spec.successors(state, action))
        candidates = tuple(state for state in after if shows(state, partial))
        if not candidates:
            return (*_witness(path, actions, spec), partial), True, 0
        path.append(candidates)
    return _witness(path, actions, spec), False, len(path[-1])


def _witness(
    path: Sequence[tuple[State, ...]], actions: Sequence[Action], spec: Completer
) -> tuple[PartialState, ...]:
    states = [min(path[-1], key=fingerprint)]
    steps = list(zip(path[:-1], actions, strict=False))
    for candidates, action in reversed(steps):
        before = [s for s in candidates if states[-1] in spec.successors(s, action)]
        states.append(min(before, key=fingerprint))
    return tuple(reversed(states))


def values_of(variables: Sequence[str], state: PartialState) -> dict[str, Value]:
    """The observed variables of a state, by name."""
    pairs = zip(variables, state, strict=True)
    return {name: value for name, value in pairs if value is not None}
