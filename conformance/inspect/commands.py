"""Commands that show the bytes: kafka-dump-log, and dd with xxd for what it does not read."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

_HEADER = 61
"""Bytes of a batch's header (magic 2)."""


def dump_log(path: str, *, offset: int | None = None) -> str:
    """Kafka's own tool on a segment, its lines around an offset."""
    command = f"kafka-dump-log.sh --files {shlex.quote(path)}"
    return command if offset is None else f"{command} | grep -A1 -B1 'baseOffset: {offset} '"


def raw_bytes(path: str, position: int) -> str:
    """The bytes of a batch's header."""
    skip = f"skip={position} count={_HEADER}"
    return f"dd if={shlex.quote(path)} bs=1 {skip} status=none | xxd"


def text_file(path: str) -> str:
    """A checkpoint."""
    return f"cat {shlex.quote(path)}"


def beside(folder: str, path: str) -> str:
    """A path below a broker's folder."""
    return str(PurePosixPath(folder) / path)
