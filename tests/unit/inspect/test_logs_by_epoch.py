"""Logs as runs of epochs: what a scan makes of batches, and what differs between replicas."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.inspect.evidence import Evidence
from conformance.inspect.partitions import (
    EpochRun,
    ReplicaLog,
    differing,
    read_blocks,
    read_logs,
    unequal_blocks,
)
from conformance.inspect.store import PartWriter

Batch = tuple[int, int, int, int]
"""Base offset, last offset, leader epoch, checksum."""


def scanned(
    tmp_path: Path, logs: dict[str, list[list[Batch]]]
) -> tuple[Evidence, list[ReplicaLog]]:
    """By broker the batches of each segment, whose base is that of its first batch."""
    with PartWriter(tmp_path, 0) as writer:
        for broker, segments in logs.items():
            for batches in segments:
                _write(writer, broker, batches)
    evidence = Evidence(tmp_path, {"brokers": sorted(logs)})
    return evidence, list(read_logs(evidence).logs()["t", 0])


def _write(writer: PartWriter, broker: str, batches: list[Batch]) -> None:
    for number, (base, last, epoch, crc) in enumerate(batches):
        writer.row(
            "batches",
            {
                "broker": broker, "directory": "", "topic": "t", "partition": 0, "state": "",
                "segment": f"t-0/{batches[0][0]:020}.log", "position": number * 100, "size": 100,
                "magic": 2, "base_offset": base, "last_offset": last, "leader_epoch": epoch,
                "stored_crc": crc, "crc_ok": True, "attributes": 0, "producer_id": -1,
                "producer_epoch": -1, "base_sequence": -1, "base_timestamp": 1,
                "max_timestamp": 1, "records": 1,
            },
        )  # fmt: skip


def test_neighbours_of_one_epoch_are_one_run_over_segments(tmp_path: Path) -> None:
    _, (log,) = scanned(
        tmp_path, {"b1": [[(0, 1, 0, 1), (2, 2, 0, 2)], [(3, 4, 0, 3), (5, 5, 2, 4)]]}
    )
    assert log.runs == (EpochRun(0, 5, 0), EpochRun(5, 6, 2))
    assert (log.start, log.end, log.batches, log.irregularities) == (0, 6, 4, ())


ODD = {
    "gap": [[(0, 1, 0, 1), (5, 6, 0, 2)]],
    "gap between segments": [[(0, 1, 0, 1)], [(5, 6, 0, 2)]],
    "overlap": [[(0, 3, 0, 1), (2, 4, 0, 2)]],
    "out-of-order": [[(5, 6, 0, 1), (0, 1, 0, 2)]],
}


@pytest.mark.parametrize("name", ODD)
def test_batches_that_do_not_follow_each_other_are_told(tmp_path: Path, name: str) -> None:
    _, (log,) = scanned(tmp_path, {"b1": ODD[name]})
    (one,) = log.irregularities
    assert one.kind == name.partition(" ")[0]


def differences(tmp_path: Path, theirs: list[Batch], above: int = 0) -> list[tuple[int, int]]:
    ours: list[Batch] = [(n, n, 0, n) for n in range(6)]
    evidence, logs = scanned(tmp_path, {"b1": [ours], "b2": [theirs]})
    cleaned = {"b1": above}
    blocks = unequal_blocks(logs, cleaned)
    found = []
    for _, places, checksums in read_blocks(evidence, {("t", 0): blocks} if blocks else {}):
        found += differing(places, checksums, cleaned)
    return [(one.offset, one.end) for one in found]


def test_equal_logs_have_equal_sums(tmp_path: Path) -> None:
    assert differences(tmp_path, [(n, n, 0, n) for n in range(6)]) == []


def test_a_log_that_is_behind_differs_in_nothing(tmp_path: Path) -> None:
    assert differences(tmp_path, [(n, n, 0, n) for n in range(3)]) == []


def test_other_contents_are_told_as_a_range(tmp_path: Path) -> None:
    theirs = [(n, n, 0, n + 100 * (n in (2, 3))) for n in range(6)]
    assert differences(tmp_path, theirs) == [(2, 4)]


def test_records_of_another_epoch_are_another_matter(tmp_path: Path) -> None:
    assert differences(tmp_path, [(n, n, int(n == 4), n) for n in range(6)]) == []


def test_below_a_cleaners_checkpoint_batches_are_its_own(tmp_path: Path) -> None:
    theirs = [(n, n, 0, n + 100 * (n in (1, 4))) for n in range(6)]
    assert differences(tmp_path, theirs, above=2) == [(4, 5)]
