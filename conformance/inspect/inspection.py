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
from conformance.inspect.findings import Discovery, Unjudged
from conformance.inspect.groups import JudgedGroup
from conformance.inspect.history import Controller, Key, controller
from conformance.inspect.identities import identified
from conformance.inspect.judgement import Judged
from conformance.inspect.judging import (
    KEPT,
    JudgedSlice,
    Task,
    Truths,
    judge_slice,
    most_telling_first,
    telling,
    telling_groups,
)
from conformance.inspect.quorum import quorum
from conformance.inspect.server_logs import ServerLog, not_understood, read_server_logs
from conformance.inspect.slices import Slice, slices
from conformance.inspect.specifications import (
    CLASSIC_GROUP,
    CONSUMER_GROUP,
    REPLICATION,
    Specifications,
)
from conformance.inspect.tables import TableWriter, told
from conformance.inspect.workers import OnDemand
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
    controller: Controller
    partitions: Mapping[Key, Judged] = field(default_factory=dict)
    partition_count: int = 0
    groups: tuple[JudgedGroup, ...] = ()
    group_count: int = 0
    batches: int = 0
    found: tuple[Discovery, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    truths: Truths = field(default_factory=dict)
    held: bool = False
    """Whether some formula held of some partition."""
    files: Mapping[str, int] = field(default_factory=dict)
    """How many files were read, skipped and in error."""
    server_logs: tuple[ServerLog, ...] = ()
    other_states: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Batches in folders being deleted or moved, by broker, partition and state."""

    @property
    def verdict(self) -> Verdict:
        """Fail over inconclusive over pass; nothing judged is no pass."""
        if any(one.verdict is Verdict.FAIL for one in self.found):
            return Verdict.FAIL
        doubtful = bool(self.found) or any(one.matters for one in self.unjudged)
        if doubtful or not self.held or self.files.get("error"):
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

    def take(self, one: JudgedSlice) -> None:
        """Add what is said of a slice."""
        self.found = tuple(most_telling_first((*self.found, *one.found)))
        self.unjudged = tuple(dict.fromkeys((*self.unjudged, *one.unjudged)))
        partitions = telling((*self.partitions.values(), *one.telling), self.found)[:KEPT]
        self.partitions = {judged.subject.key: judged for judged in partitions}
        self.partition_count += one.partitions
        self.groups = tuple(telling_groups((*self.groups, *one.groups))[:KEPT])
        self.group_count += one.group_count
        self.batches += one.batches
        for name, row in one.truths.items():
            known = self.truths.setdefault(name, dict.fromkeys(row, 0))
            for answer, count in row.items():
                known[answer] += count
        self.held |= one.held
        for place, batches in one.other_states.items():
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
    across = (*identities.found, *quorum(evidence, copies))
    inspection.found = tuple(most_telling_first(across))
    parts = slices(evidence, history)
    folder = None if output is None else output / "traces"
    task = Task(evidence, copies, specifications or Specifications(), folder)
    whole = sum(len(part.keys) for part in parts)
    written = None if output is None else TableWriter(output)
    with written or nullcontext():
        for one in _judged(task, parts, whole, workers):
            inspection.take(one)
            if written is not None:
                written.add(one.tables)
            tell(inspection.partition_count, whole)
        asked_for = any(key != METADATA_LOG for part in parts for key in part.keys)
        beyond = _beyond_reach(evidence, history, inspection.other_states, asked_for=asked_for)
        unread = not_understood(inspection.server_logs)
        inspection.unjudged = tuple(dict.fromkeys((*inspection.unjudged, *beyond, *unread)))
        if written is not None:
            written.add(told(inspection.found, inspection.unjudged))
    return inspection


def _judged(
    task: Task, parts: list[Slice], partitions: int, workers: OnDemand | None
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
    history: Controller,
    states: Mapping[tuple[str, str, str], int],
    *,
    asked_for: bool,
) -> list[Unjudged]:
    """What the whole inspection cannot say."""
    found = []
    filters = evidence.manifest.get("filters", {})
    if (filters.get("topics") or filters.get("partitions")) and not asked_for:
        found.append(
            Unjudged(
                "the partitions asked for",
                "all of them",
                "no folder and no record of the controller is of such a topic and partition",
                matters=True,
            )
        )
    if not history.partitions:
        found.append(
            Unjudged(
                "the controller",
                "elections, ISRs and what was committed",
                "no folder that is judged has __cluster_metadata: give the controllers' too",
                matters=True,
            )
        )
    if history.uncommitted:
        found.append(
            Unjudged(
                "__cluster_metadata-0",
                f"whether the last {history.uncommitted} records were committed",
                "too few of the voters' copies are here; they were taken as committed",
            )
        )
    for (broker, partition, state), batches in sorted(states.items()):
        held = "1 batch" if batches == 1 else f"{batches:,} batches"
        words = f"{held} in a folder or file that is {state}"
        found.append(Unjudged(f"{broker}: {partition}", words, "no log consists of them"))
    if evidence.manifest.get("verify") is False:
        found.append(Unjudged("checksums", "the batches' checksums", "they were not verified"))
    return found


def _files(evidence: Evidence) -> dict[str, int]:
    counts: dict[str, int] = {"read": 0, "skipped": 0, "error": 0}
    for row in evidence.table("files", ["status"]).to_pylist():
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    return counts
