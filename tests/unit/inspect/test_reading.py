"""Accounting, safety, filters and going on after a kill."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from conformance.errors import DataError, UserError
from conformance.inspect.evidence import MANIFEST, TABLES, Evidence
from conformance.inspect.reading import plan, reader
from conformance.inspect.reading.inputs import Filters, Inputs, brokers_of, moment
from conformance.inspect.reading.names import place_of
from conformance.inspect.reading.part import read_part
from conformance.inspect.reading.reader import read
from conformance.inspect.store import PartWriter
from tests.segment_files import Batch, partition_folder, run_of, write_checkpoint, write_segment


def accounts(evidence: Evidence) -> dict[str, tuple[str, str]]:
    return {row["path"]: (row["status"], row["reason"]) for row in evidence.rows("files")}


def inputs_of(*arguments: str, **options: Any) -> Inputs:
    return Inputs(brokers_of(arguments), **options)


@pytest.mark.parametrize(
    ("path", "kind", "directory", "topic", "partition", "state"),
    [
        ("t-0/00000000000000000000.log", "segment", "", "t", 0, ""),
        ("d1/a.b-c_d-12/00000000000000000007.index", "index", "d1", "a.b-c_d", 12, ""),
        (f"t-0.{'a' * 32}-delete/00000000000000000000.log", "segment", "", "t", 0, "delete"),
        (f"t-0.{'a' * 32}-future/00000000000000000000.log", "segment", "", "t", 0, "future"),
        (f"t-0.{'a' * 32}-stray/00000000000000000000.log", "segment", "", "t", 0, "stray"),
        ("t-0/00000000000000000000.log.deleted", "segment", "", "t", 0, "deleted"),
        ("t-0/00000000000000000000.index.cleaned", "index", "", "t", 0, "cleaned"),
        ("t-0/00000000000000000000.timeindex.swap", "timeindex", "", "t", 0, "swap"),
        ("t-0/00000000000000000009.snapshot", "producer-snapshot", "", "t", 0, ""),
        ("t-0/leader-epoch-checkpoint", "checkpoint", "", "t", 0, ""),
        ("d/replication-offset-checkpoint", "checkpoint", "d", None, None, ""),
        ("meta.properties", "identity", "", None, None, ""),
        (
            "__cluster_metadata-0/00000000000000000012-0000000003.checkpoint",
            "metadata-snapshot",
            "",
            "__cluster_metadata",
            0,
            "",
        ),
        ("t-0/leader-epoch-checkpoint.tmp", "other", "", "t", 0, ""),
        ("t-0/0.log", "other", "", "t", 0, ""),
        ("t-0/09199999999999999999.log", "segment", "", "t", 0, ""),
        ("t-0/09223372036854775808.log", "other", "", "t", 0, ""),
        ("t-0/99999999999999999999.snapshot", "other", "", "t", 0, ""),
        (
            "__cluster_metadata-0/00000000000000000012-9999999999.checkpoint",
            "other",
            "",
            "__cluster_metadata",
            0,
            "",
        ),
        ("../t-0x/00000000000000000000.log", "other", "../t-0x", None, None, ""),
    ],
)
def test_a_file_is_what_its_name_and_folder_say(
    path: str, kind: str, directory: str, topic: str | None, partition: int | None, state: str
) -> None:
    place = place_of(path)
    found = (place.kind, place.directory, place.topic, place.partition, place.state)
    assert found == (kind, directory, topic, partition, state)


def test_every_file_is_read_or_skipped_with_a_reason_or_in_error(tmp_path: Path) -> None:
    root = tmp_path / "b1"
    folder = partition_folder(root / "disk1", "t")
    write_segment(folder, run_of(3))
    (folder / "strange").write_text("?")
    (root / "disk1" / ".lock").touch()
    (root / "disk1" / "server.log").write_text("[]")
    write_checkpoint(root / "disk1" / "replication-offset-checkpoint", "t 0 3")
    (folder / f"{99:020d}.index").write_bytes(b"")
    evidence = read(inputs_of(f"b1={root}"), tmp_path / "out", ())
    found = accounts(evidence)
    listed = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert set(found) == listed
    assert {path for path, (status, _) in found.items() if status == "read"} == {
        "disk1/replication-offset-checkpoint",
        *(f"disk1/t-0/{0:020d}.{suffix}" for suffix in ("log", "index", "timeindex")),
    }
    assert all(reason for status, reason in found.values() if status == "skipped")
    assert evidence.manifest["rows"]["files"] == len(listed)


def test_several_directories_of_a_broker_are_told_apart(tmp_path: Path) -> None:
    for disk in ("one", "two"):
        write_segment(partition_folder(tmp_path / disk / "d", "t"), run_of(2))
    inputs = inputs_of(f"b1={tmp_path / 'one'}", f"b1={tmp_path / 'two'}")
    evidence = read(inputs, tmp_path / "out", ())
    assert evidence.table("batches").num_rows == 4
    assert evidence.brokers == ("b1",)


class TestSafety:
    def test_nothing_that_is_inspected_changes(self, tmp_path: Path) -> None:
        root = tmp_path / "b1"
        written = write_segment(partition_folder(root, "t"), run_of(5))
        before = {p: (p.stat(), p.read_bytes()) for p in root.rglob("*") if p.is_file()}
        folders = {p: p.stat().st_mtime_ns for p in (root, written.path.parent)}
        for path in before:
            path.chmod(0o444)
        read(inputs_of(f"b1={root}"), tmp_path / "out", ())
        after = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
        assert after == {path: data for path, (_, data) in before.items()}
        assert {p: p.stat().st_mtime_ns for p in folders} == folders

    def test_links_are_not_followed(self, tmp_path: Path) -> None:
        root, elsewhere = tmp_path / "b1", tmp_path / "elsewhere"
        written = write_segment(partition_folder(root, "t"), run_of(2))
        write_segment(partition_folder(elsewhere, "u"), run_of(2))
        (root / "t-0" / f"{5:020d}.log").symlink_to(elsewhere / "u-0" / f"{0:020d}.log")
        (root / "u-0").symlink_to(elsewhere / "u-0")
        (root / "t-1").symlink_to(written.path.parent)
        (root / "t-0" / f"{6:020d}.log").symlink_to("/proc/self/mem")
        evidence = read(inputs_of(f"b1={root}"), tmp_path / "out", ())
        found = accounts(evidence)
        assert evidence.table("batches").num_rows == 2
        assert found["u-0"][0] == found[f"t-0/{5:020d}.log"][0] == "error"
        assert "leads out" in found[f"t-0/{6:020d}.log"][1]
        assert found["t-1"] == ("skipped", "a link; its target is listed itself")

    def test_only_regular_files_are_opened(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = partition_folder(tmp_path / "b1", "t")
        # A socket's path may have 107 bytes.
        monkeypatch.chdir(folder)
        os.mkfifo(folder / f"{0:020d}.log")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{1:020d}.log")
            evidence = read(inputs_of(f"b1={tmp_path / 'b1'}"), tmp_path / "out", ())
        assert set(accounts(evidence).values()) == {("skipped", "no regular file")}

    def test_a_folder_that_becomes_a_link_is_not_entered(self, tmp_path: Path) -> None:
        """Between listing and reading somebody puts a link in the place of a folder."""
        root, out = tmp_path / "b1", tmp_path / "out"
        folder = partition_folder(root, "t")
        write_segment(folder, run_of(2))
        inputs = inputs_of(f"b1={root}")
        out.mkdir()
        list(plan.planned(inputs, plan.schemas_identity(()), out))
        folder.rename(tmp_path / "moved")
        folder.symlink_to(tmp_path / "moved")
        evidence = read(inputs, out, ())
        assert {status for status, _ in accounts(evidence).values()} == {"error"}
        assert evidence.table("batches").num_rows == 0

    def test_hostile_names_do_no_harm(self, tmp_path: Path) -> None:
        root = tmp_path / "b1"
        for name in (b"\xff\xfe-0", b"a\nb-0", b"<script>-0", b"..-0", b"\xe2\x80\xae-1"):
            folder = root / os.fsdecode(name)
            folder.mkdir(parents=True)
            (folder / f"{0:020d}.log").write_bytes(Batch(0).encoded())
        evidence = read(inputs_of(f"b1={root}"), tmp_path / "out", ())
        found = accounts(evidence)
        assert len(found) == 5
        assert f"\\xff\\xfe-0/{0:020d}.log" in found
        assert evidence.table("batches").column("topic").to_pylist() == [".."]


class TestGoingOn:
    @pytest.fixture(autouse=True)
    def small_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plan, "_PART_FILES", 3)

    @pytest.fixture
    def inputs(self, tmp_path: Path) -> Inputs:
        for number in range(6):
            write_segment(partition_folder(tmp_path / "b1", "t", number), run_of(4))
        return inputs_of(f"b1={tmp_path / 'b1'}")

    def test_a_killed_run_goes_on_and_counts_nothing_twice(
        self, inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = read(inputs, tmp_path / "whole", ())
        reads: list[int] = []

        def dies_at_third(job: Any, part: plan.ReadingPart) -> None:
            if len(reads) == 2:
                raise KeyboardInterrupt
            reads.append(part.number)
            read_part(job, part)

        monkeypatch.setattr(reader, "read_part", dies_at_third)
        with pytest.raises(KeyboardInterrupt):
            read(inputs, tmp_path / "out", ())
        with pytest.raises(DataError, match="not finished"):
            Evidence.open(tmp_path / "out")
        monkeypatch.setattr(
            reader, "read_part", lambda j, p: (reads.append(p.number), read_part(j, p))
        )
        evidence = read(inputs, tmp_path / "out", ())
        assert sorted(reads) == list(range(6))
        for table in TABLES:
            assert evidence.table(table).equals(whole.table(table)), table

    def test_a_part_that_was_being_written_leaves_nothing_behind(
        self, inputs: Inputs, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        out.mkdir()
        list(plan.planned(inputs, plan.schemas_identity(()), out))
        row = dict.fromkeys(TABLES["identities"].names, "x")
        with suppress(RuntimeError), PartWriter(out, 0) as writer:
            writer.row("identities", row)
            raise RuntimeError
        assert not [path for path in out.rglob("*") if "identities/" in str(path)]
        # A kill between two renames: rows of a part that does not count.
        writer = PartWriter(out, 1)
        writer.row("identities", row)
        for table in writer._tables.values():
            table.close()
            table.commit()
        assert read(inputs, out, ()).table("identities").num_rows == 0

    def test_another_reading_needs_another_output(self, inputs: Inputs, tmp_path: Path) -> None:
        read(inputs, tmp_path / "out", ())
        other = Inputs(inputs.brokers, filters=Filters(topics=frozenset({"t"})))
        with pytest.raises(UserError, match="filters differ"):
            read(other, tmp_path / "out", ())

    def test_a_file_that_changed_since_it_was_listed_is_in_error(
        self, inputs: Inputs, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        out.mkdir()
        list(plan.planned(inputs, plan.schemas_identity(()), out))
        log = tmp_path / "b1" / "t-2" / f"{0:020d}.log"
        log.write_bytes(log.read_bytes() * 2)
        found = accounts(read(inputs, out, ()))
        assert found[f"t-2/{0:020d}.log"][1].startswith("changed since it was listed")
        assert found[f"t-2/{0:020d}.index"] == ("error", "its segment could not be read")


def test_topics_and_partitions_that_were_not_asked_for_are_skipped(tmp_path: Path) -> None:
    root = tmp_path / "b1"
    for topic, number in (("t", 0), ("t", 1), ("u", 0)):
        write_segment(partition_folder(root, topic, number), run_of(2))
    write_checkpoint(root / "replication-offset-checkpoint", "t 0 1", "t 1 2", "u 0 1")
    filters = Filters(topics=frozenset({"t"}), partitions=frozenset({1}))
    evidence = read(inputs_of(f"b1={root}", filters=filters), tmp_path / "out", ())
    assert {(r["topic"], r["partition"]) for r in evidence.rows("batches")} == {("t", 1)}
    assert [r["offset"] for r in evidence.rows("checkpoints")] == [2]
    assert accounts(evidence)[f"u-0/{0:020d}.log"][0] == "skipped"


def producer_snapshot(*, version: int = 1, flip: bool = False) -> bytes:
    entry = struct.pack(">qhiqiqiq", 7, 1, 20, 100, 3, 5000, 2, 90)
    body = struct.pack(">i", 1) + entry
    return struct.pack(">hI", version, crc32c(body) ^ flip) + body


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (producer_snapshot(), None),
        (producer_snapshot(flip=True), "stored CRC"),
        (producer_snapshot(version=3), "version 3"),
        (producer_snapshot()[:-1], "stored CRC"),
        (b"\0", "1 bytes"),
    ],
)
def test_producer_snapshots(tmp_path: Path, data: bytes, detail: str | None) -> None:
    folder = partition_folder(tmp_path / "b1", "t")
    (folder / f"{101:020d}.snapshot").write_bytes(data)
    evidence = read(inputs_of(f"b1={tmp_path / 'b1'}"), tmp_path / "out", ())
    if detail is None:
        (row,) = evidence.rows("producers")
        assert (row["snapshot_offset"], row["producer_id"], row["last_offset"]) == (101, 7, 100)
        assert (row["epoch"], row["current_txn_first_offset"]) == (1, 90)
    else:
        (row,) = evidence.rows("damage")
        assert row["kind"] == "producer-snapshot"
        assert row["detail"].startswith(detail)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("0", []),
        ("0\n0\n", []),
        ("0\n2\n0 0\n3 57\n", [(0, 0), (3, 57)]),
        ("1\n0\n", "version '1', not 0"),
        ("0\n2\n0 0\n", "2 entries are announced, 1 are there"),
        ("0\n1\n0 0 0\n", "malformed line '0 0 0'"),
        ("0\n1\n0 x\n", "'x' is no number"),
        ("0\n1\n0 0\n\n", "1 entries are announced, 2 are there"),
        ("0\n1\n0 99999999999999999999\n", "99999999999999999999 is out of range"),
        ("\udcff", "no UTF-8: invalid start byte at byte 0"),
    ],
)
def test_checkpoints_are_read_as_kafka_reads_them(
    tmp_path: Path, text: str, expected: object
) -> None:
    path = partition_folder(tmp_path / "b1", "t") / "leader-epoch-checkpoint"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    evidence = read(inputs_of(f"b1={tmp_path / 'b1'}"), tmp_path / "out", ())
    entries = [(row["epoch"], row["offset"]) for row in evidence.rows("checkpoints")]
    damage = [row["detail"] for row in evidence.rows("damage")]
    assert (entries or damage or []) == ([expected] if isinstance(expected, str) else expected)


def test_epochs_that_do_not_grow_are_told(tmp_path: Path) -> None:
    folder = partition_folder(tmp_path / "b1", "t")
    write_checkpoint(folder / "leader-epoch-checkpoint", "0 0", "2 10", "1 20", "3 15")
    evidence = read(inputs_of(f"b1={tmp_path / 'b1'}"), tmp_path / "out", ())
    assert [(r["kind"], r["offset"]) for r in evidence.rows("damage")] == [
        ("epoch-order", 20),
        ("epoch-order", 15),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "names no broker's folder"),
        ([], "No broker's folder"),
        (["b1=/x", "b1=/x"], "given twice"),
    ],
)
def test_brokers_are_named_on_the_command_line(arguments: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        brokers_of(arguments)


@pytest.mark.parametrize(
    ("other", "output", "words"),
    [
        ("b2={root}/b1", "out", "would be read twice"),
        ("b2={root}/b1/t-0", "out", "would be read twice"),
        ("b1={root}/link", "out", "would be read twice"),
        ("b2={root}/b2", "b1/findings", "nothing is written into what is inspected"),
        ("b2={root}/b2", "link/t-0", "nothing is written into what is inspected"),
    ],
)
def test_no_file_is_read_twice_and_nothing_is_written_beside_it(
    tmp_path: Path, other: str, output: str, words: str
) -> None:
    write_segment(partition_folder(tmp_path / "b1", "t"), run_of(1))
    (tmp_path / "b2").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "b1")
    inputs = inputs_of(f"b1={tmp_path}/b1", other.format(root=tmp_path))
    with pytest.raises(UserError, match=words):
        read(inputs, tmp_path / output, ())
    assert len(list((tmp_path / "b1" / "t-0").iterdir())) == 3


def test_a_folder_that_is_none_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder"):
        read(inputs_of(f"b1={tmp_path / 'no'}"), tmp_path / "out", ())
    assert not (tmp_path / "out" / MANIFEST).exists()


def test_moments() -> None:
    assert moment("2024-05-04T10:11:12.345") == 1714817472345
    assert moment("2024-05-04T12:11:12.345+02:00") == moment("1714817472345")
    with pytest.raises(UserError, match="no time"):
        moment("yesterday")
