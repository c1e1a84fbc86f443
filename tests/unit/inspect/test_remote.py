"""Folders that are URIs: read like local ones; what goes wrong there is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as fs
import pytest

from conformance.errors import UserError
from conformance.inspect.reading import remote
from conformance.inspect.reading.inputs import Inputs, brokers_of
from conformance.inspect.reading.reader import read
from tests.segment_files import partition_folder, run_of, write_checkpoint, write_segment


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local folder in the place of the bucket `s3://bucket`."""
    bucket = tmp_path / "bucket"
    bucket.mkdir()
    system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(
        remote, "_filesystem", lambda root: (system, root.removeprefix("s3://").rstrip("/"))
    )
    return bucket


def test_a_bucket_is_read_like_a_folder(store: Path, tmp_path: Path) -> None:
    folder = partition_folder(store / "b1", "__t")
    write_segment(folder, run_of(90))
    write_segment(folder, [])
    write_checkpoint(store / "b1" / "replication-offset-checkpoint", "__t 0 90")
    local = read(Inputs(brokers_of([f"b1={store / 'b1'}"])), tmp_path / "local", ())
    far = read(Inputs(brokers_of(["b1=s3://bucket/b1/"])), tmp_path / "far", ())
    for table in ("batches", "checkpoints", "damage"):
        assert far.table(table).equals(local.table(table))
    assert far.table("files", ["path"]).equals(local.table("files", ["path"]))


def test_what_cannot_be_listed_is_the_users_to_mend(tmp_path: Path) -> None:
    inputs = Inputs(brokers_of(["b1=nowhere://bucket/b1"]))
    with pytest.raises(UserError, match="cannot be listed"):
        read(inputs, tmp_path / "out", ())


def test_a_file_uri_is_a_local_folder_with_all_that_is_refused_there(tmp_path: Path) -> None:
    assert brokers_of([f"b1=file://{tmp_path}/a%20b"]) == {"b1": (f"{tmp_path}/a b",)}
