"""Records real clusters under seeded faults and judges every run (docs/lab-notes has the tables).

    python -m experiments.recorded_runs --versions 3.8.1,4.4.0 --runs 10 --series 10 --seed 1 -o DIR

A run has topics, groups, clients and a fault schedule of its own, all drawn from its seed; the runs
of one series share the start of their brokers (docs/cluster.md). Each partition of topic `t` is a
trace of the replication protocol, each group one of the group protocol, and is judged by itself
with constants of its own.

Verdicts are kept beside the runs. A call records and judges what is not there yet, a series of each
version in turn, and prints the table of all that the folder has; made again, it goes on where it
was ended. With `--again` all are judged again, as when a mapping or the specification has changed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from conformance.errors import DataError
from conformance.kafka.jars import chosen_jars
from conformance.kafka.scenario import plan_of, run_of
from conformance.kafka.series import record_series
from conformance.stages.context import Context
from conformance.stages.recorded import (
    WrittenTrace,
    announce,
    judge_written,
    recordings,
    spoiled,
    write_traces,
)

LIBRARIES = ("confluent-kafka", "kafka-python", "aiokafka", "java")
SECONDS = 16
PARTITIONS, GROUPS = 2, 2
NODE_FAULTS = (
    ("kill", "leader:t"),
    ("kill", "follower:t"),
    ("kill", "coordinator:g1"),
    ("isolate", "leader:t"),
    ("isolate", "coordinator:g1"),
    ("pause", "leader:t"),
    ("pause", "follower:t"),
    ("pause", "coordinator:g1"),
    ("stop", "leader:t"),
    ("stop", "coordinator:g1"),
)
VERDICTS = "verdicts.json"

Table = Mapping[str, object]
Row = dict[str, Any]


def scenario(seed: int) -> str:
    """A run's scenario: the same text for the same seed."""
    source = random.Random(seed)
    tables: list[tuple[str, Table]] = [
        ("topic", {"name": "t", "partitions": PARTITIONS, "replicas": 3}),
        ("topic", {"name": "u", "partitions": 2, "replicas": 3}),
        ("client", _producer("p1", "1", "confluent-kafka", PARTITIONS * 1.2)),
        ("client", _producer("p2", "all", source.choice(LIBRARIES[:3]), PARTITIONS * 0.8)),
    ]
    for number in range(1, GROUPS + 1):
        tables += _group(f"g{number}", source)
    # One fault of a node at a time: with two of three brokers gone no ISR is left to watch.
    action, node = source.choice(NODE_FAULTS)
    fault = {"at": 4 + source.random() * 3, "action": action, "node": node, "seconds": 4.5}
    tables.append(("fault", fault))
    tables.append(("fault", {"at": SECONDS - 1.5, "action": "elect", "topic": "t"}))
    # One record per fetch and partition (a batch of one has about 70 bytes, two would have 140),
    # and one request handler: a fetch is read and counted with no other request in between.
    settings = {"replica.fetch.max.bytes": "100", "num.io.threads": "1"}
    head = [f"brokers = 3\nseconds = {SECONDS}", _table("[settings]", settings)]
    return "\n".join([*head, *(_table(f"[[{name}]]", table) for name, table in tables)])


def _producer(name: str, acks: str, library: str, rate: float) -> Table:
    named = {"name": name, "role": "producer", "topic": "t"}
    return {**named, "acks": acks, "library": library, "rate": rate}


def _group(group: str, source: random.Random) -> Iterator[tuple[str, Table]]:
    """Two members, of any two libraries, perhaps static; one of them fails or leaves."""
    for number in (1, 2):
        member: dict[str, object] = {"name": f"{group}m{number}", "role": "consumer", "topic": "u"}
        member |= {"library": source.choice(LIBRARIES), "group": group}
        member |= {"starts": round(source.random() * 3, 2)}
        if source.random() < 0.35:
            member["instance"] = f"{group}i{number}"
        yield "client", member
    victim = f"{group}m{source.choice((1, 2))}"
    at = 5 + source.random() * 6
    action = source.choice(("kill-client", "stop-client"))
    yield "fault", {"at": at, "action": action, "client": victim}
    if source.random() < 0.7:
        back = at + 1 + source.random() * 3
        yield "fault", {"at": back, "action": "start-client", "client": victim}


def _table(head: str, table: Table) -> str:
    # JSON's texts and numbers are TOML's.
    return "\n".join([head, *(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in table.items())])


