"""Checks models: runs TLC, keeps what it found, and judges it by what was expected."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from conformance.errors import UserError
from conformance.events import Emit, Event, Progress, StageStarted, Work, ignore
from conformance.modelcheck import outcome as outcomes
from conformance.modelcheck.branches import BranchCounts, EdgeBranches, asked_edges
from conformance.modelcheck.broken import NOT_ASKED, broken_formulas
from conformance.modelcheck.cache import Cache, cache_dir
from conformance.modelcheck.dump import read_dump
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.graph_file import graph_from_bytes, graph_to_bytes
from conformance.modelcheck.labels import is_safety_property
from conformance.modelcheck.left_out import left_out, postconditions_for
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.outcome import EngineOutcome, read_outcome
from conformance.modelcheck.parser import Parser
from conformance.modelcheck.prepare import PreparedModel, bound, model_key, prepare, written
from conformance.modelcheck.reporting import STAGE, report
from conformance.modelcheck.result import CheckResult, judge
from conformance.modelcheck.tlc import (
    SHORT_RUN,
    OnProgress,
    Processes,
    TlcJob,
    TlcOptions,
    TlcResult,
    run_tlc,
)
from conformance.modelcheck.unchanged import known_idle_overrides
from conformance.modelcheck.warm import WarmJvms
from conformance.tla import Tools, ValueReader, find_tools
from conformance.verdict import Verdict, merge

_OUTCOME = "outcome"
"""The kind of cached answers of TLC. `check` was one without the formulas that read no variable."""

RunTlc = Callable[[TlcJob, OnProgress], TlcResult]
"""Runs TLC to its end."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How to check. `cold` ignores what the cache has (and replaces it)."""

    tlc: TlcOptions = field(default_factory=TlcOptions)
    jobs: int = 2
    cold: bool = False
    cache: Cache | None = None
    """None: the user's cache folder."""
    all_formulas: bool = False
    """After a violation go on: list every formula that the model breaks."""
    keep: Path | None = None
    """The folder for counterexamples, if they are kept."""
    names_idle: bool = True
    """Whether overrides that change nothing are looked for, and named."""
    tools: Tools | None = None
    """None: those that `find_tools` finds."""
    parser: Parser = field(default_factory=Parser)
    """Remembers the modules that it has parsed."""

    def __post_init__(self) -> None:
        if self.cold and not self.parser.cold:
            object.__setattr__(self, "parser", Parser(self.cache, cold=True))


def check(model: Model, options: CheckOptions | None = None, emit: Emit = ignore) -> CheckResult:
    """Check one model; see `check_models`."""
    return check_models([model], options, emit)[0]


def check_models(
    models: Sequence[Model], options: CheckOptions | None = None, emit: Emit = ignore
) -> list[CheckResult]:
    """Check the models, `options.jobs` JVMs side by side; results in the order of the models.

    Raises SpecError for a spec that does not parse and UserError for a model that does not fit
    it; an evaluation error of TLC is a result. An interrupt ends every JVM and leaves no file.
    """
    engine = _Engine(options or CheckOptions(), emit)
    engine.options.parser.announce(models)
    emit(StageStarted(STAGE, total=len(models)))
    with (
        Processes() as processes,
        engine.runner(processes, len(models)) as run,
        ThreadPoolExecutor(engine.options.jobs, thread_name_prefix=_SLOT) as pool,
    ):
        # The large ones first, so that no long run is left over for the end.
        order = sorted(range(len(models)), key=lambda i: _expected_work(models[i]), reverse=True)
        futures = {i: pool.submit(engine.check, models[i], run) for i in order}
        _await(list(futures.values()), processes)
    return [futures[i].result() for i in range(len(models))]


_SLOT = "TLC"


def _slot() -> str:
    """The slot that this thread of the pool is: `TLC 1` and so on, as many as there are jobs."""
    _, _, number = threading.current_thread().name.rpartition("_")
    return f"{_SLOT} {int(number) + 1}"


def _await(futures: Sequence[Future[CheckResult]], processes: Processes) -> None:
    """Wait for all; at the first error or an interrupt, end what runs and raise it."""
    try:
        pending = set(futures)
        while pending:
            # A limit, because a wait without one cannot be interrupted on every platform.
            done, pending = wait(pending, timeout=0.5, return_when="FIRST_COMPLETED")
            for future in done:
                future.result()
    except BaseException:
        for future in futures:
            future.cancel()
        processes.close()
        raise


def _expected_size(model: Model) -> int:
    return model.expect.distinct_states if model.expect else model.likely_states


def _expected_work(model: Model) -> tuple[int, int]:
    """More of it is more work. Of models that must fail only the counterexample's length is known:
    TLC stops there, the sooner the shorter it is."""
    expect = model.expect
    return _expected_size(model), expect.counterexample_length if expect else 0


