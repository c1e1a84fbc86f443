"""The disk's crash semantics, one table for the double in memory and for real files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from impl.disk import (
    Disk,
    MemoryDisk,
    Surviving,
    Unflushed,
    bytes_of,
    each,
    everything,
    first,
    nothing,
)
from impl.errors import KafkaStorageException
from impl.real_disk import DirectoryDisk, ShadowedDisk

CrashableDisk = MemoryDisk | ShadowedDisk
Write = Callable[[Disk], None]


@pytest.fixture(params=["memory", "directory"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> CrashableDisk:
    return MemoryDisk() if request.param == "memory" else ShadowedDisk(tmp_path)


def flushed(disk: Disk, path: str, content: bytes) -> None:
    file = disk.open(path)
    file.append(content)
    file.flush()
    disk.sync_directory(path.rpartition("/")[0])


def append(path: str, *contents: bytes) -> Write:
    def write(disk: Disk) -> None:
        file = disk.open(path)
        for content in contents:
            file.append(content)

    return write


def cut_and_append(disk: Disk) -> None:
    file = disk.open("d/a")
    file.truncate(2)
    file.append(b"XY")


def replace(disk: Disk) -> None:
    file = disk.open("d/a.tmp")
    file.append(b"new")
    file.flush()
    disk.rename("d/a.tmp", "d/a")


def flush_of_an_unlinked_name(disk: Disk) -> None:
    file = disk.open("d/b")
    file.append(b"1")
    file.flush()


def move_directory(disk: Disk) -> None:
    disk.rename("d", "e")


@pytest.mark.parametrize(
    ("write", "surviving", "expected"),
    [
        pytest.param(append("d/a", b"XY"), everything, {"d/a": b"oldXY"}, id="append-kept"),
        pytest.param(append("d/a", b"XY"), nothing, {"d/a": b"old"}, id="append-lost"),
        pytest.param(
            append("d/a", b"XY"), bytes_of({"d/a": 1}), {"d/a": b"oldX"}, id="append-torn"
        ),
        pytest.param(
            append("d/a", b"XY", b"Z"),
            bytes_of({"d/a": 1}),
            {"d/a": b"oldX"},
            id="nothing-after-torn",
        ),
        pytest.param(
            append("d/a", b"XY", b"Z"),
            bytes_of({"d/a": 3}),
            {"d/a": b"oldXYZ"},
            id="two-appends-kept",
        ),
        pytest.param(
            append("d/a", b"XY", b"Z"), first(1), {"d/a": b"oldXY"}, id="first-append-kept"
        ),
        pytest.param(
            append("d/a", b"XY", b"Z"),
            each(lambda operation: 1),
            {"d/a": b"oldX"},
            id="a-later-append-does-not-outlive-a-torn-one",
        ),
        pytest.param(
            cut_and_append,
            each(lambda operation: operation.size if operation.kind == "append" else 0),
            {"d/a": b"old"},
            id="an-append-does-not-outlive-a-lost-truncation",
        ),
        pytest.param(cut_and_append, nothing, {"d/a": b"old"}, id="truncation-lost"),
        pytest.param(cut_and_append, first(1), {"d/a": b"ol"}, id="truncation-kept-append-lost"),
        pytest.param(cut_and_append, everything, {"d/a": b"olXY"}, id="truncation-and-append-kept"),
        pytest.param(replace, nothing, {"d/a": b"old"}, id="replacement-lost"),
        pytest.param(replace, first(1), {"d/a": b"old", "d/a.tmp": b"new"}, id="rename-lost"),
        pytest.param(replace, everything, {"d/a": b"new"}, id="replacement-kept"),
        pytest.param(
            replace,
            each(lambda operation: int(operation.kind == "rename")),
            {"d/a": b"new"},
            id="rename-kept-without-the-making-of-its-source",
        ),
        pytest.param(
            flush_of_an_unlinked_name, nothing, {"d/a": b"old"}, id="flushed-file-without-its-name"
        ),
        pytest.param(
            flush_of_an_unlinked_name, first(1), {"d/a": b"old", "d/b": b"1"}, id="name-kept"
        ),
        pytest.param(lambda disk: disk.remove("d/a"), nothing, {"d/a": b"old"}, id="removal-lost"),
        pytest.param(lambda disk: disk.remove("d/a"), everything, {}, id="removal-kept"),
        pytest.param(move_directory, nothing, {"d/a": b"old"}, id="directory-move-lost"),
        pytest.param(move_directory, everything, {"e/a": b"old"}, id="directory-move-kept"),
    ],
)
def test_crash(
    disk: CrashableDisk, write: Write, surviving: Surviving, expected: dict[str, bytes]
) -> None:
    flushed(disk, "d/a", b"old")

    write(disk)
    disk.crash(surviving)

    assert disk.contents() == expected
    assert disk.unflushed() == ()


def test_what_is_flushed_survives_any_crash(disk: CrashableDisk) -> None:
    flushed(disk, "d/a", b"old")
    replace(disk)
    disk.sync_directory("d")
    file = disk.open("d/a")
    file.append(b"er")
    file.truncate(4)
    file.flush()

    disk.crash(nothing)

    assert disk.contents() == {"d/a": b"newe"}


def test_sync_of_another_directory_makes_nothing_durable(disk: CrashableDisk) -> None:
    append("d/a", b"1")(disk)
    disk.sync_directory("e")

    disk.crash(nothing)

    assert disk.contents() == {}


def test_unflushed_names_every_operation_in_order(disk: CrashableDisk) -> None:
    append("d/a", b"XY")(disk)
    disk.open("d/a").truncate(1)
    disk.rename("d/a", "d/b")
    disk.remove("d/b")

    assert disk.unflushed() == (
        Unflushed("create", "d/a"),
        Unflushed("append", "d/a", 2),
        Unflushed("truncate", "d/a", 1),
        Unflushed("rename", "d/a", target="d/b"),
        Unflushed("remove", "d/b"),
    )


def test_a_disk_works_on_after_a_crash(disk: CrashableDisk) -> None:
    flushed(disk, "d/a", b"old")
    append("d/a", b"lost")(disk)
    disk.crash(nothing)

    flushed(disk, "d/a", b"+")
    disk.crash(nothing)

    assert disk.contents() == {"d/a": b"old+"}


@pytest.mark.parametrize("make", ["memory", "shadowed", "directory"])
def test_files_and_names(make: str, tmp_path: Path) -> None:
    disk: Disk
    if make == "memory":
        disk = MemoryDisk()
    else:
        disk = ShadowedDisk(tmp_path) if make == "shadowed" else DirectoryDisk(tmp_path)
    file = disk.open("d/b")
    file.append(b"0123456789")
    disk.open("d/a").close()

    assert disk.names("d") == ["a", "b"]
    assert disk.names("") == ["d"]
    assert disk.names("absent") == []
    assert disk.exists("d")
    assert disk.exists("d/b")
    assert not disk.exists("d/c")
    assert file.read(2, 3) == b"234"
    assert file.read(8, 10) == b"89"
    file.truncate(20)
    assert file.size() == 10
    disk.rename("d/b", "e/c")
    file.append(b"!")
    file.flush()
    file.close()
    assert disk.open("e/c").size() == 11
    disk.remove("e")
    disk.remove("absent")
    assert disk.names("") == ["d"]
    with pytest.raises(KafkaStorageException):
        disk.rename("absent", "f")


def test_failures_of_the_operating_system_are_storage_exceptions(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(KafkaStorageException):
        DirectoryDisk(tmp_path).open("file/below")
