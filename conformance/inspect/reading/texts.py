"""Checkpoint and identity files: small texts whose every line has a meaning.

Source: org.apache.kafka.server.common.CheckpointFile (grammar of checkpoints), KIP-101 (leader
epochs), PartitionMetadataFile, PropertiesUtils, FileQuorumStateStore, CleanShutdownFileHandler.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from conformance.errors import DataError
from conformance.inspect.reading.names import EPOCH_CHECKPOINT, IDENTITY_FILES, OFFSET_CHECKPOINTS

MAX_SIZE = 64 << 20
"""No such file comes near it; a hostile one must not fill the memory."""
_INT32, _INT64 = 1 << 31, 1 << 63
_PROPERTY = re.compile(r"\s*([^\s=:#!][^=:\s]*)\s*[=:\s]\s*(.*?)\s*")


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """An entry of a checkpoint; topic and partition are the folder's in leader-epoch-checkpoint."""

    kind: str
    topic: str | None
    partition: int | None
    epoch: int | None
    offset: int


def text_of(data: bytes) -> str:
    """The file as text. Raises DataError."""
    if len(data) > MAX_SIZE:
        raise DataError(f"more than {MAX_SIZE} bytes are too many for such a file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"no UTF-8: {error.reason} at byte {error.start}") from None


def checkpoint(name: str, data: bytes) -> list[CheckpointEntry]:
    """The entries of a checkpoint file of that name. Raises DataError where Kafka would."""
    if name == EPOCH_CHECKPOINT:
        return [_epoch(line) for line in _lines(text_of(data))]
    kind = OFFSET_CHECKPOINTS[name]
    return [_offset(kind, line) for line in _lines(text_of(data))]


def _lines(text: str) -> list[str]:
    """The entries' lines; an empty file, and one that only has a version, have none."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return []
    if _number(lines[0].strip(), _INT32) != 0:
        raise DataError(f"version {lines[0][:40]!r}, not 0")
    if len(lines) == 1:
        return []
    count = _number(lines[1].strip(), _INT32)
    if count != len(lines) - 2:
        raise DataError(f"{count} entries are announced, {len(lines) - 2} are there")
    return lines[2:]


def _number(text: str, limit: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise DataError(f"{text[:40]!r} is no number") from None
    if not -limit <= number < limit:
        raise DataError(f"{text[:40]} is out of range")
    return number


def _epoch(line: str) -> CheckpointEntry:
    fields = line.split()
    if len(fields) != 2:
        raise DataError(f"malformed line {line[:80]!r}")
    return CheckpointEntry(
        "leader-epoch", None, None, _number(fields[0], _INT32), _number(fields[1], _INT64)
    )


def _offset(kind: str, line: str) -> CheckpointEntry:
    fields = line.split()
    if len(fields) != 3:
        raise DataError(f"malformed line {line[:80]!r}")
    topic, partition, offset = fields
    return CheckpointEntry(kind, topic, _number(partition, _INT32), None, _number(offset, _INT64))


def disorder(entries: list[CheckpointEntry]) -> Iterator[tuple[int, str]]:
    """Offset and detail of every epoch entry that does not follow the one before it."""
    for before, after in pairwise(entries):
        if (after.epoch or 0) <= (before.epoch or 0) or after.offset <= before.offset:
            yield (
                after.offset,
                f"epoch {after.epoch} from {after.offset} follows epoch {before.epoch} "
                f"from {before.offset}",
            )


def identity(name: str, data: bytes) -> list[tuple[str, str]]:
    """Keys and values of an identity file of that name. Raises DataError."""
    text = text_of(data)
    if name in ("quorum-state", ".kafka_cleanshutdown"):
        return _json_fields(text, empty_is_fine=name != "quorum-state")
    pairs = [match.groups() for match in map(_PROPERTY.fullmatch, text.splitlines()) if match]
    if name == "partition.metadata" and not any(key == "topic_id" for key, _ in pairs):
        raise DataError("there is no topic_id in it")
    return [(key, value.replace("\\:", ":").replace("\\=", "=")) for key, value in pairs]


def _json_fields(text: str, *, empty_is_fine: bool) -> list[tuple[str, str]]:
    if not text.strip() and empty_is_fine:
        return [("version", "")]
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"no JSON: {str(error)[:120]}") from None
    if not isinstance(fields, dict):
        raise DataError("no JSON object")
    return [
        (str(key), value if isinstance(value, str) else json.dumps(value))
        for key, value in fields.items()
    ]


def identity_kind(name: str) -> str:
    """The kind that the table has for an identity file's rows."""
    return IDENTITY_FILES[name]
