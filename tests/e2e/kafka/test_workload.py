"""Workloads of real clients on real brokers: made, judged, interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conformance.history.declaration import declared_histories
from conformance.history.judgement import judge_history
from conformance.history.lines import read_block
from conformance.history.reading import history_files
from conformance.history.rules import Answer, HistoryFormulas
from conformance.workers import Here
from tests.breadth import mostly_at_night
from tests.e2e.processes import MARK, end_processes, needs_proc, processes
from tests.kafka_needed import VERSIONS, jars_or_skip

MARKED = "workload"
ROOT = Path(__file__).resolve().parents[3]


def kconform(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "conformance.cli", *arguments]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(autouse=True)
def _needed(request: pytest.FixtureRequest) -> Iterator[None]:
    if os.environ.get("KCONFORM_REQUIRE_KAFKA") != "1":
        for module in ("confluent_kafka", "kafka", "aiokafka"):
            pytest.importorskip(module, reason="the extra `clients` is not installed")
    yield
    end_processes(MARKED)


@pytest.mark.parametrize("version", mostly_at_night(VERSIONS, each_time=VERSIONS[-1].__eq__))
def test_a_workload_with_faults_is_made_and_judged(version: str, tmp_path: Path) -> None:
    jars_or_skip(version)
    runs = tmp_path / "runs"
    workload = (
        f"kconform workload --bootstrap {{bootstrap}} --seconds 30 -o {runs} --judge "
        f"--seed 3 --crash-every 8 --kafka {version}"
    )
    faults = ["--faults", "pause", "--seed", "2", "--every", "10", "--kafka", version]
    done = subprocess.run(
        kconform("cluster", "run", str(tmp_path / "work"), *faults, "--command", workload),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, MARK: MARKED},
    )
    text = done.stdout + done.stderr
    unmarked = partitions_without_marker(tmp_path / "work")
    # A busy machine may not let a client end in time.
    assert done.returncode in ((0, 1, 3) if unmarked else (0, 3)), text
    assert re.search(r"pause of broker 1", text), text
    assert processes(MARKED) == []
    judged = list(runs.glob("findings/*/findings.json"))
    verdicts = {path.parent.name: json.loads(path.read_text("utf-8")) for path in judged}
    assert {"strict", "idempotence=false", "isolation=read-uncommitted"} <= set(verdicts)
    assert {each["verdict"] for each in verdicts.values()} <= {"pass", "fail", "inconclusive"}
    for operations in map(" ".join, broken(verdicts.values())):
        assert any(f" {partition} " in operations for partition in unmarked), operations
    asked = verdicts["strict"]["rules"]
    for rule in (
        "AcknowledgedIsKept",
        "PollIsContiguous",
        "OneRecordPerOffset",
        "RefusedIsNotAppended",
    ):
        assert asked[rule]["kept"] > 0, rule
    plans = [json.loads(path.read_text("utf-8"))["plan"] for path in runs.glob("clients/*.json")]
    assert {plan["library"] for plan in plans} == {
        "confluent-kafka",
        "kafka-python",
        "aiokafka",
        "java",
    }
    first = [plan for plan in plans if plan["process"].endswith(".1")]
    assert len(first) == 12
    for plan in first:
        assert lines(runs / f"{plan['process']}.ndjson")[0]["f"] == "configure"
    assert json.loads((runs / "workload.json").read_text("utf-8"))["killed"] > 0
    strict = declared_histories(sorted(runs.glob("*.ndjson")), {})[0]
    lost = passed_record(strict.files)
    lied = without(lost, runs, tmp_path / "lied")
    judgement = judge_history(
        history_files([lied / path.name for path in strict.files]),
        HistoryFormulas.of(strict.configuration),
        tmp_path,
        Here(),
    )
    (tally,) = [t for t in judgement.broken() if t.rule.name == "AcknowledgedIsKept"]
    assert [case.facts[0].value for case in tally.cases[Answer.BROKEN]] == [lost]


def broken(verdicts: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """The operations of each case in which a rule is broken."""
    for verdict in verdicts:
        for tally in verdict["rules"].values():
            yield from (c["operations"] for c in tally["cases"] if c["answer"] == "broken")


def partitions_without_marker(work: Path) -> set[str]:
    """The partitions of which a broker says that it left out a transaction's marker, since they had
    no leader (KAFKA-20734 in 4.3 and 4.4): what a paused broker finds when it goes on."""
    left_out = re.compile(r"Couldn't find leader endpoint for partitions Set\((.*?)\) while trying")
    logs = [path.read_text("utf-8") for path in work.glob("node*/server.log")]
    return {name for log in logs for names in left_out.findall(log) for name in names.split(", ")}


def passed_record(history: Iterable[Path]) -> str:
    """The value of an acknowledged record that one poll has between two others of its partition:
    whoever polled these has passed its place."""
    events = [line for path in history for line in lines(path) if line["type"] == "ok"]
    acknowledged = {
        line["sent"][0]["value"]
        for line in events
        if line["f"] == "send" and line["process"] == "idempotent-1.1"
    }
    return next(
        str(record["value"])
        for line in events
        for (before, record), (_, after) in pairwise(pairwise(line.get("polled", ())))
        if record["value"] in acknowledged and before["key"] == record["key"] == after["key"]
    )


def without(value: str, runs: Path, lied: Path) -> Path:
    """A copy of the histories in which nobody has read a record of this value; its folder."""
    lied.mkdir()
    for path in runs.glob("*.ndjson"):
        copy = lines(path)
        for line in copy:
            if "polled" in line:
                line["polled"] = [r for r in line["polled"] if r["value"] != value]
        (lied / path.name).write_text("".join(f"{json.dumps(line)}\n" for line in copy), "utf-8")
    return lied


def test_a_late_end_of_version_1_is_found_in_the_history_alone(tmp_path: Path) -> None:
    jars_or_skip("4.4.0")
    done = subprocess.run(
        [sys.executable, "-m", "experiments.late_end", "-o", str(tmp_path / "late")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, MARK: MARKED},
    )
    assert done.stdout.splitlines() == [
        "judged as transaction.version 2: fail",
        "  broken: AbortedIsNotRead, of second",
        "judged as transaction.version 1: pass",
        "  allowed: AbortedIsNotRead, of second",
    ], done.stderr


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("3.8.1", ["judged as transaction.version 1: pass"]),
        (
            "4.4.0",
            [
                "judged as transaction.version 1: fail",
                "  broken: AcknowledgedIsKept, of end-0, second",
            ],
        ),
    ],
)
def test_a_commit_without_a_leader_is_lost_from_4_3_on(
    version: str, said: list[str], tmp_path: Path
) -> None:
    jars_or_skip(version)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "experiments.leaderless_commit"),
            *("--kafka", version, "-o", str(tmp_path / "leaderless")),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, MARK: MARKED},
    )
    assert done.stdout.splitlines() == said, done.stderr


@needs_proc
def test_an_interrupt_leaves_files_that_can_be_read(tmp_path: Path) -> None:
    jars_or_skip("4.4.0")
    environ = {**os.environ, MARK: MARKED}
    broker = subprocess.Popen(
        kconform("cluster", "run", str(tmp_path / "work")),
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    )
    assert broker.stdout is not None
    try:
        said = next(line for line in broker.stdout if "bootstrap.servers=" in line)
        runs = tmp_path / "runs"
        libraries = ["--clients", "confluent-kafka,kafka-python,aiokafka"]
        address = said.split("bootstrap.servers=")[1].strip()
        made = subprocess.Popen(
            kconform("workload", "--bootstrap", address, "-o", str(runs), *libraries),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
            # A shell that runs tests in the background has them ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        until = time.monotonic() + 60
        while time.monotonic() < until and len(_sends(runs)) < 10:
            time.sleep(0.2)
        made.send_signal(signal.SIGINT)
        _, error = made.communicate(timeout=60)
        assert made.returncode == 130, error
        assert "Traceback" not in error
        assert len(_sends(runs)) >= 10
        for path in runs.glob("*.ndjson"):
            assert read_block(path.read_bytes(), 1, cut=False).bad == (), path.name
        left = [command for _, command in processes(MARKED) if "workload" in command]
        assert left == []
    finally:
        broker.send_signal(signal.SIGTERM)
        broker.wait(60)


def _sends(runs: Path) -> list[dict[str, Any]]:
    files = list(runs.glob("*.ndjson"))
    return [
        line for path in files for line in lines(path) if line["type"] == "ok" and "sent" in line
    ]
