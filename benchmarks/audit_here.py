"""Seconds to record and to audit random walks in this process and on Spark, the results compared.

    python -m benchmarks.audit_here [--traces N] MODEL...

Each store is recorded both ways, and must have the same hash; each audit must give the same
verdict. This process works alone, Spark with as many workers as the machine has cores; its start is
told apart.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from conformance.audit.result import AuditResult
from conformance.modelcheck.manifest import find_models
from conformance.replay.parallel import begun
from conformance.spark.session import spark_session
from conformance.spark.workers import OnSpark
from conformance.stages.audit import audit
from conformance.stages.context import Context, Workbench, workbench
from conformance.stages.record import PendingStore, plan_of, record
from conformance.stages.subject import AuditedStore
from conformance.traces.store import TraceStore
from conformance.workers import Here

LENGTH = 20
"""Steps of a walk, as in the gate."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--traces", type=int, default=20_000)
    options = parser.parse_args()
    context = Context()
    print(f"{'':56}{'start':>8}{'record':>8}{'audit':>8}")
    for model in find_models(options.models):
        with tempfile.TemporaryDirectory() as folder:
            compare(context, workbench(context, model, None), options.traces, Path(folder))


def compare(context: Context, bench: Workbench, traces: int, folder: Path) -> None:
    """Print both ways' seconds; exit if they differ."""
    began = time.monotonic()
    plan = plan_of(context, bench, traces=traces, length=LENGTH)
    with ExitStack() as stack:
        underway = PendingStore(context, bench, folder / "here", plan, stack, overwrite=False)
        running = stack.enter_context(begun(underway.jobs(1), 1))
        for outcome in running.rest():
            underway.add(outcome.result, outcome.work)
    recorded = time.monotonic()
    here = audit(context, subject(bench, folder / "here"), Here())
    shown(f"{bench.model.name}, {here.steps:,} steps: here", began, began, recorded)
    began = time.monotonic()
    with spark_session(steps=traces * LENGTH) as spark:
        started = time.monotonic()
        record(context, bench, OnSpark(spark), folder / "spark", traces=traces, length=LENGTH)
        recorded = time.monotonic()
        there = audit(context, subject(bench, folder / "spark"), OnSpark(spark))
        shown("on Spark", began, started, recorded)
    if told(here, folder / "here") != told(there, folder / "spark"):
        sys.exit("the two differ")


def subject(bench: Workbench, path: Path) -> AuditedStore:
    return AuditedStore(TraceStore.open(path), bench.prepared, bench.graph)


def shown(what: str, began: float, started: float, recorded: float) -> None:
    """Seconds until the start, for the recording and for the audit, which ends now."""
    parts = started - began, recorded - started, time.monotonic() - recorded
    print(f"{what:56}" + "".join(f"{part:8.1f}" for part in parts), flush=True)


def told(result: AuditResult, path: Path) -> tuple[object, ...]:
    of = result.accounting
    store = TraceStore.open(path).manifest.content_hash
    return store, result.verdict, of, result.coverage.judged, result.coverage.branches


if __name__ == "__main__":
    main()
