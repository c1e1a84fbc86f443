"""Real brokers of two versions: a scenario is recorded, and what was seen fits together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import MARK, end_processes, needs_proc, processes
from tests.kafka_needed import VERSIONS, jars_or_skip

SCENARIO = """
brokers = 1
seconds = 8
[settings]
"num.io.threads" = "1"
[[topic]]
name = "t"
partitions = 2
[[client]]
name = "p1"
role = "producer"
topic = "t"
[[client]]
name = "m1"
role = "consumer"
library = "java"
topic = "t"
group = "g"
[[client]]
name = "m2"
role = "consumer"
topic = "t"
group = "g"
starts = 2
[[fault]]
at = 6
action = "stop-client"
client = "m2"
"""


def kconform(
    *arguments: str, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
        env=os.environ | (environ or {}),
    )


@pytest.fixture(scope="module", params=VERSIONS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.environ.get("KCONFORM_REQUIRE_KAFKA") != "1":
        pytest.importorskip("confluent_kafka", reason="the extra `clients` is not installed")
    jars_or_skip(request.param)
    folder = tmp_path_factory.mktemp("recording")
    (folder / "scenario.toml").write_text(SCENARIO, "utf-8")
    arguments = ["--scenario", str(folder / "scenario.toml"), "--kafka", request.param]
    environ = {MARK: f"cluster-{request.param}"}
    done = kconform("cluster", "record", *arguments, "-o", str(folder / "made"), environ=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 faults" not in done.stdout
    return folder / "made"


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@needs_proc
def test_nothing_that_was_started_stays(recording: Path) -> None:
    version = json.loads((recording / "recording.json").read_text("utf-8"))["kafka"]
    assert processes(f"cluster-{version}") == []


def test_the_tap_understood_everything(recording: Path) -> None:
    seen = [event for event in events(recording / "tap.ndjson") if "api" in event]
    assert {"Produce", "Fetch", "JoinGroup", "SyncGroup", "LeaveGroup", "BrokerHeartbeat"} <= {
        event["api"] for event in seen
    }
    # A client that is newer than the broker asks ApiVersions first in a version of its own.
    assert {event["api"] for event in seen if event["body"] is None} <= {"ApiVersions"}


def test_agent_and_tap_tell_the_same_story_of_the_group(recording: Path) -> None:
    """Every generation that a JoinGroup was answered with is one that the agent saw inside."""
    answered = {
        event["body"]["generationId"]
        for event in events(recording / "tap.ndjson")
        if event.get("api") == "JoinGroup"
        and event["direction"] == "response"
        and event["body"]["errorCode"] == 0
    }
    observed = [event for event in events(recording / "node1" / "agent.ndjson") if "group" in event]
    inside = {event["state"]["generation"] for event in observed if event["state"]}
    assert answered
    assert answered <= inside
    states = {event["state"]["state"] for event in observed if event["state"]}
    assert {"PreparingRebalance", "CompletingRebalance", "Stable"} <= states


def test_the_agent_saw_every_record_that_was_acknowledged(recording: Path) -> None:
    acknowledged: dict[int, int] = {}
    for event in events(recording / "clients" / "p1.ndjson"):
        if event["event"] == "acknowledged":
            acknowledged[event["partition"]] = max(
                acknowledged.get(event["partition"], 0), event["offset"]
            )
    assert acknowledged
    lines = events(recording / "node1" / "agent.ndjson")
    assert not [line for line in lines if "problem" in line]
    for partition, offset in acknowledged.items():
        states = [line["state"] for line in lines if line.get("partition") == f"t-{partition}"]
        last = states[-1]
        assert last["log"]["logEndOffset"] > offset
        assert last["log"]["highWatermark"] == last["log"]["logEndOffset"]
        assert {state["leader"] for state in states} == {1, -1}  # none after the shutdown


def test_the_manifest_says_how_it_was_made(recording: Path) -> None:
    manifest = json.loads((recording / "recording.json").read_text("utf-8"))
    assert manifest["seed"] == 1
    assert [fault["action"] for fault in manifest["faults"]] == ["stop-client"]
    assert (recording / "scenario.toml").read_text("utf-8") == SCENARIO
    assert (recording / "node1" / "data" / "meta.properties").is_file()


def test_a_folder_that_is_there_is_not_overwritten(recording: Path) -> None:
    again = kconform(
        "cluster", "record", "--scenario", str(recording / "scenario.toml"), "-o", str(recording)
    )
    assert again.returncode == 2
    assert "exists already" in again.stderr


@needs_proc
def test_an_interrupt_while_brokers_start_leaves_nothing(tmp_path: Path) -> None:
    jars_or_skip(VERSIONS[0])
    arguments = [sys.executable, "-m", "conformance.cli", "cluster", "run", str(tmp_path / "work")]
    with (
        subprocess.Popen(
            [*arguments, "--kafka", VERSIONS[0]],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {MARK: "interrupted"},
        ) as started,
        _ended("interrupted"),
    ):
        assert _starts_a_broker("interrupted", seconds=60)
        started.send_signal(signal.SIGTERM)
        _, words = started.communicate(timeout=60)
        assert processes("interrupted") == []
    assert started.returncode == 130
    assert "Nothing half-written was left" in words


def _starts_a_broker(mark: str, seconds: float) -> bool:
    """Whether a broker's process is seen in time. Others come and go before: Java is asked for its
    version."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if any("kafka.Kafka" in command for _, command in processes(mark)):
            return True
        time.sleep(0.05)
    return False


