"""Records real clusters under seeded faults and judges every run (docs/kafka.md has the table).

    python benchmarks/recorded_runs.py --recordings 10 -o runs

One start of a cluster serves many runs: each partition of topic `t` is a run of the replication
protocol, each consumer group one of the group protocol. They share brokers, and so the faults of
nodes, which meet them in different roles and states; their records, elections, members and
clients' faults are their own. A run is judged by itself, with constants of its own.

A folder of recordings may be judged again without recording (`--judge-only`), as when a mapping or
the specification has changed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from conformance.kafka.jars import chosen_jars
from conformance.kafka.recording import record
from conformance.kafka.scenario import read_plan
from conformance.stages.context import Context
from conformance.stages.recorded import Written, judge_written, write_traces

VERSIONS = ("3.8.1", "4.4.0")
LIBRARIES = ("confluent-kafka", "kafka-python", "aiokafka", "java")
SECONDS = 40
NODE_FAULTS = (
    ("kill", "leader:t"),
    ("kill", "follower:t"),
    ("kill", "coordinator:g1"),
    ("isolate", "leader:t"),
    ("pause", "leader:t"),
    ("pause", "follower:t"),
    ("stop", "leader:t"),
    ("stop", "coordinator:g1"),
)

Table = Mapping[str, object]


def scenario(seed: int, partitions: int, groups: int) -> str:
    """A scenario's text: the same for the same seed."""
    source = random.Random(seed)
    tables: list[tuple[str, Table]] = [
        ("topic", {"name": "t", "partitions": partitions, "replicas": 3}),
        ("topic", {"name": "u", "partitions": 2, "replicas": 3}),
        ("client", _producer("p1", "1", "confluent-kafka", partitions * 0.5)),
        ("client", _producer("p2", "all", source.choice(LIBRARIES[:3]), partitions * 0.3)),
    ]
    for number in range(1, groups + 1):
        tables += _group(f"g{number}", source)
    # One fault of a node at a time: with two of three brokers gone no ISR is left to watch.
    for at in (8, 20, 31):
        action, node = source.choice(NODE_FAULTS)
        fault = {"at": at + source.random() * 2, "action": action, "node": node, "seconds": 4.5}
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
        member |= {"starts": round(source.random() * 6, 2)}
        if source.random() < 0.35:
            member["instance"] = f"{group}i{number}"
        yield "client", member
    victim = f"{group}m{source.choice((1, 2))}"
    at = 14 + source.random() * 12
    action = source.choice(("kill-client", "stop-client"))
    yield "fault", {"at": at, "action": action, "client": victim}
    if source.random() < 0.7:
        back = at + 1 + source.random() * 4
        yield "fault", {"at": back, "action": "start-client", "client": victim}


def _table(head: str, table: Table) -> str:
    # JSON's texts and numbers are TOML's.
    return "\n".join([head, *(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in table.items())])


def recorded(version: str, seed: int, options: argparse.Namespace) -> Path:
    """The folder of one recording, made if it is not there."""
    folder: Path = options.output / f"kafka-{version}-seed-{seed}"
    if folder.exists() or options.judge_only:
        return folder
    options.output.mkdir(parents=True, exist_ok=True)
    plan_path = options.output / f"{folder.name}.toml"
    plan_path.write_text(scenario(seed, options.partitions, options.groups), "utf-8")
    made = record(read_plan(plan_path, seed), chosen_jars(version, None), folder)
    print(f"{folder}: {made.messages} messages, {made.observations} observations", flush=True)
    return folder


def judged(version: str, folder: Path) -> Iterator[dict[str, object]]:
    """The verdict on each run of a recording."""
    context = Context()
    for one in write_traces(folder, folder / "traces"):
        if one.trace.name.startswith("u-"):
            continue  # nobody writes to it: nothing happens there but elections
        yield {"kafka": version, "recording": folder.name, **_verdict(context, one)}


def _verdict(context: Context, one: Written) -> dict[str, object]:
    last = judge_written(context, one).last
    assert last is not None
    return {
        "protocol": one.protocol,
        "run": one.trace.name,
        "verdict": str(last.verdict),
        "events": last.events,
        "explained": last.explained,
        "seconds": round(last.seconds, 2),
        "reason": "" if str(last.verdict) == "pass" else last.reason,
        "command": one.command,
        "actions": dict(last.actions),
    }


def report(rows: Sequence[Mapping[str, object]]) -> None:
    """The table of docs/kafka.md, and the reasons of what does not pass."""
    runs = Counter((row["protocol"], row["kafka"], row["verdict"]) for row in rows)
    print(
        "| protocol | Kafka | runs | events | pass | fail | inconclusive |\n"
        "|---|---|---|---|---|---|---|"
    )
    for protocol, version in sorted({(str(p), str(v)) for p, v, _ in runs}):
        own = [row for row in rows if (row["protocol"], row["kafka"]) == (protocol, version)]
        events = sum(int(str(row["events"])) for row in own)
        counts = [runs[protocol, version, verdict] for verdict in ("pass", "fail", "inconclusive")]
        cells = " | ".join(map(str, [protocol, version, len(own), f"{events:,}", *counts]))
        print(f"| {cells} |")
    for row in rows:
        if row["reason"]:
            print(f"{row['recording']} {row['run']}: {row['reason']}\n  {row['command']}")


def main() -> None:
    """Record what is not there yet, judge all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=10, help="of each version")
    parser.add_argument("--kafka", nargs="+", default=VERSIONS)
    parser.add_argument("--seed", type=int, default=1, help="of the first recording")
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--judge-only", action="store_true")
    parser.add_argument("--record-only", action="store_true")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for seed in range(options.seed, options.seed + options.recordings):
        for version in options.kafka:
            folder = recorded(version, seed, options)
            if not options.record_only and folder.exists():
                rows += judged(version, folder)
    if rows:
        path = options.output / f"verdicts-{os.getpid()}.json"
        path.write_text(json.dumps(rows, indent=1), "utf-8")
        report(rows)
        print(f"details: {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
