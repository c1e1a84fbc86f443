"""The controllers' own log: who has it, and whether quorum-state and snapshots fit it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from conformance.inspect.copies import Copies
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import Discovery
from conformance.inspect.reading.names import CLUSTER_METADATA, place_of
from conformance.verdict import Verdict

_FOLDER = f"{CLUSTER_METADATA}-0"


@dataclass(slots=True)
class _Node:
    """What one broker's folder holds of `__cluster_metadata-0`."""

    folder: bool = False
    segments: bool = False
    state: dict[str, str] | None = None
    """The fields of quorum-state; None where there is none."""
    first: int = -1
    last_epoch: int = -1
    began: int = -1
    """When the first record of that epoch was written, in milliseconds since 1970."""
    snapshots: set[int] = field(default_factory=set)
    """Up to which offset each snapshot tells."""
    leaders: dict[int, int] = field(default_factory=dict)
    """By epoch, as the log's messages of new leaders say."""


def quorum(evidence: Evidence, copies: Copies) -> Iterator[Discovery]:
    """Findings about the folders of the metadata log."""
    nodes = _nodes(evidence)
    if any(node.segments for node in nodes.values()):
        yield from _lacking(nodes, copies)
    for broker, node in nodes.items():
        yield from _snapshots(broker, node)
        yield from _behind(broker, node, copies)
    yield from _leaders(nodes)


def _nodes(evidence: Evidence) -> dict[str, _Node]:
    nodes = {broker: _Node() for broker in evidence.brokers}
    for row in evidence.rows("files", pc.field("kind") != "server-log"):
        place, node = place_of(row["path"]), nodes.get(row["broker"])
        if node is not None and place.topic == CLUSTER_METADATA and not place.state:
            node.folder = True
            node.segments |= row["kind"] == "segment"
    for row in evidence.rows("identities", pc.field("kind") == "quorum-state"):
        if row["broker"] in nodes:
            node = nodes[row["broker"]]
            node.state = {**(node.state or {}), row["key"]: row["value"]}
    _extents(evidence, nodes)
    for row in evidence.rows("metadata", pc.field("type") == "LeaderChangeMessage"):
        if row["source"] == "log":
            leader = json.loads(row["body"]).get("leaderId", -1)
            nodes[row["broker"]].leaders[row["epoch"]] = int(leader)
    return nodes


def _extents(evidence: Evidence, nodes: Mapping[str, _Node]) -> None:
    """From where to which epoch each log reaches, and up to where its snapshots tell."""
    columns = ["broker", "source", "offset", "epoch", "timestamp"]
    for batch in evidence.dataset("metadata").to_batches(columns=columns):
        table = pa.Table.from_batches([batch]).group_by(["broker", "source", "epoch"])
        for row in table.aggregate([("offset", "min"), ("timestamp", "min")]).to_pylist():
            node, offset = nodes[row["broker"]], row["offset_min"]
            if row["source"] == "snapshot":
                continue
            node.first = offset if node.first < 0 else min(node.first, offset)
            if row["epoch"] > node.last_epoch:
                node.last_epoch, node.began = row["epoch"], row["timestamp_min"]
        ends = pa.Table.from_batches([batch.filter(pc.equal(batch.column("source"), "snapshot"))])
        for row in ends.group_by(["broker", "offset"]).aggregate([]).to_pylist():
            nodes[row["broker"]].snapshots.add(row["offset"])


def _finding(
    kind: str, title: str, message: str, *brokers: str, verdict: Verdict = Verdict.FAIL
) -> Discovery:
    return Discovery(
        kind,
        _FOLDER,
        title,
        message,
        verdict,
        brokers=brokers,
        topic=CLUSTER_METADATA,
        partition=0,
    )


def _lacking(nodes: Mapping[str, _Node], copies: Copies) -> Iterator[Discovery]:
    """Every node of a cluster with a quorum of controllers has the metadata log."""
    for broker, node in nodes.items():
        if node.segments or copies[broker].copied_at < 0:
            continue
        have = "its folder holds no segment" if node.folder else "it is nowhere in its folder"
        yield _finding(
            "no-metadata-log",
            f"{broker} has no {_FOLDER}",
            f"Every broker and controller has the metadata log in metadata.log.dir, and {have}. "
            "If that is another directory, give it too, under the same name.",
            broker,
            verdict=Verdict.FAIL if node.folder else Verdict.INCONCLUSIVE,
        )


def _snapshots(broker: str, node: _Node) -> Iterator[Discovery]:
    if node.first > 0 and not any(offset >= node.first - 1 for offset in node.snapshots):
        yield _finding(
            "no-metadata-snapshot",
            f"{_FOLDER} of {broker} begins at offset {node.first}, and no snapshot reaches it",
            "Records are removed only once a snapshot contains them: the snapshot or the first "
            "segment is gone, and the node could not load its metadata.",
            broker,
        )


def _behind(broker: str, node: _Node, copies: Copies) -> Iterator[Discovery]:
    """A node writes its epoch into quorum-state before it acts in it (FileQuorumStateStore)."""
    if node.last_epoch < 0:
        return
    known = _number(node.state or {}, "leaderEpoch")
    if known >= node.last_epoch:
        return
    text = "there is no quorum-state" if node.state is None else f"quorum-state has epoch {known}"
    result = _finding(
        "quorum-state-behind",
        f"{_FOLDER}: the quorum-state of {broker} is older than its log",
        f"The log has records of epoch {node.last_epoch}, and {text}: the node could vote a second "
        "time in an epoch in which it has voted.",
        broker,
    )
    copy = copies[broker]
    if not copy.clean and node.began > copy.copied_at - copy.window:
        yield result.softened(f"the epoch began while the files of {broker} were copied.")
    else:
        yield result


def _leaders(nodes: Mapping[str, _Node]) -> Iterator[Discovery]:
    """One leader in each epoch, by quorum-state and by the messages in the log."""
    claims: dict[int, dict[int, set[str]]] = {}
    for broker, node in nodes.items():
        for epoch, leader in node.leaders.items():
            claims.setdefault(epoch, {}).setdefault(leader, set()).add(broker)
        leader = _number(node.state or {}, "leaderId")
        if leader >= 0:
            epoch = _number(node.state or {}, "leaderEpoch")
            claims.setdefault(epoch, {}).setdefault(leader, set()).add(broker)
    for epoch, leaders in sorted(claims.items()):
        if len(leaders) > 1:
            report = " and ".join(
                f"{', '.join(sorted(who))}: node {leader}"
                for leader, who in sorted(leaders.items())
            )
            yield _finding(
                "two-quorum-leaders",
                f"{_FOLDER}: two leaders of the quorum in epoch {epoch}",
                f"By quorum-state and the log's messages of new leaders ({report}). An epoch has "
                "one leader.",
                *sorted(set().union(*leaders.values())),
            )


def _number(fields: Mapping[str, str], name: str) -> int:
    text = fields.get(name, "-1")
    return int(text) if text.lstrip("-").isdigit() else -1
