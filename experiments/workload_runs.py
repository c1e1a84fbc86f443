"""Makes workloads with faults on real brokers, judges each, and prints a table of them.

    python -m experiments.workload_runs --kafka 4.4.0 --runs 10 --seed 1 -o DIR

The runs of one call share the start of three brokers; each has topics, groups, clients and faults
of its own, which its seed draws. Results are kept in DIR/results.ndjson: a call with the same
folder adds the seeds that are missing, and prints the table of all. The history of a run that
passed is removed; one that did not stays, to be looked at.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from conformance.children import end_with_us
from conformance.errors import EnvironmentProblem
from conformance.history.declaration import declared_histories
from conformance.history.judgement import HistoryJudgement, judge_history
from conformance.history.reading import history_files
from conformance.history.rules import Answer, DeclaredConfiguration, HistoryFormulas
from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.jars import chosen_jars
from conformance.kafka.recording import ScenarioRun
from conformance.kafka.scenario import NODE_FAULTS, Faults, faults_plan
from conformance.kafka.schemas import Schemas
from conformance.kafka.tap import TapThread
from conformance.kafka.tapped import tapped
from conformance.verdict import Verdict
from conformance.workers import workers_for
from conformance.workload.plan import LIBRARIES

BROKERS = 3
RESULTS = "results.ndjson"
Row = dict[str, Any]


def made(cluster: Cluster, taps: TapThread, seed: int, options: Any) -> Row:
    """One workload with the faults of its seed; what is said of it."""
    source = random.Random(seed)
    libraries = source.sample(LIBRARIES, 2)
    folder = options.output / f"{cluster.jars.version}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    faults = Faults(list(NODE_FAULTS), every=options.seconds * 0.6, seconds=3.5)
    plan = faults_plan(BROKERS, seed, faults, options.seconds)
    command = [sys.executable, "-m", "conformance.cli", "workload", "--seed", str(seed)]
    command += ["--bootstrap", cluster.bootstrap, "-o", str(folder), "--crash-every", "4"]
    command += ["--seconds", str(options.seconds), "--clients", ",".join(libraries)]
    command += ["--consumers", str(source.choice((1, 2))), "--kafka", cluster.jars.version]
    command += ["--acks", options.acks, "--json"]
    run = ScenarioRun(plan, cluster, taps, {}, lambda _: None)
    with tempfile.TemporaryFile() as out, subprocess.Popen(command, stdout=out) as process:
        end_with_us(process)
        run.drive(lambda: process.poll() is None)
        code = process.wait()
    run.restore()
    row: Row = {"kafka": cluster.jars.version, "seed": seed, "clients": "+".join(libraries)}
    row |= {"faults": [fault for fault in run.done if "at" in fault and not fault["problem"]]}
    row |= {"code": code} | _judged(folder, code)
    if row["verdict"] == Verdict.PASS:
        shutil.rmtree(folder)
    return row


def _judged(folder: Path, code: int) -> Row:
    files = sorted(folder.glob("*.ndjson"))
    if not files:
        return {"verdict": "unmade", "why": [f"the workload ended with {code}"]}
    summary = json.loads((folder / "workload.json").read_text("utf-8"))
    verdicts: list[Verdict] = []
    why: list[str] = list(summary["problems"])
    operations: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    exercised: set[str] = set()
    for history in declared_histories(files, {}):
        judgement = judgement_of(history.files, _formulas(history.configuration))
        verdicts.append(judgement.verdict)
        why += [f"{history.name}: {line}" for line in _reasons(judgement)]
        operations |= Counter(judgement.history.operations)
        for tally in judgement.tallies.values():
            allowed[tally.rule.name] |= tally.answers[Answer.ALLOWED]
            exercised |= {tally.rule.name} if tally.exercised else set()
    verdict = max(verdicts, key=[Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL].index)
    if summary["problems"] and verdict is Verdict.PASS:
        verdict = Verdict.INCONCLUSIVE
    return {
        "verdict": str(verdict),
        "why": why,
        "killed": summary["killed"],
        "operations": dict(operations),
        "allowed": {name: count for name, count in allowed.items() if count},
        "exercised": sorted(exercised),
    }


@functools.cache
def _formulas(configuration: DeclaredConfiguration) -> HistoryFormulas:
    return HistoryFormulas.of(configuration)


def judgement_of(paths: Sequence[Path], formulas: HistoryFormulas) -> HistoryJudgement:
    """The judgement of some files, in this process."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        workers_for(0, 0, master=None, processes=1) as workers,
    ):
        return judge_history(history_files(paths), formulas, Path(scratch), workers)