def _is_short(model: Model) -> bool:
    """Whether TLC's run is known to be short: few states, or a violation early in a small model.

    TLC stops at a violation, so how many states it has seen by then is not stated. Models of the ci
    tier that must fail cost less without the optimizing compiler (benchmarks/short_runs.py).
    """
    if model.expect is not None and model.expect.result == "violated":
        return model.tier == "ci"
    return 0 < _expected_size(model) < SHORT_RUN


def state_graph(
    model: Model, options: CheckOptions | None = None, emit: Emit = ignore
) -> StateGraph:
    """The complete state graph of a model that holds, from the cache or from TLC.

    UserError for a model that is violated (TLC stops there, the graph would be a part), that is
    only simulated, or whose SYMMETRY or VIEW merges states.
    """
    return graph_and_spec(model, options, emit)[0]


def known_graph(model: Model, options: CheckOptions | None = None) -> StateGraph | None:
    """The graph if the cache has it; starts no JVM."""
    engine = _Engine(options or CheckOptions(), ignore)
    return None if engine.options.cold else engine.cached_graph(model_key(model, engine.tools))


def graph_and_spec(
    model: Model, options: CheckOptions | None = None, emit: Emit = ignore
) -> tuple[StateGraph, PreparedModel]:
    """As `state_graph`, together with the bound spec that the graph belongs to."""
    if model.check.symmetry or model.check.view:
        raise UserError(
            f"{model.origin}: SYMMETRY and VIEW merge states, so the state graph of the model "
            f"{model.name} is not that of the spec and feeds no suite. Take a model without them."
        )
    if model.check.simulation is not None:
        raise UserError(
            f"{model.origin}: the model {model.name} is simulated, not exhausted, and has no "
            "state graph. Take a model without `check.simulation`."
        )
    engine = _Engine(options or CheckOptions(), emit)
    prepared = prepare(model, engine.tools, engine.options.parser)
    if temporal := _temporal_properties(prepared):
        raise UserError(
            f"{model.origin}: the model {model.name} checks {', '.join(sorted(temporal))} of whole "
            "behaviours. TLC then names actions without their arguments, so its state graph feeds "
            "no suite. Take a model without such properties."
        )
    key = model_key(model, engine.tools)
    graph = None if engine.options.cold else engine.cached_graph(key)
    if graph is None:
        with Processes() as processes, engine.runner(processes, 1) as run:
            outcome, graph = engine.run(prepared, key, run, dump=True)
        if graph is None:
            raise UserError(_no_graph(model, outcome))
    return graph, prepared


def _temporal_properties(prepared: PreparedModel) -> frozenset[str]:
    """Properties of whole behaviours: where TLC checks one, the actions keep their own formulas."""
    names = prepared.model.check.properties
    return frozenset(name for name in names if not is_safety_property(prepared.module, name))


def edge_branches(
    prepared: PreparedModel,
    graph: StateGraph,
    visited: npt.NDArray[np.bool_],
    options: CheckOptions | None = None,
) -> EdgeBranches:
    """The disjuncts that the visited edges of the model's graph take, at least.

    From the cache, which gets them when every edge that has any was visited: asking the
    specification takes longer than driving some suites.
    """
    counts = BranchCounts(prepared.spec)
    return _Engine(options or CheckOptions(), ignore).edge_branches(
        prepared, graph, visited, counts
    )


def _no_graph(model: Model, outcome: EngineOutcome) -> str:
    reason = {
        "violated": f"TLC stops at a violation of {outcome.violated}",
        "timeout": "TLC did not finish in time",
    }.get(outcome.result, f"TLC ended with an error: {outcome.error}")
    return (
        f"The model {model.name} has no complete state graph: {reason}. Only a model that holds "
        "feeds a suite."
    )


