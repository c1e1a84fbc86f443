"""The whole judgement: evidence in, findings, histories and a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from conformance.events import JsonValue
from conformance.inspect.copies import Copies, read_copies
from conformance.inspect.damage import METADATA_LOG
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import Discovery, UnjudgedSubject
from conformance.inspect.groups import JudgedGroup
from conformance.inspect.history import Key, MetadataHistory, controller
from conformance.inspect.identities import identified
from conformance.inspect.judgement import PartitionJudgement
from conformance.inspect.judging import (
    KEPT,
    JudgedSlice,
    SliceTask,
    Truths,
    judge_slice,
    most_telling_first,
    telling,
    telling_groups,
)
from conformance.inspect.models import CLASSIC_GROUP, CONSUMER_GROUP, REPLICATION
from conformance.inspect.quorum import quorum
from conformance.inspect.server_logs import ServerLog, not_understood, read_server_logs
from conformance.inspect.slices import Slice, slices
from conformance.inspect.tables import TableWriter, finding_tables
from conformance.inspect.workers import OnDemand
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict
from conformance.workers import Here

Tell = Callable[[int, int], None]
"""Takes how many partitions are judged, and how many there are."""
SPARK_FROM = 5_000
"""Partitions from which a JVM's start is worth its time."""


@dataclass(slots=True)
class Inspection:
    """Everything that an inspection says; of partitions and groups those with most to tell."""

    evidence: Evidence
    copies: Copies
    controller: MetadataHistory
    partitions: Mapping[Key, PartitionJudgement] = field(default_factory=dict)
    partition_count: int = 0
    groups: tuple[JudgedGroup, ...] = ()
    group_count: int = 0
    batches: int = 0
    discoveries: tuple[Discovery, ...] = ()
    unjudged: tuple[UnjudgedSubject, ...] = ()
    truths: Truths = field(default_factory=dict)
    any_holds: bool = False
    """Whether some formula held of some partition."""
    files: Mapping[str, int] = field(default_factory=dict)
    """How many files were read, skipped and in error."""
    server_logs: tuple[ServerLog, ...] = ()
    other_states: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Batches in folders being deleted or moved, by broker, partition and state."""

    @property
    def verdict(self) -> Verdict:
        """Fail over inconclusive over pass; nothing judged is no pass."""
        if any(discovery.verdict is Verdict.FAIL for discovery in self.discoveries):
            return Verdict.FAIL
        doubtful = bool(self.discoveries) or any(subject.matters for subject in self.unjudged)
        if doubtful or not self.any_holds or self.files.get("error"):
            return Verdict.INCONCLUSIVE
        return Verdict.PASS

    def figures(self) -> dict[str, JsonValue]:
        """The inspection's part of the JSON report."""
        return {
            "partitions": self.partition_count,
            "groups": self.group_count,
            "batches": self.batches,
            "unjudged": [
                {"subject": o.subject, "what": o.what, "why": o.why, "matters": o.matters}
                for o in self.unjudged
            ],
            "formulas": {name: dict(row) for name, row in sorted(self.truths.items())},
            "files": dict(self.files),
            "server_logs": [log.as_json() for log in self.server_logs],
            "copies_apart_ms": self.copies.apart,
            "copies_apart_metadata_records": self.copies.metadata_apart,
        }

    def take(self, judged_slice: JudgedSlice) -> None:
        """Add what is said of a slice."""
        self.discoveries = tuple(most_telling_first((*self.discoveries, *judged_slice.discoveries)))
        self.unjudged = tuple(dict.fromkeys((*self.unjudged, *judged_slice.unjudged)))
        partitions = (*self.partitions.values(), *judged_slice.telling)
        kept = telling(partitions, self.discoveries)[:KEPT]
        self.partitions = {judged.subject.key: judged for judged in kept}
        self.partition_count += judged_slice.partitions
        self.groups = tuple(telling_groups((*self.groups, *judged_slice.groups))[:KEPT])
        self.group_count += judged_slice.group_count
        self.batches += judged_slice.batches
        for name, row in judged_slice.truths.items():
            known = self.truths.setdefault(name, dict.fromkeys(row, 0))
            for answer, count in row.items():
                known[answer] += count
        self.any_holds |= judged_slice.any_holds
        for place, batches in judged_slice.other_states.items():
            self.other_states[place] = self.other_states.get(place, 0) + batches


