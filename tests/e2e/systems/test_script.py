"""Findings at a port as scripts of raw requests: red where a fault is planted, green elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.brokers import PROPERTIES
from conformance.bugs.fault import Fault, Patch, load_catalogue, relocated
from conformance.cli.main import app
from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.systems.kafka.factory import KafkaFactory
from tests.kafka_needed import jars_or_skip

ROOT = Path(__file__).resolve().parents[3]
SYSTEMS = ROOT / "conformance" / "systems"
KFAKE = ROOT / "docs" / "cards" / "kfake"
DELAY = 1_500


@contextmanager
def served(folder: Path = ROOT, delay: int = DELAY) -> Iterator[str]:
    """The address of the server of this folder's `impl`, in a process of its own."""
    command = [sys.executable, "-m", "impl.wire", "--port", "0", "--topic", "topic=2"]
    command += ["--initial-delay-ms", str(delay), "--min-session-ms", "10"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()
        assert process.wait(10) == 0


def run(script: Path, address: str) -> subprocess.CompletedProcess[str]:
    """In a folder where nothing of ours can be imported by chance."""
    command = [sys.executable, "-I", str(script), address]
    return subprocess.run(
        command, cwd=script.parent, capture_output=True, text=True, check=False, timeout=120
    )


def write(story: Path, script: Path) -> bool:
    """Whether a script can be written of the divergence."""
    command = ["story", str(story), "--script", "-o", str(script)]
    return CliRunner().invoke(app, command).exit_code == 0


def run_where_found(fault: Fault, replay: str, script: Path, delay: int = DELAY) -> tuple[int, int]:
    """Write the script of what a replay finds at a server with a fault; how it ends there and at a
    server without one."""
    with relocated(fault) as folder:
        with served(folder, delay) as address:
            replayed = CliRunner().invoke(app, replay.format(address=address).split())
        assert replayed.exit_code == 1, replayed.output
        assert any(write(story, script) for story in sorted(script.parent.rglob("*.itf.json")))
        with served(folder) as address:
            red = run(script, address)
    with served() as address:
        green = run(script, address)
    assert not red.returncode or "AssertionError" in red.stderr
    assert "conformance" not in script.read_text()
    return red.returncode, green.returncode


@pytest.mark.parametrize(
    ("protocol", "fault", "model"),
    [
        ("group", "D11", "group/static-restart-2m"),
        ("data", "Z1", "data/acks"),
        ("sessions", "Z14", "sessions/changes"),
        ("sessions", "Z16", "sessions/deletions"),
    ],
)
def test_a_script_is_red_at_the_fault_that_it_was_written_of_and_green_without(
    protocol: str, fault: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    faults = load_catalogue(SYSTEMS / protocol / "faults.toml").faults
    (wanted,) = (each for each in faults if each.id == fault)
    replay = f"replay {model} --system wire:{{address}}?initial-delay=150&groups=24"

    assert run_where_found(wanted, replay, tmp_path / "script.py", delay=150) == (1, 0)


def test_scripts_of_transactions_are_green_at_a_server_of_ours_and_red_where_a_commit_aborts(
    tmp_path: Path,
) -> None:
    """The stories are those of kfake, which departs elsewhere."""
    stories = sorted(KFAKE.glob("transaction-*.itf.json"))
    scripts = [tmp_path / f"{number}.py" for number, _ in enumerate(stories)]
    assert all(write(story, script) for story, script in zip(stories, scripts, strict=True))
    commits = [script for script in scripts if "(0, True)" in script.read_text()]
    faults = load_catalogue(SYSTEMS / "transaction" / "faults.toml").faults
    (aborts_commits,) = (each for each in faults if each.id == "Y17")

    with served() as address:
        green = [run(script, address) for script in scripts]
    with relocated(aborts_commits) as folder, served(folder) as address:
        red = [run(script, address) for script in commits]

    assert [each.returncode for each in green] == [0] * len(scripts), green
    assert commits
    assert [each.returncode for each in red] == [1] * len(commits), red
    assert all("AssertionError" in each.stderr for each in red)


def test_a_script_of_offsets_in_a_transaction_is_red_where_the_group_aborts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    aborts = Fault(
        id="aborts",
        jira="",
        title="the group coordinator aborts the offsets of a transaction that commits",
        tags=("seq",),
        patches=(
            Patch(
                file="wire/transactions.py",
                old="marker.producer_id, (partition.partition,), marker.is_commit\n",
                new="marker.producer_id, (partition.partition,), not marker.is_commit\n",
            ),
        ),
    )
    script, replay = tmp_path / "script.py", "replay transaction/port-v2-offsets"

    assert run_where_found(aborts, f"{replay} --system wire:{{address}}", script) == (1, 0)
    assert 'transactions.produce("q"' in script.read_text()


DATA_PATH = ("max-timestamp-deleted", "stable-below-start")
CONSUMER_GROUPS = (
    "commit-within-assignment-epoch",
    "empty-group-assigned",
    "epoch-kept-after-revocation",
    "first-epoch-two",
    "join-always-accepted",
    "own-revocation-released",
    "pending-revocation-described",
)


@pytest.mark.parametrize(
    ("release", "findings"),
    [
        ("4.4.0", (*DATA_PATH, *CONSUMER_GROUPS)),
        ("4.1.0", CONSUMER_GROUPS),
        ("3.9.1", DATA_PATH),
    ],
)
def test_a_finding_is_red_on_the_releases_that_have_it(
    release: str, findings: Sequence[str], tmp_path: Path
) -> None:
    jars = jars_or_skip(release)
    factory = KafkaFactory(release)
    table = {each.id: each for each in factory.deviations() if each.id in findings}
    scripts = {name: tmp_path / f"{name}.py" for name in findings}
    assert all(write(factory.file(table[name].path), script) for name, script in scripts.items())

    with Cluster(jars, tmp_path / "broker", ClusterSettings(properties=PROPERTIES)) as cluster:
        ended = {name: run(script, cluster.bootstrap) for name, script in scripts.items()}

    assert {name for name, each in ended.items() if each.returncode} == {
        name for name, deviation in table.items() if release in deviation.seen
    }
    assert all("AssertionError" in each.stderr for each in ended.values() if each.returncode)