class _Engine:
    """What the threads of one call share."""

    def __init__(self, options: CheckOptions, emit: Emit) -> None:
        self.options = options
        self.tools = options.tools or find_tools()
        self._cache = options.cache or Cache(cache_dir())
        self._emit = emit
        self._lock = threading.Lock()

    @contextmanager
    def runner(self, processes: Processes, models: int) -> Iterator[RunTlc]:
        """What runs TLC. Of several models the short ones share JVMs: see `modelcheck.warm`."""
        if models < 2:
            yield partial(self._run_alone, processes)
            return
        with closing(WarmJvms(self.tools, self.options.tlc, processes)) as warm:
            yield warm.run

    def _run_alone(self, processes: Processes, job: TlcJob, on_progress: OnProgress) -> TlcResult:
        return run_tlc(job, self.tools, self.options.tlc, processes, on_progress)

    def check(self, model: Model, run: RunTlc) -> CheckResult:
        """One model, from the cache or by TLC, judged and reported."""
        started = time.monotonic()
        self._tell(StageStarted(STAGE, model.name))
        outcome, cached = self._outcome(model, run)
        broken = NOT_ASKED
        if self.options.all_formulas:
            broken = broken_formulas(model, outcome, lambda rest: self._outcome(rest, run)[0])
        idle = self._idle_overrides(model, outcome) if outcome.is_answer else ()
        seconds = time.monotonic() - started
        result = judge(
            model,
            outcome,
            self.tools.jar_sha256,
            seconds,
            cached=cached,
            left_out=left_out(model, self.tools),
            broken=broken,
            idle_overrides=idle,
        )
        work = Work(_slot(), started, started + seconds)
        report(result, self._tell, self.options.keep, work)
        return result

    def _outcome(self, model: Model, run: RunTlc) -> tuple[EngineOutcome, bool]:
        """What TLC says of a model, and whether the cache had it."""
        key = model_key(model, self.tools)
        outcome = None if self.options.cold else self._cached_outcome(key)
        if outcome is not None:
            return outcome, True
        prepared = prepare(model, self.tools, self.options.parser)
        dump = model.feeds_suite and not _temporal_properties(prepared)
        return self.run(prepared, key, run, dump=dump)[0], False

    def _idle_overrides(self, model: Model, outcome: EngineOutcome) -> tuple[str, ...]:
        if not model.overrides or not self.options.names_idle:
            return ()
        return known_idle_overrides(
            None if self.options.cold else self._cache,
            model_key(model, self.tools),
            lambda: bound(model, self.tools, self.options.parser),
            outcome.counterexample,
            outcome.distinct_states or 0,
        )

    def run(
        self, prepared: PreparedModel, key: str, tlc: RunTlc, *, dump: bool
    ) -> tuple[EngineOutcome, StateGraph | None]:
        """Run TLC and cache what it found; with `dump` also the graph, if the model holds."""
        model = prepared.model
        text = prepared.generated.config + postconditions_for(model, self.tools)
        with (
            written(replace(prepared.generated, config=text)) as (module, config),
            tempfile.TemporaryDirectory(prefix="kconform-dump-") as folder,
        ):
            dot = Path(folder) / "graph.dot" if dump else None
            job = TlcJob(
                module,
                config,
                model.search,
                model.check.deadlock,
                dump=dot,
                short=_is_short(model),
                simulation=model.check.simulation,
            )

            def on_progress(generated: int, distinct: int) -> None:
                expected = _expected_size(model) or None
                message = f"{model.name}: {generated:,} states generated"
                self._tell(Progress(STAGE, distinct, expected, message))

            run = tlc(job, on_progress)
            outcome = read_outcome(run, model, prepared.generated, prepared.spec)
            graph = None
            if dot is not None and outcome.result == "holds":
                graph = self._read_graph(dot, prepared, outcome)
                self._cache.store("graph", key, graph_to_bytes(graph))
        if outcome.is_answer:
            self._cache.store(_OUTCOME, key, outcomes.encode(outcome))
        return outcome, graph

    def _read_graph(self, dot: Path, prepared: PreparedModel, outcome: EngineOutcome) -> StateGraph:
        graph = read_dump(
            dot,
            ValueReader(),
            prepared.generated.labels,
            variables=prepared.spec.variables,
            origin=f"the model {prepared.model.name}",
        )
        if len(graph.states) != outcome.distinct_states:
            raise AssertionError(
                f"{prepared.model.name}: the dump shows {len(graph.states)} states, TLC counted "
                f"{outcome.distinct_states}"
            )
        return graph

    def cached_graph(self, key: str) -> StateGraph | None:
        """The graph in the cache; one that cannot be read is discarded."""
        blob = self._cache.load("graph", key)
        if blob is None:
            return None
        try:
            return graph_from_bytes(blob)
        except (ValueError, KeyError, UserError):
            self._cache.discard("graph", key)
            return None

    def edge_branches(
        self,
        prepared: PreparedModel,
        graph: StateGraph,
        visited: npt.NDArray[np.bool_],
        counts: BranchCounts,
    ) -> EdgeBranches:
        """See the function of this name."""
        key = model_key(prepared.model, self.tools)
        places = counts.places(sorted({action.name for action in graph.actions}))
        blob = self._cache.load("branches", key)
        known = blob and EdgeBranches.from_bytes(blob, places, len(graph.source))
        if known:
            return known
        branches = EdgeBranches.of(counts, graph, visited)
        asked = asked_edges(counts, graph)
        if asked.any() and not (asked & ~visited).any():
            self._cache.store("branches", key, branches.to_bytes(places))
        return branches

    def _cached_outcome(self, key: str) -> EngineOutcome | None:
        blob = self._cache.load(_OUTCOME, key)
        return None if blob is None else outcomes.decode(blob)

    def _tell(self, event: Event) -> None:
        with self._lock:
            self._emit(event)


def verdict_of(results: Sequence[CheckResult]) -> Verdict:
    """The verdict of all together; of none, INCONCLUSIVE."""
    return merge(result.verdict for result in results)