def _silent(_done: int, _all: int) -> None:
    pass


def inspect(
    evidence: Evidence,
    output: Path | None = None,
    *,
    specifications: Specifications | None = None,
    workers: OnDemand | None = None,
    tell: Tell = _silent,
) -> Inspection:
    """Judge all that was read; tables and traces are written below `output`, if one is named.

    Who inspects several times gives the same `specifications`, which are parsed once.
    """
    copies, files = read_copies(evidence), _files(evidence)
    identities = identified(evidence, copies)
    if identities.aside:
        evidence = evidence.without(identities.aside)
        copies = read_copies(evidence)
    history = controller(evidence)
    inspection = Inspection(evidence, copies, history, files=files)
    inspection.server_logs = read_server_logs(evidence)
    across = (*identities.discoveries, *quorum(evidence, copies))
    inspection.discoveries = tuple(most_telling_first(across))
    parts = slices(evidence, history)
    folder = None if output is None else output / "traces"
    task = SliceTask(evidence, copies, specifications or Specifications(), folder)
    whole = sum(len(part.keys) for part in parts)
    written = None if output is None else TableWriter(output)
    with written or nullcontext():
        for judged_slice in _judged(task, parts, whole, workers):
            inspection.take(judged_slice)
            if written is not None:
                written.add(judged_slice.tables)
            tell(inspection.partition_count, whole)
        asked_for = any(key != METADATA_LOG for part in parts for key in part.keys)
        beyond = _beyond_reach(evidence, history, inspection.other_states, asked_for=asked_for)
        unread = not_understood(inspection.server_logs)
        inspection.unjudged = tuple(dict.fromkeys((*inspection.unjudged, *beyond, *unread)))
        if written is not None:
            written.add(finding_tables(inspection.discoveries, inspection.unjudged))
    return inspection


def _judged(
    task: SliceTask, parts: list[Slice], partitions: int, workers: OnDemand | None
) -> Iterable[JudgedSlice]:
    """The slices one after the other, in their order."""
    some = workers is not None and len(parts) > 1
    chosen = workers.fit(partitions, SPARK_FROM) if some and workers is not None else Here()
    if not isinstance(chosen, Here):
        # Here, so that no worker must start a JVM for it.
        task.specifications.prepare((REPLICATION, CLASSIC_GROUP, CONSUMER_GROUP))
    return chosen.map(partial(judge_slice, task), parts)


def _beyond_reach(
    evidence: Evidence,
    history: MetadataHistory,
    states: Mapping[tuple[str, str, str], int],
    *,
    asked_for: bool,
) -> list[UnjudgedSubject]:
    """What the whole inspection cannot say."""
    subjects = []
    filters = evidence.manifest.get("filters", {})
    if (filters.get("topics") or filters.get("partitions")) and not asked_for:
        subjects.append(
            UnjudgedSubject(
                "the partitions asked for",
                "all of them",
                "no folder and no record of the controller is of such a topic and partition",
                matters=True,
            )
        )
    if not history.partitions:
        subjects.append(
            UnjudgedSubject(
                "the controller",
                "elections, ISRs and what was committed",
                "no folder that is judged has __cluster_metadata: give the controllers' too",
                matters=True,
            )
        )
    if history.uncommitted:
        subjects.append(
            UnjudgedSubject(
                "__cluster_metadata-0",
                f"whether the last {history.uncommitted} records were committed",
                "too few of the voters' copies are here; they were taken as committed",
            )
        )
    for (broker, partition, state), batches in sorted(states.items()):
        text = "1 batch" if batches == 1 else f"{batches:,} batches"
        words = f"{text} in a folder or file that is {state}"
        subjects.append(UnjudgedSubject(f"{broker}: {partition}", words, "no log consists of them"))
    if evidence.manifest.get("verify") is False:
        subjects.append(
            UnjudgedSubject("checksums", "the batches' checksums", "they were not verified")
        )
    return subjects


def _files(evidence: Evidence) -> dict[str, int]:
    counts: dict[str, int] = {"read": 0, "skipped": 0, "error": 0}
    for row in evidence.table("files", ["status"]).to_pylist():
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    return counts
