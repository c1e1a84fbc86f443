"""Writes files aside and renames them, so that a file is whole or absent; knows a full disk.

Whether a place can be written to is asked here too, before anything runs.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.errors import DataError, UserError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_folder(folder: Path) -> None:
    """UserError unless files can be written to this folder; it may still have to be made.

    Nothing is left behind: a run that fails makes no folder.
    """
    why = _obstacle(folder)
    if why:
        raise UserError(
            f"Nothing can be written to {folder} ({why}), so nothing was run. Give another folder, "
            "or make this one writable."
        )


def check_file(path: Path) -> None:
    """UserError unless a file of this name can be written; its folder may still have to be made."""
    why = "it is a folder" if path.is_dir() else _obstacle(path.parent)
    if why:
        raise UserError(
            f"{path} cannot be written ({why}), so nothing was run. Name another file, or make its "
            "folder writable."
        )


def _obstacle(folder: Path) -> str:
    """Why nothing can be written to this folder; empty if it can, or can be made."""
    try:
        places = (folder, *folder.absolute().parents)
        there = next(place for place in places if place.exists() or place.is_symlink())
        if not there.is_dir():
            return "it is a file" if there == folder else f"{there} is a file"
        with tempfile.TemporaryFile(dir=there):
            return ""
    except OSError as error:
        return error.strerror or str(error)


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A path to write to; renamed to `path` at the end, removed after an error.

    A link stays, and its target is written. A device or a pipe stays, too: it gets the bytes.
    Raises DataError when there is no space left.
    """
    is_special = path.exists() and not path.is_file() and not path.is_dir()
    target = path.resolve() if path.is_symlink() and not is_special else path
    folder = Path(tempfile.gettempdir()) if is_special else target.parent
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{target.name}.{os.getpid()}.tmp"
    try:
        with space_for(path):
            yield aside
            if is_special:
                path.write_bytes(aside.read_bytes())
            else:
                aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def space_for(path: Path) -> Iterator[None]:
    """Raise DataError that names `path` when the block finds no space left on the disk."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise no_space(path) from error
        raise


def tells_of_no_space(text: str) -> bool:
    """Whether an error of another process or language is about the disk being full."""
    return any(os.strerror(number) in text for number in _NO_SPACE)


def no_space(path: Path) -> DataError:
    """What is wrong and what to do."""
    return DataError(
        f"The disk that holds {path} is full (or the limit on file sizes is reached), and nothing "
        "was written there. Free some space, or name another place."
    )
