"""Records what an implementation does along random walks: many on Spark, few in other processes.

Every trace's choices derive from the seed and the trace's number, files hold fixed ranges of
numbers, and states are written once and sorted: the store is the same whatever the number of
workers.
"""

from __future__ import annotations

import pickle
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from conformance import pickled
from conformance.compared import ComparedStates, total
from conformance.errors import UserError
from conformance.events import Emit, JsonValue, Progress, ignore
from conformance.modelcheck.graph import StateGraph, StateTable
from conformance.modelcheck.graph_file import graph_from_bytes, graph_to_bytes
from conformance.registry import make_system
from conformance.replay.oracle import GraphOracle, Oracle, SpecOracle
from conformance.replay.walker import Walk, Walker, trace_seed
from conformance.tla import Action, Fingerprinter, ModelConfig, Module, Spec, State, Value, bind
from conformance.traces.manifest import Identity, Manifest
from conformance.traces.model import PartialState, TraceEnd, state_fingerprint
from conformance.traces.rows import TraceRows
from conformance.traces.states import infer_columns
from conformance.traces.writer import (
    ChunkInfo,
    StoreWriter,
    open_writer,
    traces_per_file,
    write_chunk,
)
from conformance.workers import Workers

STAGE = "record"
_ROUNDS = 8
"""Into how many jobs the files are divided at most, to show progress between them."""


@dataclass(frozen=True, slots=True)
class RecordingPlan:
    """What to record: `traces` walks of at most `length` steps each."""

    factory: str
    """`module:function`, importable in every worker."""
    constants: Mapping[str, Value]
    traces: int
    length: int
    seed: int


@dataclass(frozen=True, slots=True)
class RecordResult:
    """A store that was recorded."""

    path: Path
    manifest: Manifest
    diverged: int
    distinct_transitions: int
    seconds: float

    def figures(self) -> dict[str, JsonValue]:
        """The recording's part of the JSON report; the audit says what passes."""
        counts = self.manifest.counts
        return {
            "traces": {
                "in": counts.traces,
                "pass": counts.traces - counts.problems,
                "fail": self.diverged,
                "inconclusive": counts.problems - self.diverged,
            },
            "steps": counts.steps,
            "distinct_states": counts.states,
            "distinct_transitions": self.distinct_transitions,
            "ends": dict(counts.ends),
            "content_hash": self.manifest.content_hash,
            "seconds": round(self.seconds, 3),
            "scan_seconds": 0.0,
            "findings": 0,
        }


def record(
    workers: Workers,
    plan: RecordingPlan,
    spec: Spec,
    identity: Identity,
    path: Path,
    *,
    graph: StateGraph | None = None,
    emit: Emit = ignore,
    replace: bool = False,
) -> RecordResult:
    """Record walks into a new store at `path`, which must be reachable by every worker.

    `graph` chooses the actions and is the fast oracle; the spec's evaluator decides where it
    does not reach. Without a graph the evaluator does all.
    """
    with recording(plan, spec, identity, path, graph=graph, replace=replace) as store:
        _run(workers, store, emit)
        return store.finish()


@contextmanager
def recording(
    plan: RecordingPlan,
    spec: Spec,
    identity: Identity,
    path: Path,
    *,
    graph: StateGraph | None = None,
    replace: bool = False,
) -> Iterator[StoreRecording]:
    """A store whose files any process may record; it appears at `path` when the block ends."""
    if plan.traces < 1 or plan.length < 1:
        raise UserError("Nothing to record: give at least one trace of at least one step.")
    reference = list(spec.initial_states())
    placeholder = infer_columns(spec.variables, reference)
    with open_writer(path, identity, placeholder, replace=replace) as writer:
        spill = writer.folder / "spill"
        spill.mkdir()
        _write_job(spill, _Job(plan, identity.parsed_actions(), spec.module, spec.config), graph)
        yield StoreRecording(path, plan, writer, spec.variables, graph)


