"""Finds the server logs that the command names, and the broker that each belongs to."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace

from conformance.errors import UserError
from conformance.inspect.reading.folders import ListedFile, UnreadableFile, opened
from conformance.inspect.reading.inputs import Inputs
from conformance.inspect.reading.lines import head
from conformance.inspect.reading.names import FilePlace

LOG = FilePlace("server-log", "")
_NAMED = re.compile(r"([A-Za-z0-9_.-]{1,64})=(.+)", re.DOTALL)


_HEAD = 1 << 18
_NODE = re.compile(
    rb"(?:^|\s|\\[nt])(?:node|broker)\.id ?= ?(\d+)|"
    rb"\[(?:KafkaServer|BrokerServer|KafkaRaftServer|ControllerServer|Broker|RaftManager)"
    rb" (?:id|nodeId)=(\d+)"
)


def found_logs(inputs: Inputs, nodes: Mapping[int, str]) -> Iterator[ListedFile]:
    """Every file that the patterns name, once; `nodes` has the brokers' names by node id.

    A log belongs to the broker that the pattern names, or beside whose folder it lies, or whose
    node id it tells. Raises UserError if a pattern names no file.
    """
    seen: set[str] = set()
    for pattern in inputs.logs:
        broker, paths = _matches(pattern, inputs)
        for path in paths:
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                file = _listed(broker or _owner(path, inputs), path)
                yield file if file.broker else replace(file, broker=_broker_of(file, nodes))


def _matches(pattern: str, inputs: Inputs) -> tuple[str | None, list[str]]:
    named = _NAMED.fullmatch(pattern)
    broker = named[1] if named and named[1] in inputs.brokers else None
    wanted = pattern if broker is None or named is None else named[2]
    paths = sorted(glob.glob(wanted, recursive=True), key=os.fsencode)  # noqa: PTH207
    paths = [path for path in paths if not os.path.isdir(path)]  # noqa: PTH112
    if not paths:
        raise UserError(
            f"--logs {pattern} names no file. Give a path or a pattern in quotes, like "
            "'/backup/*/server.log*', or NAME=PATTERN for the logs of one broker."
        )
    return broker, paths


def _owner(path: str, inputs: Inputs) -> str:
    """The broker whose folder, or whose folder's parent, holds the log; '' if that is unclear."""
    real = os.path.realpath(path)
    best, owners = 0, {""}
    for broker, folders in inputs.brokers.items():
        for folder in (os.path.realpath(folder) for folder in folders if "://" not in folder):
            common = len(os.path.commonpath([real, folder]))
            if common > best:
                best, owners = common, set()
            if common == best:
                owners.add(broker)
    return owners.pop() if len(owners) == 1 else ""


def _broker_of(file: ListedFile, nodes: Mapping[int, str]) -> str:
    """The broker whose node id a log tells near its beginning; '' if none or several."""
    if file.status:
        return ""
    try:
        with opened(file) as data:
            matches = {int(match or other) for match, other in _NODE.findall(head(data, _HEAD))}
    except UnreadableFile:
        return ""
    names = {nodes[node] for node in matches if node in nodes}
    return names.pop() if len(names) == 1 else ""


def _listed(broker: str, path: str) -> ListedFile:
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100
    status = os.stat(path, follow_symlinks=False)  # noqa: PTH116
    file = ListedFile(
        broker, folder, name, status.st_size, status.st_mtime_ns // 1_000_000, is_log=True
    )
    if stat.S_ISLNK(status.st_mode):
        return file.refused("a link; name its target")
    return file if stat.S_ISREG(status.st_mode) else file.refused("no regular file")
