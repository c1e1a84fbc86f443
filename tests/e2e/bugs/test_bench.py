"""The bench end to end on the smallest model: faults die, the clean copy lives."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from conformance.bugs import bench
from conformance.bugs.bench import BugEffort, by_oracles, environment, run_fault
from conformance.bugs.fault import BlindSpot, Catalogue, Fault, copied, load_catalogue, relocated
from conformance.bugs.worker import INTERRUPTED, BugJob
from conformance.resources import resource_root

pytestmark = pytest.mark.tlc

SMALL = "replication/bench/kip320-fine-2b"
BUILT_IN = "conformance/systems/replication/faults.toml"
GROUPS = "conformance/systems/group/faults.toml"
QUICK = BugEffort(traces=0, examples=5, timeout=300.0)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(resource_root() / BUILT_IN)


def the_fault(catalogue: Catalogue, fault_id: str) -> Fault:
    return next(fault for fault in catalogue.faults if fault.id == fault_id)


def test_the_clean_copy_survives_what_kills_a_faulty_one(catalogue: Catalogue) -> None:
    with copied() as folder:
        clean = by_oracles(BugJob((SMALL,), "replication", 1, 0, 5), folder, QUICK.timeout)
    faulty = run_fault(catalogue, the_fault(catalogue, "A41"), QUICK)

    assert (clean.killed, clean.note) == (False, "")
    assert clean.steps > 4_000
    assert (faulty.search.killed, faulty.search.oracle) == (True, "transition suite")
    assert faulty.search.counterexample_length == 2
    assert 'would take ShrinkIsr("b1", "b2"), which the spec does not enable' in "\n".join(
        faulty.search.story
    )


def test_a_fault_that_never_ends_is_killed() -> None:
    groups = load_catalogue(resource_root() / GROUPS)
    found = run_fault(groups, the_fault(groups, "E11"), QUICK).search

    assert (found.killed, found.oracle) == (True, "interrupted steps")
    assert found.counterexample_length == 10
    assert found.title.startswith('CompleteJoin("m1")')
    assert found.title.endswith(": no end")
    assert "the step has not ended" in found.story[-1]


def test_a_fault_that_shows_only_where_threads_meet_is_killed(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    fault, saved = the_fault(catalogue, "A11"), tmp_path / "a11.itf.json"
    with relocated(fault) as folder:
        job = BugJob(
            fault.models, "replication", 1, 0, 5, interleave_first=True, save_to=str(saved)
        )
        found = by_oracles(job, folder, QUICK.timeout)
        again = kconform(f"replay {saved}", folder)

    assert (found.killed, found.oracle, found.counterexample_length) == (True, INTERRUPTED, 8)
    assert found.story[-4].endswith('stopped at its interruption 2 for BecomeLeader("b1", 3)')
    assert found.story[-2].endswith('ProcessFetchResponse("b1") stood at: lock partition-map')
    assert "FAILED as before (8 steps)" in again
    assert "FIXED (8 steps)" in kconform(f"replay {saved}")


def kconform(command: str, folder: Path | None = None) -> str:
    """What a command prints, run against the implementation in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli", *command.split()],
        env=None if folder is None else environment(folder),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout


def test_a_worker_that_would_run_the_clean_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="impl comes from"):
        by_oracles(BugJob((SMALL,), "replication", 1, 0, 5), tmp_path, QUICK.timeout)


def test_nothing_waits_for_a_timer_that_was_interrupted_while_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C just then left a thread for which the process waited as long as a fault may take."""
    start = threading.Timer.start

    def interrupted(timer: threading.Timer) -> None:
        start(timer)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Timer, "start", interrupted)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        by_oracles(BugJob((SMALL,), "replication", 1, 0, 5), tmp_path, QUICK.timeout)
    assert all(thread.daemon for thread in set(threading.enumerate()) - before)


def test_tests_of_impl_run_against_the_faulty_copy(catalogue: Catalogue) -> None:
    fault = the_fault(catalogue, "M2")
    assert fault.unseen is not None
    other = "tests/unit/impl/fetcher/test_fetcher_rules.py::test_partitions_take_turns"
    blind = msgspec.structs.replace(fault, unseen=BlindSpot(fault.unseen.reason, (other,)))

    assert run_fault(catalogue, fault, QUICK).search.killed
    survived = run_fault(catalogue, blind, QUICK).search
    assert not survived.killed
    assert "1 passed" in survived.note


def test_the_command_tells_the_table_as_json() -> None:
    command = [sys.executable, "-m", "conformance.cli", "bugs", "A1", "--short", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    (row,) = json.loads(run.stdout)["bugs"]
    assert run.returncode == 0
    assert (row["bug"], row["jira"], row["killed"]) == ("A1", "KIP-101", True)
    assert (row["oracle"], row["counterexample_length"]) == ("transition suite", 2)
    assert row["traces"] >= 1
    assert row["steps"] >= 2
    assert row["seconds"] > 0
    assert row["reason"] == ""


def test_an_unknown_fault_is_the_users_mistake() -> None:
    command = [sys.executable, "-m", "conformance.cli", "bugs", "A99"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert run.returncode == 2
    assert "There is no fault A99" in run.stderr


def test_beyond_the_model_a_fault_is_found_saved_and_replayed(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    """Three brokers and six epochs, which no state graph holds; the file knows them too."""
    larger = ['Brokers={"b1", "b2", "b3"}', "Epochs=1..6", "Offsets=0..5", "AppendCounts=0..5"]
    options = [part for one in larger for part in ("--constant", one)]

    def kconform(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "conformance.cli", *arguments]
        run = subprocess.run(
            command,
            env=environment(folder),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return run.returncode, run.stdout + run.stderr

    with relocated(the_fault(catalogue, "A41")) as folder:
        code, told = kconform("explore", SMALL, *options, "--examples", "10")
        (saved,) = tmp_path.glob("kconform-out/divergences/*.itf.json")
        again, retold = kconform("replay", str(saved))
        hidden = json.loads(saved.read_text())["#meta"]["kconform"]["constants"]

    assert (code, again) == (1, 1)
    assert "would take ShrinkIsr" in told
    assert "FAILED as before" in retold
    assert hidden["Epochs"] == "1..6"
    assert any(tmp_path.glob("kconform-out/hypothesis/*/*/*"))


def test_a_worker_that_ends_amid_a_line_is_named_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The half of a line was decoded, and its error hid why the worker had ended."""
    script = "import sys; sys.stdin.read(); print('{\"type\":', end=''); sys.exit('no memory')"
    monkeypatch.setattr(bench, "_WORKER", ("-c", script))
    with pytest.raises(RuntimeError, match=r"ended with 1:\nno memory"):
        by_oracles(BugJob((SMALL,), "replication", 1, 0, 5), tmp_path, QUICK.timeout)
