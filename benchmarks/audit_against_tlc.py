"""Records a store, audits it, has TLC judge a sample of the same traces, and prints the ratio.

TLC gets all of the sample in one run (`kconform audit --referee`), with one worker. Its seconds
for a single trace are the start of its JVM and the reading of the spec.
Run: python benchmarks/audit_against_tlc.py [--traces N] [--sample N] [--store STORE]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from conformance.config import Settings
from conformance.events import Event, Finding
from conformance.spark.session import spark_session
from conformance.spark.workers import OnSpark
from conformance.stages.audit import audit
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.record import record
from conformance.stages.referee import referee
from conformance.stages.subject import open_subject


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="replication/bench/kip320-coarse-2b-4-epochs")
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--store", type=Path, help="audit this one, record none")
    options = parser.parse_args()
    context = Context(Settings(), emit=tell)
    with tempfile.TemporaryDirectory() as folder:
        path, listing = options.store or Path(folder) / "store", Path(folder) / "listing"
        with spark_session(options.master) as spark:
            if options.store is None:
                bench = workbench(context, one_model(options.model))
                record(
                    context,
                    bench,
                    OnSpark(spark),
                    path,
                    traces=options.traces,
                    length=options.length,
                )
            subject = open_subject(context, path)
            judged = audit(context, subject, OnSpark(spark), listing=listing)
        sampled = referee(context, subject, listing, traces=options.sample)
        single = referee(context, subject, listing, traces=1)
    audits = judged.seconds / judged.accounting.traces
    tlcs = sampled.tlc_seconds / sampled.traces
    running = (sampled.tlc_seconds - single.tlc_seconds) / (sampled.traces - single.traces)
    print(f"load                         {os.getloadavg()[0]:.1f}")
    print(f"audit                        {judged.verdict}, {judged.accounting.traces:,} traces")
    print(f"                             {judged.steps:,} steps, {judged.seconds:.1f} s")
    print(f"  distinct transitions       {judged.distinct_transitions:,}")
    print(
        f"  of it scan, formulas       {judged.scan_seconds:.1f} s, {judged.formula_seconds:.1f} s"
    )
    print(f"TLC                          {sampled.summary()}")
    print(f"                             {sampled.tlc_seconds:.1f} s, of a single trace")
    print(f"                             {single.tlc_seconds:.1f} s")
    print(f"audit, per trace             {audits * 1000:.3f} ms")
    print(f"TLC, per trace               {tlcs * 1000:.2f} ms, ratio {tlcs / audits:.1f}")
    print(f"  its start apart            {running * 1000:.2f} ms, ratio {running / audits:.1f}")


def tell(event: Event) -> None:
    """A finding has no place in a benchmark."""
    if isinstance(event, Finding):
        print(f"{event.title}: {event.message}")


if __name__ == "__main__":
    main()
