"""When each broker's files were copied, and what that leaves open.

Copies of running brokers are not of one moment. A broker rewrites its high watermarks every five
seconds and appends to the metadata log all the time, so the newest of its files tell about when it
was copied, and how far these two are apart about how long that took.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from types import MappingProxyType

import pyarrow.dataset as ds

from conformance.inspect.evidence import Evidence

_CHECKPOINT_MS = 5_000
"""replica.high.watermark.checkpoint.interval.ms by default."""
_REPLICATION = "replication-offset-checkpoint"
_METADATA = "__cluster_metadata-0"
_OWN = ("become-leader", "become-follower", "log-loaded", "isr-shrink", "isr-updated")
"""Lines whose prefix in brackets names the broker that writes them."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One broker's copy. Times are milliseconds since 1970."""

    broker: str
    node: int | None
    cluster: str
    clean: frozenset[str]
    """The log directories that were closed in order before they were copied."""
    copied_at: int
    """When the newest file was written."""
    window: int
    """Milliseconds that the copying may have taken."""
    last_metadata_offset: int
    directory_ids: Mapping[str, str] = field(default_factory=dict)
    """By log directory the id in its meta.properties."""

    def is_clean(self, directory: str) -> bool:
        """Whether the broker had stopped in order: then all files of the directory fit together."""
        return directory in self.clean


@dataclass(frozen=True, slots=True)
class Copies:
    """All of them."""

    copies: Mapping[str, Copy]

    @property
    def apart(self) -> int:
        """Milliseconds between the oldest copy and the newest."""
        times = [copy.copied_at for copy in self.copies.values() if copy.copied_at >= 0]
        return max(times) - min(times) if times else 0

    @property
    def metadata_apart(self) -> int:
        """Records of the metadata log by which one copy is behind another."""
        ends = [c.last_metadata_offset for c in self.copies.values() if c.last_metadata_offset >= 0]
        return max(ends) - min(ends) if ends else 0

    def name(self, node: int) -> str:
        """A broker's name by its id; the id itself where its files are not here."""
        for copy in self.copies.values():
            if copy.node == node:
                return copy.broker
        return f"broker {node}"

    def __getitem__(self, broker: str) -> Copy:
        return self.copies[broker]


def read_copies(evidence: Evidence) -> Copies:
    """What the files tell of their copying."""
    identities: dict[str, dict[str, str]] = {broker: {} for broker in evidence.brokers}
    clean: dict[str, set[str]] = {broker: set() for broker in evidence.brokers}
    directories: dict[str, dict[str, str]] = {broker: {} for broker in evidence.brokers}
    for row in evidence.rows("identities"):
        if row["kind"] == "meta.properties":
            identities[row["broker"]][row["key"]] = row["value"]
            if row["key"] == "directory.id":
                directories[row["broker"]][row["directory"]] = row["value"]
        if row["kind"] == "clean-shutdown":
            clean[row["broker"]].add(row["directory"])
    written: dict[str, dict[str, int]] = {broker: {} for broker in evidence.brokers}
    for row in evidence.rows("files"):
        if row["kind"] == "server-log" or row["broker"] not in written:
            continue
        path, times = PurePosixPath(row["path"]), written[row["broker"]]
        keys = {"", path.name if path.name == _REPLICATION else ""}
        if path.parent.name == _METADATA and path.suffix == ".log":
            keys.add(_METADATA)
        for key in keys:
            times[key] = max(times.get(key, -1), row["mtime"])
    nameless = {name for name, own in identities.items() if not {"node.id", "broker.id"} & {*own}}
    for broker, node in _nodes_of_lines(evidence, nameless).items():
        identities[broker]["node.id"] = str(node)
    ends = dict.fromkeys(evidence.brokers, -1)
    for row in evidence.table("metadata", ["broker", "offset"]).to_pylist():
        ends[row["broker"]] = max(ends[row["broker"]], row["offset"])
    return Copies(
        MappingProxyType(
            {
                broker: replace(
                    _copy(broker, identities[broker], clean[broker], written[broker], end),
                    directory_ids=MappingProxyType(directories[broker]),
                )
                for broker, end in ends.items()
            }
        )
    )


def _nodes_of_lines(evidence: Evidence, nameless: Collection[str]) -> dict[str, int]:
    """The node that a broker's own server log is of, where there is one and it is one node's."""
    nodes_of_lines: dict[str, set[int]] = {broker: set() for broker in nameless}
    where = ds.field("kind").isin(_OWN) & ds.field("broker").isin(sorted(nameless))
    for row in evidence.rows("log_lines", where) if nameless else ():
        node = json.loads(row["fields"]).get("broker")
        if isinstance(node, int):
            nodes_of_lines[row["broker"]].add(node)
    return {broker: nodes.pop() for broker, nodes in nodes_of_lines.items() if len(nodes) == 1}


def _copy(
    broker: str, identity: Mapping[str, str], clean: set[str], written: Mapping[str, int], end: int
) -> Copy:
    node = identity.get("node.id", identity.get("broker.id", ""))
    samples = [written[key] for key in (_REPLICATION, _METADATA) if key in written]
    window = max(samples) - min(samples) + _CHECKPOINT_MS if samples else _CHECKPOINT_MS
    return Copy(
        broker,
        int(node) if node.isdigit() else None,
        identity.get("cluster.id", ""),
        frozenset(clean),
        written.get("", -1),
        window,
        end,
    )
