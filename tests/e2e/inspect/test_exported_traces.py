"""Histories that an inspection exports, judged and imported as any other recording."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.inspect import traces
from conformance.inspect.abstraction import CacheEntry
from conformance.inspect.copies import Copies, Copy
from conformance.inspect.formulas import ReplicationFormulas
from conformance.inspect.history import Elections, Registration
from conformance.inspect.judgement import PartitionJudge, PartitionJudgement
from conformance.inspect.models import REPLICATION
from conformance.inspect.partitions import EpochRun, ReplicaLog
from conformance.inspect.subjects import InspectedPartition, ReplicaCopy
from conformance.modelcheck.specifications import Specifications
from conformance.tla import Fn, from_itf

NODES = (1, 2, 3)
COPIES = Copies({f"b{n}": Copy(f"b{n}", n, "c", frozenset({""}), 9, 5, 9) for n in NODES})


def registration(
    number: int, leader: int, epoch: int, isr: str, eligible: str = ""
) -> Registration:
    members, others = tuple(map(int, isr)), tuple(map(int, eligible))
    return Registration(number, number, leader, epoch, members, number, NODES, eligible=others)


HISTORY = (
    registration(0, 1, 4, "123"),
    registration(1, 2, 5, "23"),  # broker 1 is fenced
    registration(2, 2, 5, "123"),
    registration(3, 1, 6, "123"),  # the preferred leader
    registration(4, 1, 6, "13"),  # a follower that lags
    registration(5, 1, 6, "123"),
    registration(6, 1, 6, "13"),
)
OFFLINE = (
    registration(0, 1, 4, "123"),
    registration(1, 1, 4, "13"),
    registration(2, 1, 4, "1"),
    registration(3, -1, 5, "", "1"),  # nobody is left: KIP-966 keeps the last member eligible
    registration(4, 1, 6, "1"),
)


def judged(history: Sequence[Registration]) -> PartitionJudgement:
    """A partition of three equal logs."""
    log = ReplicaLog("", "", 0, 10, (EpochRun(0, 10, 4),), (), {}, 1)
    held = {
        name: ReplicaCopy(
            name, "", replace(log, broker=name), 0, 9, "orders-0", 10, 9,
            epoch_cache=(CacheEntry(4, 0),),
        )
        for name in COPIES.copies
    }  # fmt: skip
    elections = Elections("id", tuple(history), True)
    subject = InspectedPartition(("orders", 0), held, (), elections, (), (), False)
    formulas = ReplicationFormulas(Specifications()[REPLICATION])
    return PartitionJudge(COPIES, 9, formulas).judge(subject)


def kconform(command: str, folder: Path, name: str, *more: str) -> tuple[int, str]:
    stem = folder / name
    words = [
        command,
        f"{stem}.ndjson",
        "--model",
        traces.MODEL,
        "--mapping",
        f"{stem}.mapping.toml",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "conformance.cli", *words, *more],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_what_brokers_and_controllers_do_is_explained_and_kept(tmp_path: Path) -> None:
    traces.write([judged(HISTORY)], COPIES, tmp_path)
    store = tmp_path / "store"
    code, said = kconform("import", tmp_path, "orders-0.elections", "-o", str(store))
    assert code == 0, said
    assert "1 pass" in said
    assert (store / "manifest.json").is_file()
    code, said = kconform("judge", tmp_path, "orders-0", "--invariants-only")
    assert code == 0, said


def test_a_partition_without_leader_is_one_whose_brokers_are_gone(tmp_path: Path) -> None:
    traces.write([judged(OFFLINE)], COPIES, tmp_path)
    code, said = kconform("judge", tmp_path, "orders-0.elections")
    assert code == 0, said


WRONG = {
    "a leader from outside of the ISR, cleanly elected": (
        registration(1, 2, 5, "23"),
        registration(2, 1, 6, "23"),
    ),
    "an epoch that is left out": (registration(1, 2, 6, "23"),),
    "a member that was never in sync comes back at once, with another one": (
        registration(1, 2, 5, "2"),
        registration(2, 2, 5, "123"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_the_specification_does_not_have_is_not_explained(tmp_path: Path, name: str) -> None:
    traces.write([judged((HISTORY[0], *WRONG[name]))], COPIES, tmp_path)
    code, said = kconform("judge", tmp_path, "orders-0.elections")
    assert code == 1, said


def test_no_trace_where_the_specification_has_no_such_history() -> None:
    moved = replace(HISTORY[2], replicas=(1, 2, 4))
    assert traces.registrations(Elections("id", (*HISTORY[:2], moved), True), COPIES) == []
    assert traces.registrations(Elections("id", HISTORY[1:], False), COPIES) == []


def test_eligible_leaders_beyond_the_last_member_end_the_history() -> None:
    gone = (*HISTORY[:6], registration(6, 1, 6, "1", "3"), registration(7, -1, 7, "", "13"))
    found = traces.registrations(Elections("id", gone, True), COPIES)
    assert [one.partition_epoch for one, _ in found] == list(range(7))


def test_a_change_that_the_specification_does_not_see_is_no_event(tmp_path: Path) -> None:
    other = replace(HISTORY[1], offset=2, partition_epoch=2, eligible=(1,))
    history = (HISTORY[0], HISTORY[1], other, registration(3, 2, 5, "123"))
    traces.write([judged(history)], COPIES, tmp_path)
    lines = (tmp_path / "orders-0.elections.ndjson").read_text("utf-8").splitlines()
    seen = [from_itf(json.loads(one)["state"]["registration"]) for one in lines]
    assert [one["partitionEpoch"] for one in seen if isinstance(one, Fn)] == [0, 1, 2]
