"""Writes files aside and renames them, so that a file is whole or absent; knows a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.errors import DataError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; renamed to `path` at the end, removed after an error.

    Raises DataError when there is no space left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with space_for(path):
            yield aside
            aside.replace(path)
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
