"""Folders in object stores and HDFS: listed and read by Arrow's file systems.

There is nothing to map there: a file is read as a whole, by the worker that needs it. Such stores
have no links and no special files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.fs as fs

from conformance.errors import UserError
from conformance.inspect.reading.folders import ListedFile, UnreadableFile


def is_remote(folder: str) -> bool:
    """Whether a broker's folder is a URI and no path."""
    return "://" in folder


def _filesystem(root: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI and the folder within it."""
    # Hadoop's names of the same store, as they are given to Spark.
    for scheme in ("s3a://", "s3n://"):
        if root.startswith(scheme):
            root = "s3://" + root.removeprefix(scheme)
    system, folder = fs.FileSystem.from_uri(root)
    return system, folder.rstrip("/")


def listed_remote(broker: str, root: str) -> Iterator[ListedFile]:
    """Every file below a folder, sorted by path. Raises UserError if it cannot be listed."""
    try:
        system, folder = _filesystem(root)
        infos = system.get_file_info(fs.FileSelector(folder, recursive=True))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UserError(
            f"{broker}={root} cannot be listed: {error}. Check the address and the access, or "
            "copy the folder to this machine."
        ) from error
    for info in sorted(infos, key=lambda info: info.path):
        if info.type == fs.FileType.File:
            mtime = (info.mtime_ns or 0) // 1_000_000
            yield ListedFile(broker, root, info.path[len(folder) + 1 :], info.size, mtime)


@contextmanager
def opened_remote(listed_file: ListedFile) -> Iterator[bytes]:
    """The file's bytes. Raises Refused, which tells why it was not read."""
    try:
        system, folder = _filesystem(listed_file.root)
        with system.open_input_file(f"{folder}/{listed_file.path}") as file:
            data: bytes = file.read()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UnreadableFile(f"cannot be read: {error}") from error
    if len(data) != listed_file.size:
        raise UnreadableFile(
            f"changed since it was listed: {listed_file.size} bytes, now {len(data)}"
        )
    yield data