@contextmanager
def _ended(mark: str) -> Iterator[None]:
    """Nothing is left running afterwards, lest a test that fails wait for it for ever."""
    try:
        yield
    finally:
        end_processes(mark)


def test_a_recording_becomes_events_of_the_specification(recording: Path, tmp_path: Path) -> None:
    done = kconform("cluster", "traces", str(recording), "-o", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kconform judge" in done.stdout
    steps = [event["action"] for event in events(tmp_path / "group-g.ndjson")]
    names = [(step if isinstance(step, dict) else step[0])["name"] for step in steps]
    # Before the first request is handled the other consumer may have sent its own.
    assert names[0] == "SendJoinGroup"
    others = {"HandleJoinGroup", "ProcessJoinGroup", "LeaveGroup", "HandleLeaveGroup"}
    assert others <= set(names)
    assert "[constants]" in (tmp_path / "group-g.mapping.toml").read_text("utf-8")


SERIES = """
brokers = 1
seconds = 5
[settings]
"num.io.threads" = "1"
[[topic]]
name = "t"
[[client]]
name = "p1"
role = "producer"
topic = "t"
rate = 5
[[client]]
name = "m1"
role = "consumer"
topic = "t"
group = "g"
[random]
actions = ["elect"]
every = 2.0
seconds = 0
"""


def test_a_series_is_judged_run_by_run(tmp_path: Path) -> None:
    jars_or_skip(VERSIONS[-1])
    if os.environ.get("KCONFORM_REQUIRE_KAFKA") != "1":
        pytest.importorskip("confluent_kafka", reason="the extra `clients` is not installed")
    (tmp_path / "scenario.toml").write_text(SERIES, "utf-8")
    arguments = ["--scenario", str(tmp_path / "scenario.toml"), "--kafka", VERSIONS[-1]]
    made = tmp_path / "made"
    done = kconform("cluster", "record", *arguments, "--runs", "2", "--seed", "5", "-o", str(made))
    assert done.returncode == 0, done.stdout + done.stderr
    one = kconform("cluster", "judge", str(made / "r2"))
    assert one.returncode == 0, one.stdout + one.stderr
    everything = kconform("cluster", "traces", str(made), "-o", str(tmp_path / "traces"))
    assert everything.returncode == 0, everything.stdout + everything.stderr
    manifest = json.loads((made / "series.json").read_text("utf-8"))
    assert manifest["runs"] == {"r1": "", "r2": ""}
    told = [json.loads((made / run / "recording.json").read_text("utf-8")) for run in ("r1", "r2")]
    assert [one["seed"] for one in told] == [5, 6]
    assert [fault["topic"] for fault in told[1]["faults"]] == ["t-r2", "t-r2"]
    for run in ("r1", "r2"):
        traces = {path.name for path in (tmp_path / "traces" / run).glob("*.ndjson")}
        assert traces == {f"replication-t-{run}-0.ndjson", f"group-g-{run}.ndjson"}
        lines = events(made / run / "node1" / "agent.ndjson")
        assert {line.get("group", f"g-{run}") for line in lines} == {f"g-{run}"}
    assert not (made / "tap.ndjson").exists()
    assert (made / "node1" / "data" / "meta.properties").is_file()
