"""Whose folders these are: cluster, node and directory ids, held against each other.

A folder that is of another cluster or node would make every comparison wrong. So it is told, and
set aside: nothing else is said of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from conformance.inspect.copies import Copies, Copy
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import Discovery
from conformance.inspect.reading.names import CLUSTER_METADATA as _METADATA
from conformance.verdict import Verdict

_RECORD = "RegisterBrokerRecord"


@dataclass(frozen=True, slots=True)
class Directory:
    """A log directory's meta.properties."""

    broker: str
    directory: str
    """Below the folder that was named for the broker."""
    node: str
    cluster: str
    id: str

    @property
    def source(self) -> str:
        """The file."""
        path = f"{self.directory}/meta.properties" if self.directory else "meta.properties"
        return f"{self.broker}: {path}"


@dataclass(slots=True)
class RegisteredBroker:
    """What the metadata log has of one broker's registrations."""

    directories: set[str] = field(default_factory=set)
    """All log directories that it has ever registered."""
    epochs: set[int] = field(default_factory=set)
    """Broker epochs: the offset of each registration's record."""


@dataclass(frozen=True, slots=True)
class IdentityFindings:
    """What was found of identities, and whom to set aside."""

    discoveries: tuple[Discovery, ...]
    aside: frozenset[str]
    """Brokers of which nothing else can be said."""


def identified(evidence: Evidence, copies: Copies) -> IdentityFindings:
    """The identities in the evidence, held against each other and the controller."""
    directories = _directories(evidence)
    registered = _registrations(evidence)
    differing = list(_differing(directories))
    strangers = {name for discovery in differing for name in discovery.brokers}
    foreign = list(
        _other_cluster(
            [directory for directory in directories if directory.broker not in strangers]
        )
    )
    strangers |= {name for discovery in foreign for name in discovery.brokers}
    own = [directory for directory in directories if directory.broker not in strangers]
    wrong = list(_other_node(own, registered))
    wrong += _unregistered_node(own, registered, _used(evidence))
    strangers |= {name for discovery in wrong for name in discovery.brokers}
    empty = list(_empty(evidence))
    strangers |= {name for discovery in empty for name in discovery.brokers}
    doubled = list(_same_node(copies, strangers))
    aside = strangers | {name for discovery in doubled for name in discovery.brokers}
    own = [directory for directory in own if directory.broker not in aside]
    discoveries = [
        *empty,
        *_nameless(evidence, directories, copies),
        *differing,
        *foreign,
        *wrong,
        *doubled,
        *_same_directory(own),
        *_unknown_directory(own, registered, _used(evidence)),
        *_markers(evidence, copies, registered, aside),
        *_older(copies, registered, aside),
    ]
    return IdentityFindings(tuple(discoveries), frozenset(aside))


def _directories(evidence: Evidence) -> list[Directory]:
    properties: dict[tuple[str, str], dict[str, str]] = {}
    for row in evidence.rows("identities", pc.field("kind") == "meta.properties"):
        properties.setdefault((row["broker"], row["directory"]), {})[row["key"]] = row["value"]
    return [
        Directory(
            *where,
            pairs.get("node.id", pairs.get("broker.id", "")),
            pairs.get("cluster.id", ""),
            pairs.get("directory.id", ""),
        )
        for where, pairs in sorted(properties.items())
    ]


def _registrations(evidence: Evidence) -> dict[int, RegisteredBroker]:
    brokers: dict[int, RegisteredBroker] = {}
    for row in evidence.rows("metadata", pc.field("type") == _RECORD):
        body = json.loads(row["body"])
        broker = brokers.setdefault(body["brokerId"], RegisteredBroker())
        broker.directories |= set(body.get("logDirs") or ())
        broker.epochs.add(body["brokerEpoch"])
    return brokers


def _finding(
    kind: str,
    title: str,
    message: str,
    brokers: Sequence[str],
    sources: Sequence[str] = (),
    verdict: Verdict = Verdict.FAIL,
) -> Discovery:
    subject = ", ".join(brokers)
    return Discovery(
        kind, subject, title, message, verdict, brokers=tuple(brokers), sources=tuple(sources)
    )


# --- one folder ----------------------------------------------------------------------------------


def _places(evidence: Evidence) -> dict[str, set[str]]:
    """Each broker's log directories, by what lies in them."""
    places: dict[str, set[str]] = {broker: set() for broker in evidence.brokers}
    for row in evidence.rows("files", ~pc.field("kind").isin(["server-log", "other"])):
        if row["broker"] in places:
            places[row["broker"]].add(row["directory"])
    return places


def _empty(evidence: Evidence) -> Iterator[Discovery]:
    """Folders without anything of a broker."""
    for broker, places in _places(evidence).items():
        if not places:
            yield _finding(
                "empty-folder",
                f"{broker}: the folder holds nothing of a broker",
                "There is no segment, checkpoint or meta.properties in it. Name the copy of the "
                "log directory (log.dirs), or leave the broker out; its replicas are not judged.",
                (broker,),
                verdict=Verdict.INCONCLUSIVE,
            )


