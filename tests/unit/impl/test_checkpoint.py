"""Checkpoint files: grammar, and what a crash at any point of a replacement leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from impl.checkpoint import LeaderEpochCheckpointFile, OffsetCheckpointFile
from impl.disk import Disk, File, MemoryDisk, Surviving, each, everything, nothing
from impl.errors import KafkaStorageException
from impl.real_disk import ShadowedDisk
from impl.types import EpochEntry, TopicPartition

PATH = "logs/t-0/leader-epoch-checkpoint"
OLD = [EpochEntry(0, 0), EpochEntry(3, 57)]
NEW = [EpochEntry(0, 0), EpochEntry(3, 57), EpochEntry(4, 60)]


def checkpoint_with(content: bytes) -> LeaderEpochCheckpointFile:
    disk = MemoryDisk()
    disk.open(PATH).append(content)
    return LeaderEpochCheckpointFile(disk, "logs/t-0")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", [], id="empty-file"),
        pytest.param(b"0\n", [], id="version-without-count"),
        pytest.param(b"0\n0\n", [], id="no-entries"),
        pytest.param(b"0\n2\n0 0\n3 57\n", OLD, id="two-entries"),
        pytest.param(b"0\n2\n0 0\n3 57", OLD, id="no-newline-at-the-end"),
        pytest.param(b"0\n2\n0\t0\n3  57\n", OLD, id="tabs-and-blanks"),
    ],
)
def test_read(content: bytes, expected: list[EpochEntry]) -> None:
    assert checkpoint_with(content).read() == expected


def test_absent_file_has_no_entries() -> None:
    assert LeaderEpochCheckpointFile(MemoryDisk(), "logs/t-0").read() == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"x\n0\n", "Malformed line .* 'x'", id="version-is-no-number"),
        pytest.param(b"1\n0\n", "Unrecognized version .*: 1", id="unknown-version"),
        pytest.param(b"0\nx\n", "Malformed line .* 'x'", id="count-is-no-number"),
        pytest.param(b"0\n2\n0 0\n", "Expected 2 .* found only 1", id="too-few-entries"),
        pytest.param(b"0\n1\n0 0\n3 57\n", "Expected 1 .* found only 2", id="too-many-entries"),
        pytest.param(b"0\n1\n0\n", "Malformed line .* '0'", id="one-field"),
        pytest.param(b"0\n1\n0 0 0\n", "Malformed line .* '0 0 0'", id="three-fields"),
        pytest.param(b"0\n1\n0 x\n", "Malformed line .* '0 x'", id="offset-is-no-number"),
        pytest.param(b"0\n1\n0 1_0\n", "Malformed line .* '0 1_0'", id="python-number"),
        pytest.param(b"0\n1\n0 0\n\n", "Malformed line .* ''", id="blank-line-at-the-end"),
    ],
)
def test_every_deviation_is_an_error(content: bytes, message: str) -> None:
    with pytest.raises(KafkaStorageException, match=message):
        checkpoint_with(content).read()


def test_written_form() -> None:
    disk = MemoryDisk()

    LeaderEpochCheckpointFile(disk, "logs/t-0").write(OLD)
    OffsetCheckpointFile(disk, "logs", OffsetCheckpointFile.HIGH_WATERMARK).write(
        {TopicPartition("t", 0): 5}
    )

    assert disk.contents() == {
        PATH: b"0\n2\n0 0\n3 57\n",
        "logs/replication-offset-checkpoint": b"0\n1\nt 0 5\n",
    }


def test_offset_checkpoint_round_trip() -> None:
    offsets = {TopicPartition("a.b-c", 3): 7, TopicPartition("t", 0): 0}
    checkpoint = OffsetCheckpointFile(MemoryDisk(), "logs", OffsetCheckpointFile.RECOVERY_POINT)

    checkpoint.write(offsets)

    assert checkpoint.read() == offsets


class CrashingDisk:
    """Passes `steps` operations on to the disk, then the machine stops."""

    class Stopped(Exception):
        """The machine stopped."""

    def __init__(self, disk: MemoryDisk | ShadowedDisk, steps: int) -> None:
        self._disk = disk
        self._steps = steps

    def _step(self) -> None:
        if self._steps == 0:
            raise self.Stopped
        self._steps -= 1

    def open(self, path: str) -> CrashingFile:
        self._step()
        return CrashingFile(self._disk.open(path), self._step)

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def names(self, directory: str) -> list[str]:
        return self._disk.names(directory)

    def rename(self, source: str, target: str) -> None:
        self._step()
        self._disk.rename(source, target)

    def remove(self, path: str) -> None:
        self._step()
        self._disk.remove(path)

    def sync_directory(self, directory: str) -> None:
        self._step()
        self._disk.sync_directory(directory)


class CrashingFile:
    """A file of a `CrashingDisk`."""

    def __init__(self, file: File, step: Callable[[], None]) -> None:
        self._file = file
        self._step = step

    def size(self) -> int:
        return self._file.size()

    def read(self, position: int, size: int) -> bytes:
        return self._file.read(position, size)

    def append(self, data: bytes) -> None:
        self._step()
        self._file.append(data)

    def truncate(self, size: int) -> None:
        self._step()
        self._file.truncate(size)

    def flush(self) -> None:
        self._step()
        self._file.flush()

    def close(self) -> None:
        self._step()
        self._file.close()


STEPS = ["open", "truncate", "append", "flush", "close", "rename", "sync"]


torn = each(lambda op: op.size // 2 if op.kind == "append" else 1)
renamed_only = each(lambda op: int(op.kind == "rename"))
CRASHES = {"lost": nothing, "torn": torn, "renamed-only": renamed_only, "kept": everything}
crashes = pytest.mark.parametrize("surviving", CRASHES.values(), ids=CRASHES.keys())


@pytest.mark.parametrize("make", ["memory", "directory"])
@crashes
@pytest.mark.parametrize("steps", range(len(STEPS)), ids=[f"before-{step}" for step in STEPS])
def test_crash_at_any_point_of_a_replacement(
    make: str, surviving: Surviving, steps: int, tmp_path: Path
) -> None:
    disk = MemoryDisk() if make == "memory" else ShadowedDisk(tmp_path)
    LeaderEpochCheckpointFile(disk, "logs/t-0").write(OLD)

    with pytest.raises(CrashingDisk.Stopped):
        LeaderEpochCheckpointFile(CrashingDisk(disk, steps), "logs/t-0").write(NEW)
    disk.crash(surviving)

    recovered = LeaderEpochCheckpointFile(disk, "logs/t-0")
    assert recovered.read() in (OLD, NEW)
    recovered.write(NEW)
    assert recovered.read() == NEW


@crashes
def test_a_finished_replacement_survives(surviving: Surviving) -> None:
    disk = MemoryDisk()
    disk_as_given: Disk = disk
    LeaderEpochCheckpointFile(disk_as_given, "logs/t-0").write(OLD)
    LeaderEpochCheckpointFile(disk_as_given, "logs/t-0").write(NEW)

    disk.crash(surviving)

    assert LeaderEpochCheckpointFile(disk, "logs/t-0").read() == NEW
