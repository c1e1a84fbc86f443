"""What is recorded is what the implementation did, the same for a seed, and the audit judges it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from conformance.audit.engine import audit
from conformance.audit.explain import EvaluatedSpec
from conformance.errors import UserError
from conformance.events import ignore
from conformance.modelcheck.graph import Edges, StateGraph, StateTable, build_graph
from conformance.replay.record import RecordingPlan, RecordResult, record, recording
from conformance.spark.workers import OnSpark
from conformance.traces.model import TraceEnd
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict
from conformance.workers import Here
from tests.spark.audit import lock

pytestmark = [pytest.mark.spark, pytest.mark.tlc]


def graph(limit: int = 99) -> StateGraph:
    """The lock's state graph, without the states whose count is above the limit."""
    states, edges = lock.reachable()
    kept = [state for state in states if isinstance(state[1], int) and state[1] <= limit]
    number = {state: index for index, state in enumerate(kept)}
    inside = [(number[s], a, number[t]) for s, a, t in edges if s in number and t in number]
    columns = np.arange(len(kept), dtype=np.int32)[:, None].repeat(len(lock.VARIABLES), axis=1)
    table = StateTable(tuple(zip(*kept, strict=True)), columns)
    source, action, target = (np.array(column, np.int32) for column in zip(*inside, strict=True))
    return build_graph(lock.VARIABLES, table, [0], lock.ACTIONS, Edges(source, target, action))


def take(
    spark: SparkSession,
    path: Path,
    *,
    factory: str = "honest",
    model: StateGraph | None = None,
    seed: int = 1,
    traces: int = 300,
) -> RecordResult:
    plan = RecordingPlan(
        factory=f"tests.spark.audit.lock_system:{factory}",
        constants={"Limit": 3},
        traces=traces,
        length=6,
        seed=seed,
    )
    return record(OnSpark(spark), plan, lock.spec(), lock.IDENTITY, path, graph=model)


def test_other_processes_record_the_same_store(spark: SparkSession, tmp_path: Path) -> None:
    on_spark = take(spark, tmp_path / "a", model=graph())
    plan = RecordingPlan("tests.spark.audit.lock_system:honest", {"Limit": 3}, 300, 6, 1)
    with recording(plan, lock.spec(), lock.IDENTITY, tmp_path / "b", graph=graph()) as store:
        jobs = store.jobs(2)
        assert sorted(number for job in jobs for number in job.numbers) == [*store.files]
        for job in reversed(jobs):
            store.add(job.run(ignore).chunks)
        here = store.finish()
        assert not (tmp_path / "b").exists()
    assert here.manifest == on_spark.manifest
    assert here.distinct_transitions == on_spark.distinct_transitions
    assert [*TraceStore.open(tmp_path / "b").traces()] == [
        *TraceStore.open(tmp_path / "a").traces()
    ]


def test_a_recording_that_breaks_off_leaves_no_store(tmp_path: Path) -> None:
    plan = RecordingPlan("tests.spark.audit.lock_system:honest", {"Limit": 3}, 300, 6, 1)

    def break_off() -> None:
        with recording(plan, lock.spec(), lock.IDENTITY, tmp_path / "s", graph=graph()) as store:
            store.add(store.jobs(2)[0].run(ignore).chunks)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert list(tmp_path.iterdir()) == []


def test_an_honest_system_passes_and_its_ghosts_are_completed(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = take(spark, tmp_path / "s", model=graph())
    store = TraceStore.open(tmp_path / "s")
    assert store.manifest.counts.traces == 300
    assert result.manifest.content_hash == store.manifest.content_hash
    assert result.diverged == 0
    assert all(None not in state for trace in store.traces() for state in trace.states)
    judged = audit(Here(), store, lock.rules(), lock.evaluator(store), model=lock.model_table())
    assert judged.verdict is Verdict.PASS
    assert judged.distinct_transitions == result.distinct_transitions
    assert list(tmp_path.iterdir()) == [tmp_path / "s"]


def test_the_seed_decides_the_store_and_nothing_else_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = take(spark, tmp_path / "a", model=graph()).manifest.content_hash
    assert take(spark, tmp_path / "b", model=graph()).manifest.content_hash == first
    assert take(spark, tmp_path / "c", model=graph(), seed=2).manifest.content_hash != first


def test_a_divergence_is_recorded_as_it_was_seen_and_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = take(spark, tmp_path / "s", factory="forgetful", model=graph())
    store = TraceStore.open(tmp_path / "s")
    bad = [trace for trace in store.traces() if trace.end is TraceEnd.DIVERGED]
    assert len(bad) == result.diverged > 0
    assert bad[0].steps[-1].state == ("nobody", None, ())
    assert bad[0].problem is not None
    assert bad[0].problem.startswith("state not allowed: log\n")
    judged = audit(
        Here(), store, lock.rules(), lock.evaluator(store), spec=EvaluatedSpec(lock.spec())
    )
    assert judged.accounting.failed == result.diverged
    (finding,) = judged.findings
    assert finding.action == "Drop"
    assert [d.variable for d in finding.differences] == ["log"]


def test_a_walk_that_leaves_the_graph_goes_on_by_the_evaluator(
    spark: SparkSession, tmp_path: Path
) -> None:
    cut = take(spark, tmp_path / "s", model=graph(limit=1))
    bare = take(spark, tmp_path / "bare")
    assert cut.manifest.counts.states == bare.manifest.counts.states
    store = TraceStore.open(tmp_path / "s")
    judged = audit(Here(), store, lock.rules(), lock.evaluator(store))
    assert judged.accounting.failed == 0


@pytest.mark.parametrize("traces", [0, -1])
def test_nothing_to_record_is_a_mistake(spark: SparkSession, tmp_path: Path, traces: int) -> None:
    with pytest.raises(UserError, match="Nothing to record"):
        take(spark, tmp_path / "s", traces=traces)
    assert list(tmp_path.iterdir()) == []