def recorded(version: str, seed: int, runs: int, output: Path) -> Path:
    """The folder of a series, made if it is not there; run `rN` has the seed `seed + N - 1`."""
    folder = output / f"kafka-{version}-seed-{seed}"
    if not folder.exists():
        plans = [
            run_of(plan_of(scenario(own), own), number, own)
            for number, own in enumerate(range(seed, seed + runs), 1)
        ]
        made = record_series(plans, chosen_jars(version, None), folder)
        text = f"{folder}: {made.runs} runs, {made.observations} observations"
        print(text, file=sys.stderr, flush=True)
    return folder


def judged(version: str, series: Path, *, again: bool) -> None:
    """Judge the traces of a series that are not judged yet; keep the verdicts beside it."""
    context = Context()
    kept = series / VERDICTS
    rows: list[Row] = json.loads(kept.read_text("utf-8")) if kept.exists() and not again else []
    done = {row["run"] for row in rows}
    runs = [run for run in recordings(series) if f"{series.name}/{run.name}" not in done]
    traces = {run: _traces(run) for run in runs}
    announce(
        context,
        [trace for result in traces.values() if isinstance(result, list) for trace in result],
    )
    for run, trace in traces.items():
        row = {"kafka": version, "run": f"{series.name}/{run.name}"}
        if isinstance(trace, dict):
            rows.append({**row, **trace})
        else:
            rows += [{**row, **_verdict(context, trace)} for trace in trace]
        kept.write_text(json.dumps(rows, indent=1), "utf-8")


def _traces(run: Path) -> list[WrittenTrace] | Row:
    """The traces of one run; of one that is spoiled, or cannot be read, why."""
    if why := spoiled(run):
        return {"protocol": "", "verdict": "spoiled", "reason": why, "events": 0}
    try:
        written = write_traces(run, run / "traces")
    except DataError as error:
        return {"protocol": "", "verdict": "unread", "reason": str(error), "events": 0}
    # Nobody writes to topic u: nothing happens there.
    return [trace for trace in written if not trace.trace.name.startswith("u-")]


def _verdict(context: Context, trace: WrittenTrace) -> Row:
    began = time.monotonic()
    last = judge_written(context, trace).last
    assert last is not None
    return {
        "protocol": trace.protocol,
        "trace": trace.trace.name,
        "verdict": str(last.verdict),
        "events": last.events,
        "seconds": round(time.monotonic() - began, 2),
        "reason": "" if str(last.verdict) == "pass" else last.reason,
        "command": trace.command,
        "files": [str(trace.events), trace.trace.model, str(trace.mapping)],
    }


def report(rows: Sequence[Row]) -> None:
    """The table of docs/lab-notes, and the reasons of what does not pass."""
    print(
        "| protocol | Kafka | runs | traces | events | pass | fail | inconclusive |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for protocol, version in sorted({(r["protocol"], r["kafka"]) for r in rows if r["protocol"]}):
        own = [r for r in rows if (r["protocol"], r["kafka"]) == (protocol, version)]
        counts = Counter(r["verdict"] for r in own)
        numbers = [
            len({r["run"] for r in own}),
            len(own),
            sum(r["events"] for r in own),
            *(counts[verdict] for verdict in ("pass", "fail", "inconclusive")),
        ]
        print(f"| {protocol} | {version} | {' | '.join(f'{n:,}' for n in numbers)} |")
    _report_causes([r for r in rows if r["reason"]])


def _report_causes(rows: Sequence[Row]) -> None:
    """What does not pass, by what it stops at: the event's action without its arguments."""
    causes = Counter((r["protocol"], r["verdict"], _cause(r["reason"])) for r in rows)
    for (protocol, verdict, cause), count in causes.most_common():
        print(f"{count} x {protocol or 'run'} {verdict}: {cause}")
    for r in rows:
        print(f"{r['run']} {r.get('trace', '')}: {r['reason']}\n  {r.get('command', '')}")


def _cause(reason: str) -> str:
    return re.sub(r"\d+|\([^()]*\)|\"[^\"]*\"", "_", reason)


def main() -> None:
    """Record what is not there yet, judge it, print the table of all that is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", default="3.8.1,4.4.0")
    parser.add_argument("--runs", type=int, default=25, help="of each series")
    parser.add_argument("--series", type=int, default=1, help="of each version")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="after which no series is begun"
    )
    parser.add_argument("--record-only", action="store_true")
    parser.add_argument("--again", action="store_true", help="judge what was judged already, too")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    for number, version in product(range(options.series), options.versions.split(",")):
        if time.monotonic() > end:
            break
        first = options.seed + number * options.runs
        series = recorded(version, first, options.runs, options.output)
        if not options.record_only:
            judged(version, series, again=options.again)
    files = sorted(options.output.glob(f"*/{VERDICTS}"))
    report([row for file in files for row in json.loads(file.read_text("utf-8"))])


if __name__ == "__main__":
    main()