class StoreRecording:
    """A store in the course of recording: pending files, recorded files, then the manifest."""

    def __init__(
        self,
        path: Path,
        plan: RecordingPlan,
        writer: StoreWriter,
        variables: tuple[str, ...],
        graph: StateGraph | None,
    ) -> None:
        self.path, self.traces = path, plan.traces
        # A cluster's workers have current folders of their own.
        self.folder = str(writer.folder.absolute())
        self.size = traces_per_file(plan.traces)
        """Traces in a file."""
        self.files = range(-(-plan.traces // self.size))
        self._writer, self._variables, self._graph = writer, variables, graph
        self._started = time.monotonic()

    def jobs(self, count: int) -> list[RecordJob]:
        """All files, divided among at most this many jobs."""
        shares = [tuple(self.files[first::count]) for first in range(count)]
        return [RecordJob(self.folder, self.size, share) for share in shares if share]

    def add(self, chunks: Iterable[ChunkInfo]) -> None:
        """Files that were recorded."""
        for chunk in chunks:
            self._writer.add_chunk(chunk)

    def finish(self) -> RecordResult:
        """Write the manifest, once all files are there."""
        writer, spill = self._writer, self._writer.folder / "spill"
        states = _distinct_states(spill, _union(spill, "seen"), self._graph)
        allowed = [state for state, known in states.values() if known]
        every = [state for state, _ in states.values()]
        writer.columns = infer_columns(self._variables, every, reference=allowed)
        writer.write_states(np.fromiter(states, np.int64, count=len(states)), every)
        transitions = _union(spill, "transitions")
        parts = (pickle.loads(path.read_bytes()) for path in spill.glob("compared-*.pickle"))
        writer.compared = dict(total(parts).states)
        shutil.rmtree(spill)
        manifest = writer.manifest()
        return RecordResult(
            self.path,
            manifest,
            manifest.counts.ends.get(TraceEnd.DIVERGED.value, 0),
            len(transitions),
            time.monotonic() - self._started,
        )


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """Files of the store that is being written in `folder`."""

    folder: str
    chunks: tuple[ChunkInfo, ...]


@dataclass(frozen=True, slots=True)
class RecordJob:
    """Some of a store's files, to be recorded by another process of this machine."""

    folder: str
    size: int
    numbers: tuple[int, ...]

    @property
    def weight(self) -> int:
        """Above that of any suite: whoever is to audit the store waits for it."""
        return 1_000_000_000 + self.size * len(self.numbers)

    def run(self, emit: Emit) -> StoreFiles:
        """Record them."""
        recorder, chunks = _recorder(self.folder), []
        for number in self.numbers:
            chunks.append(recorder.record(number, self.size, emit))
        return StoreFiles(self.folder, tuple(chunks))


@dataclass(frozen=True, slots=True)
class _Job:
    """A worker's inputs besides the graph."""

    plan: RecordingPlan
    actions: tuple[Action, ...]
    module: Module
    config: ModelConfig


def _write_job(spill: Path, job: _Job, graph: StateGraph | None) -> None:
    """Files, not closures: each worker process reads them once, not once per task."""
    (spill / "job.pickle").write_bytes(pickled.dumps(job))
    if graph is not None:
        (spill / "graph.npz").write_bytes(graph_to_bytes(graph))


def _run(workers: Workers, store: StoreRecording, emit: Emit) -> None:
    """Record every file, in a few rounds to show progress between them."""
    per_round = max(-(-len(store.files) // _ROUNDS), workers.tasks)
    done = 0
    for first in range(0, len(store.files), per_round):
        part = store.files[first : first + per_round]
        chunks = list(workers.map(partial(_record_file, store.folder, store.size), part))
        store.add(chunks)
        done += sum(chunk.entry.rows for chunk in chunks)
        emit(Progress(STAGE, done, store.traces))


def _record_file(folder: str, size: int, number: int) -> ChunkInfo:
    """A task on a worker: writes a file of the store and returns what it holds."""
    return _recorder(folder).record(number, size)


@lru_cache(maxsize=1)
def _recorder(folder: str) -> _WorkerRecorder:
    # A worker process serves many tasks, and building graph and system takes longer than one.
    return _WorkerRecorder(Path(folder))


class _WorkerRecorder:
    """The state that one worker process keeps between its tasks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        spill = folder / "spill"
        job: _Job = pickle.loads((spill / "job.pickle").read_bytes())
        self._plan = job.plan
        self._codes = {action: code for code, action in enumerate(job.actions)}
        spec = bind(job.module, job.config)
        self._variables = spec.variables
        blob = spill / "graph.npz"
        graph = graph_from_bytes(blob.read_bytes()) if blob.exists() else None
        self._graph = None if graph is None else GraphOracle(graph)
        self._prints: list[int] = [] if graph is None else graph.fingerprints.tolist()
        self._others: dict[PartialState, int] = {}
        self._fingerprint = Fingerprinter()
        system = make_system(job.plan.factory, job.plan.constants)
        self._walker = Walker(system, *_oracles(spec, self._graph))

    def record(self, number: int, size: int, emit: Emit = ignore) -> ChunkInfo:
        """Record the traces of one file; beside it, spill the states that the graph lacks.

        `emit` is told of each trace, and raises when nobody wants the file any more.
        """
        plan = self._plan
        rows, compared = TraceRows(), ComparedStates()
        fresh: dict[int, tuple[PartialState, bool]] = {}
        for trace_id in range(number * size, min((number + 1) * size, plan.traces)):
            emit(Progress(STAGE, trace_id, plan.traces))
            seed = trace_seed(plan.seed, trace_id)
            walk = self._walker.walk(seed, plan.length)
            compared += walk.compared
            prints = self._fingerprints(walk, fresh)
            codes = [self._codes[action] for action in walk.actions]
            rows.add(trace_id, seed, prints, codes, walk.end.value, walk.problem)
        spill = self._folder / "spill"
        (spill / f"states-{number:05d}.pickle").write_bytes(pickle.dumps(fresh))
        (spill / f"compared-{number:05d}.pickle").write_bytes(pickle.dumps(compared))
        np.save(spill / f"seen-{number:05d}.npy", rows.distinct_states())
        np.save(spill / f"transitions-{number:05d}.npy", rows.distinct_transitions())
        return write_chunk(self._folder, number, rows)

    def _fingerprints(self, walk: Walk, fresh: dict[int, tuple[PartialState, bool]]) -> list[int]:
        return [self._state_fingerprint(walk, state, fresh) for state in walk.states]

    def _state_fingerprint(
        self, walk: Walk, state: PartialState, fresh: dict[int, tuple[PartialState, bool]]
    ) -> int:
        """The graph knows its own; another state is kept. What diverged is not allowed."""
        number = None if self._graph is None else self._graph.number(state)
        if number is not None:
            return self._prints[number]
        value = self._other_fingerprint(state)
        allowed = walk.end is not TraceEnd.DIVERGED or state is not walk.states[-1]
        fresh[value] = (state, allowed)
        return value

    def _other_fingerprint(self, state: PartialState) -> int:
        value = self._others.get(state)
        if value is None:
            value = state_fingerprint(state, self._variables, self._fingerprint)
            self._others[state] = value
        return value


class _LayeredOracle:
    """The graph's oracle; where it ends (a CONSTRAINT cut it off), the evaluator's."""

    def __init__(self, graph: GraphOracle, wider: Oracle) -> None:
        self._graph = graph
        self._wider = wider

    @property
    def variables(self) -> tuple[str, ...]:
        return self._graph.variables

    def initial_states(self) -> Sequence[State]:
        return self._graph.initial_states()

    def successors(self, state: State, action: Action) -> Sequence[State]:
        return self._graph.successors(state, action) or self._known(
            self._wider.successors(state, action)
        )

    def enabled(self, state: State) -> Sequence[Action]:
        return self._graph.enabled(state) or self._wider.enabled(state)

    def _known(self, states: Sequence[State]) -> Sequence[State]:
        """The graph's own objects for those of the states that it has."""
        numbers = [self._graph.number(state) for state in states]
        return [
            state if number is None else self._graph.state(number)
            for state, number in zip(states, numbers, strict=True)
        ]


def _oracles(spec: Spec, graph: GraphOracle | None) -> tuple[Oracle, Oracle | None]:
    wider = SpecOracle(spec.variables, list(spec.initial_states()), spec.successors)
    return (wider, None) if graph is None else (_LayeredOracle(graph, wider), wider)


def _distinct_states(
    spill: Path, seen: npt.NDArray[np.int64], graph: StateGraph | None
) -> dict[int, tuple[PartialState, bool]]:
    """The states that were seen, by fingerprint, and whether the spec allows them."""
    states: dict[int, tuple[PartialState, bool]] = {}
    if graph is not None:
        rows = np.flatnonzero(np.isin(graph.fingerprints, seen))
        table = StateTable(graph.states.values, graph.states.columns[rows])
        prints = graph.fingerprints[rows].tolist()
        states.update((value, (state, True)) for value, state in zip(prints, table, strict=True))
    for path in sorted(spill.glob("states-*.pickle")):
        for value, (state, allowed) in pickle.loads(path.read_bytes()).items():
            before = states.get(value)
            states[value] = (state, allowed or (before is not None and before[1]))
    return dict(sorted(states.items()))


def _union(spill: Path, kind: str) -> npt.NDArray[np.int64]:
    """The distinct numbers of all the files of a kind, read one by one."""
    union = np.zeros(0, np.int64)
    for path in sorted(spill.glob(f"{kind}-*.npy")):
        union = np.union1d(union, np.load(path))
    return union