def _nameless(
    evidence: Evidence, directories: Sequence[Directory], copies: Copies
) -> Iterator[Discovery]:
    """Log directories without an identity."""
    known = {(directory.broker, directory.directory) for directory in directories}
    for broker, places in _places(evidence).items():
        for directory in sorted(places):
            if (broker, directory) in known:
                continue
            node = copies[broker].node
            whose = "which node it is of is not known" if node is None else f"it is node {node}'s"
            yield _finding(
                "no-meta-properties",
                f"{broker}: no meta.properties",
                f"A log directory has one from when it was formatted, and Kafka refuses one with "
                f"partitions that has none; {whose}. What the controller says of a node that is "
                "not known is not held against this folder.",
                (broker,),
                (f"{broker}: {directory or '.'}",),
                Verdict.INCONCLUSIVE,
            )


def _differing(directories: Sequence[Directory]) -> Iterator[Discovery]:
    """Several log directories of one broker (MetaPropertiesEnsemble.verify)."""
    by_broker: dict[str, list[Directory]] = {}
    for directory in directories:
        by_broker.setdefault(directory.broker, []).append(directory)
    for broker, own in by_broker.items():
        for what in ("node", "cluster"):
            values = sorted({getattr(directory, what) for directory in own} - {""})
            if len(values) > 1:
                yield _finding(
                    "identity-differs",
                    f"{broker}: its log directories have the {what} ids {' and '.join(values)}",
                    "All log directories of a broker have one node id and one cluster id, and "
                    "Kafka refuses to start with others. If these are several brokers, give each "
                    f"of them a name of its own; nothing else in the folders of {broker} is "
                    "judged.",
                    (broker,),
                    [directory.source for directory in own],
                    Verdict.INCONCLUSIVE,
                )
                break


# --- folders against each other ------------------------------------------------------------------


def _other_cluster(directories: Sequence[Directory]) -> Iterator[Discovery]:
    """Folders of another cluster than most; of two clusters with as many, of the second one."""
    clusters = {
        directory.broker: directory.cluster
        for directory in reversed(directories)
        if directory.cluster
    }
    counts = Counter(
        clusters[directory.broker] for directory in directories if directory.broker in clusters
    )
    if len(counts) < 2:
        return
    usual, _ = counts.most_common(1)[0]
    for directory in directories:
        if directory.cluster and directory.cluster != usual:
            yield _finding(
                "other-cluster",
                f"{directory.broker}: the folder is of the cluster {directory.cluster}",
                f"The others are of the cluster {usual}. Kafka refuses to start with the folder of "
                f"another cluster; nothing else in the folder of {directory.broker} is judged.",
                (directory.broker,),
                (directory.source,),
            )


def _other_node(
    directories: Sequence[Directory], registered: Mapping[int, RegisteredBroker]
) -> Iterator[Discovery]:
    """Log directories that the controller knows as another node's."""
    owners = {id_: node for node, broker in registered.items() for id_ in broker.directories}
    for directory in directories:
        owner = owners.get(directory.id)
        if owner is not None and directory.node.isdigit() and owner != int(directory.node):
            yield _finding(
                "other-node",
                f"{directory.broker}: its meta.properties says node {directory.node}, and the "
                "directory is "
                f"node {owner}'s",
                f"Node {owner} has registered the directory {directory.id} with the controller; "
                "node "
                f"{directory.node} never did. Nothing else in the folder of {directory.broker} is "
                "judged.",
                (directory.broker,),
                (directory.source,),
            )


def _same_node(copies: Copies, aside: Collection[str]) -> Iterator[Discovery]:
    """Two names for one node."""
    names: dict[int, list[str]] = {}
    for copy in copies.copies.values():
        if copy.node is not None and copy.broker not in aside:
            names.setdefault(copy.node, []).append(copy.broker)
    for node, brokers in sorted(names.items()):
        if len(brokers) > 1:
            yield _finding(
                "same-node-id",
                f"{' and '.join(brokers)} both are node {node}",
                "Two log directories of one broker are given under one name "
                f"({brokers[0]}=DIR {brokers[0]}=DIR); of two copies of one broker give one. Two "
                "brokers with one node id are a mistake in their configuration: the controller "
                "refuses the second. None of them is judged, as it cannot be told which is meant.",
                brokers,
                verdict=Verdict.INCONCLUSIVE,
            )


