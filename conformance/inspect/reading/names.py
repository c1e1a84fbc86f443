"""What a file is, by its name and its folder's: Kafka's layout of a log directory.

Source: org.apache.kafka.storage.internals.log.LocalLog and LogFileUtils (folders and suffixes),
org.apache.kafka.snapshot.Snapshots, kafka.log.LogManager (checkpoints).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from conformance.printable import path_text

_FOLDER = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>\d{1,9})"
    r"(?:\.(?P<unique>[0-9a-f]{32})-(?P<state>delete|future|stray))?"
)
_OFFSET = r"(?P<offset>0(?:[0-8]\d|9[01])\d{17})"
"""Twenty digits; a larger number is no offset, which has 64 bits."""
_SEGMENT_FILE = re.compile(
    _OFFSET + r"\.(?P<kind>log|index|timeindex|txnindex|snapshot)"
    r"(?:\.(?P<state>deleted|cleaned|swap))?"
)
_SNAPSHOT = re.compile(_OFFSET + r"-(?P<epoch>[01]\d{9})\.checkpoint(?P<suffix>\.deleted)?")

_KINDS = {
    "log": "segment",
    "index": "index",
    "timeindex": "timeindex",
    "txnindex": "txnindex",
    "snapshot": "producer-snapshot",
}
OFFSET_CHECKPOINTS = {
    "replication-offset-checkpoint": "replication-offset",
    "recovery-point-offset-checkpoint": "recovery-point",
    "log-start-offset-checkpoint": "log-start",
    "cleaner-offset-checkpoint": "cleaner",
}
EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
IDENTITY_FILES = {
    "meta.properties": "meta.properties",
    "partition.metadata": "partition.metadata",
    "quorum-state": "quorum-state",
    ".kafka_cleanshutdown": "clean-shutdown",
}
INDEXES = ("index", "timeindex", "txnindex")
"""What stands beside a segment."""
NO_SEGMENT = "there is no segment beside it"
"""Why such a file is skipped."""
CLUSTER_METADATA = "__cluster_metadata"
CONSUMER_OFFSETS = "__consumer_offsets"

_LOGS = re.compile(r"(server|state-change|controller|kafkaServer|log-cleaner)\.(log|out)")
_NOT_READ = {
    ".lock": "the broker's lock on the directory, always empty",
    "bootstrap.checkpoint": "the features that the cluster was formatted with",
}


@dataclass(frozen=True, slots=True)
class FilePlace:
    """What a file is, and of which partition."""

    kind: str
    """As the table `files` has it."""
    directory: str
    """The log directory, relative to the broker's folder ('' for that folder itself)."""
    topic: str | None = None
    partition: int | None = None
    state: str = ""
    base_offset: int = 0
    """Of a segment and its indexes; the offset of a snapshot."""
    epoch: int = 0
    """Of a metadata snapshot."""
    why_not: str = ""
    """Why it is not read, if it is not."""


def is_segment(name: str) -> bool:
    """Whether that is a segment's name, without any folder."""
    match = _SEGMENT_FILE.fullmatch(name)
    return match is not None and match["kind"] == "log"


def place_of(path: str) -> FilePlace:
    """What the file at `path`, relative to the broker's folder, is."""
    pure = PurePosixPath(path)
    folder = _FOLDER.fullmatch(pure.parent.name)
    if folder is None:
        return _outside(pure)
    log_directory = _text(pure.parent.parent)
    topic, partition = folder["topic"], int(folder["partition"])
    state = folder["state"] or ""
    segment = _SEGMENT_FILE.fullmatch(pure.name)
    if segment is not None:
        kind, state = _KINDS[segment["kind"]], segment["state"] or state
        return FilePlace(kind, log_directory, topic, partition, state, int(segment["offset"]))
    snapshot = _SNAPSHOT.fullmatch(pure.name)
    if snapshot is not None and topic == CLUSTER_METADATA:
        offset, epoch = int(snapshot["offset"]), int(snapshot["epoch"])
        state = "deleted" if snapshot["suffix"] else state
        return FilePlace("metadata-snapshot", log_directory, topic, partition, state, offset, epoch)
    if pure.name == EPOCH_CHECKPOINT:
        return FilePlace("checkpoint", log_directory, topic, partition, state)
    if pure.name in IDENTITY_FILES:
        return FilePlace("identity", log_directory, topic, partition, state)
    why_not = _why_not(pure.name)
    return FilePlace("other", log_directory, topic, partition, state, why_not=why_not)


def _outside(pure: PurePosixPath) -> FilePlace:
    """A file that lies in no partition's folder."""
    directory = _text(pure.parent)
    if pure.name in OFFSET_CHECKPOINTS:
        return FilePlace("checkpoint", directory)
    if pure.name in IDENTITY_FILES:
        return FilePlace("identity", directory)
    if "remote-log-index-cache" in pure.parts:
        return FilePlace(
            "other", directory, why_not="a cached index of a segment in tiered storage"
        )
    return FilePlace("other", directory, why_not=_why_not(pure.name))


def _why_not(name: str) -> str:
    if name in _NOT_READ:
        return _NOT_READ[name]
    if name.endswith((".tmp", ".part")):
        return "a write that was not finished; Kafka ignores it too"
    if _LOGS.match(name):
        return "a server log; name it with --logs to have it read"
    return "no file of a broker's log directory that bears on replication or groups"


def _text(folder: PurePosixPath) -> str:
    return "" if folder == PurePosixPath() else path_text(folder)