def _reasons(judgement: HistoryJudgement) -> Iterator[str]:
    for tally in judgement.broken():
        case = tally.cases[Answer.BROKEN][0]
        yield f"{tally.answers[Answer.BROKEN]} x {tally.rule.name}: {case.facts[0].key}"
    yield from judgement.doubts()


def report(rows: Sequence[Row]) -> None:
    """The table, and the runs that did not pass."""
    print(
        "| Kafka | runs | faults | clients killed | operations | ok | failed | unknown "
        "| pass | inconclusive | fail |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for version in sorted({row["kafka"] for row in rows}):
        own = [row for row in rows if row["kafka"] == version]
        counts: Counter[str] = Counter(row["verdict"] for row in own)
        done: Counter[str] = Counter()
        for row in own:
            done.update(row.get("operations", {}))
        numbers = [
            len(own),
            sum(len(row["faults"]) for row in own),
            sum(row.get("killed", 0) for row in own),
            sum(done.values()),
            *(done[outcome] for outcome in ("ok", "fail", "unknown")),
            *(counts[str(v)] for v in (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)),
        ]
        print(f"| {version} | {' | '.join(f'{number:,}' for number in numbers)} |")
    _further(rows)


def _further(rows: Sequence[Row]) -> None:
    actions = Counter(fault["action"] for row in rows for fault in row["faults"])
    print(f"\nfaults: {_listed(actions)}")
    print(f"rules that applied, in runs: {_listed(Counter(_names(rows, 'exercised')))}")
    print(f"allowed, in runs: {_listed(Counter(_names(rows, 'allowed')))}")
    for row in rows:
        if row["verdict"] != Verdict.PASS:
            print(f"{row['kafka']} seed {row['seed']} ({row['clients']}): {row['verdict']}")
            for line in row["why"]:
                print(f"  {line}")


def _names(rows: Sequence[Row], field: str) -> Iterator[str]:
    for row in rows:
        yield from row.get(field, ())


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def main() -> None:
    """Make what is missing, and print the table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.4.0")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--acks", default="all", help="of plain producers")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    results = options.output / RESULTS
    rows = [json.loads(line) for line in _lines(results)]
    done = {(row["kafka"], row["seed"]) for row in rows}
    seeds = range(options.seed, options.seed + options.runs)
    missing = [seed for seed in seeds if (options.kafka, seed) not in done]
    if missing:
        rows += _all_made(missing, results, options)
    report(rows)


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines() if path.exists() else []


def _all_made(seeds: Sequence[int], results: Path, options: Any) -> list[Row]:
    jars = chosen_jars(options.kafka, None)
    schemas = Schemas.of(jars.classpath)
    ends, links = tapped(range(1, BROKERS + 1))
    rows = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="workload-runs-"))
        taps = stack.enter_context(TapThread(schemas, links, lambda _: None))
        settings = ClusterSettings(brokers=BROKERS)
        cluster = Cluster(jars, Path(folder), settings, schemas=schemas, endpoints=ends)
        stack.enter_context(cluster)
        for seed in seeds:
            began = time.monotonic()
            try:
                row = made(cluster, taps, seed, options)
            except EnvironmentProblem as problem:
                print(f"the brokers are not in order after seed {seed}: {problem}", file=sys.stderr)
                break
            rows.append({**row, "seconds": round(time.monotonic() - began, 1)})
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(f"seed {seed}: {row['verdict']}", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    main()