def _same_directory(directories: Sequence[Directory]) -> Iterator[Discovery]:
    """A directory id is given once, when a directory is formatted (KIP-858)."""
    owners: dict[str, list[Directory]] = {}
    for directory in directories:
        if directory.id:
            owners.setdefault(directory.id, []).append(directory)
    for id_, own in sorted(owners.items()):
        if len(own) > 1:
            brokers = sorted({directory.broker for directory in own})
            yield _finding(
                "same-directory",
                f"{' and '.join(brokers)}: two log directories have the directory id {id_}",
                "An id is made when a directory is formatted. These are two copies of one "
                "directory, or one was cloned from the other.",
                brokers,
                [directory.source for directory in own],
            )


# --- folders against the controller --------------------------------------------------------------


def _used(evidence: Evidence) -> set[tuple[str, str]]:
    """Log directories with partitions, by broker; a controller's own log is none."""
    place = (pc.field("kind") == "segment") & (pc.field("status") == "read")
    rows = evidence.table("files", ["broker", "directory", "path"], place).to_pylist()
    return {(row["broker"], row["directory"]) for row in rows if _METADATA not in row["path"]}


def _unregistered_node(
    directories: Sequence[Directory],
    registered: Mapping[int, RegisteredBroker],
    used: Collection[tuple[str, str]],
) -> Iterator[Discovery]:
    """Directories with partitions, of a node that the controller does not know."""
    for directory in directories:
        if not registered or (directory.broker, directory.directory) not in used:
            continue
        if directory.node.isdigit() and int(directory.node) not in registered:
            title = (
                f"{directory.broker}: node {directory.node} never registered with the controller"
            )
            yield _unregistered(directory, title, f" Nothing else of {directory.broker} is judged.")


def _unknown_directory(
    directories: Sequence[Directory],
    registered: Mapping[int, RegisteredBroker],
    used: Collection[tuple[str, str]],
) -> Iterator[Discovery]:
    """Directories with partitions that no broker has registered (KIP-858)."""
    for directory in directories:
        known = registered.get(int(directory.node)) if directory.node.isdigit() else None
        if known is None or (directory.broker, directory.directory) not in used:
            continue
        if directory.id and known.directories and directory.id not in known.directories:
            node = f"{directory.broker}: node {directory.node}"
            yield _unregistered(directory, f"{node} never registered the directory {directory.id}")


def _unregistered(directory: Directory, title: str, aside: str = "") -> Discovery:
    return _finding(
        "unknown-directory",
        title,
        "A broker registers itself and its log directories whenever it starts, before it makes a "
        f"partition. The folder is of another cluster, or its meta.properties is.{aside}",
        (directory.broker,),
        (directory.source,),
    )


def _markers(
    evidence: Evidence,
    copies: Copies,
    registered: Mapping[int, RegisteredBroker],
    aside: Collection[str],
) -> Iterator[Discovery]:
    """Marks of a clean stop that are not of the broker's last run (KIP-966)."""
    where = (pc.field("kind") == "clean-shutdown") & (pc.field("key") == "brokerEpoch")
    for row in evidence.rows("identities", where):
        copy = copies.copies.get(row["broker"])
        if copy is None or copy.node is None or row["broker"] in aside:
            continue
        epochs = registered.get(copy.node, RegisteredBroker()).epochs
        epoch = int(row["value"]) if row["value"].lstrip("-").isdigit() else -1
        if epoch < 0 or not epochs or epoch == max(epochs):
            continue
        newest = max(epochs)
        later = epoch > newest
        finding = _finding(
            "foreign-marker",
            f"{row['broker']}: the mark of its clean stop is of broker epoch {epoch}",
            f"The controller registered node {copy.node} last in broker epoch {newest}. A broker "
            "removes the mark when it starts: the mark, or the whole folder, is of another time.",
            (row["broker"],),
            (f"{row['broker']}: {row['path']}",),
        )
        why = "the metadata log that is here may end before that registration."
        yield finding.softened(why) if later else finding


def _older(
    copies: Copies, registered: Mapping[int, RegisteredBroker], aside: Collection[str]
) -> Iterator[Discovery]:
    """Copies whose metadata log ends before their own broker's last registration."""
    for copy in copies.copies.values():
        if copy.broker in aside or copy.node is None or copy.last_metadata_offset < 0:
            continue
        epochs = registered.get(copy.node, RegisteredBroker()).epochs
        if epochs and max(epochs) > copy.last_metadata_offset:
            yield _older_finding(copy, max(epochs))


def _older_finding(copy: Copy, newest: int) -> Discovery:
    return _finding(
        "older-than-its-registration",
        f"{copy.broker}: the folder is of a time before node {copy.node} registered last",
        f"Node {copy.node} registered at metadata offset {newest}, as another copy has it, and "
        f"its own metadata log ends at {copy.last_metadata_offset}. A broker reads the metadata "
        "log up to its registration before it serves: an older copy was taken or put back, and "
        "what it lacks proves nothing.",
        (copy.broker,),
        verdict=Verdict.INCONCLUSIVE,
    )
