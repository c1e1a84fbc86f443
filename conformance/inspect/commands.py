"""Commands that show the bytes: kafka-dump-log, and dd with xxd for what it does not read."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

from conformance.inspect.subjects import Held


def dump_log(path: str) -> str:
    """Kafka's own tool on a file."""
    return f"kafka-dump-log.sh --files {shlex.quote(path)}"


def raw_bytes(path: str, position: int, size: int = 61) -> str:
    """The bytes of a batch's header."""
    return f"dd if={shlex.quote(path)} bs=1 skip={position} count={size} 2>/dev/null | xxd"


def show_batch(held: Held, offset: int) -> str:
    """The batches around an offset on one broker: those of the segment that would hold it."""
    pattern = PurePosixPath(held.path) / "*.log"
    return (
        f"# {held.broker}: the batch at offset {offset}\n"
        f"kafka-dump-log.sh --files $(ls {pattern} | awk -F/ '$NF+0 <= {offset}' | tail -1) "
        f"| grep -B1 -A1 'baseOffset: {offset} '"
    )
