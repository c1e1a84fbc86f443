"""One slice of the evidence judged: the same functions in this process and on Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from conformance.inspect import damage, replica_files, tables, traces
from conformance.inspect.commands import beside, dump_log, raw_bytes, text_file
from conformance.inspect.copies import Copies
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import Discovery, UnjudgedSubject
from conformance.inspect.formulas import ReplicationFormulas
from conformance.inspect.group_judgement import judge_groups
from conformance.inspect.groups import JudgedGroup
from conformance.inspect.history import Key
from conformance.inspect.judgement import PartitionJudge, PartitionJudgement
from conformance.inspect.lines import read_lines
from conformance.inspect.models import REPLICATION
from conformance.inspect.partitions import read_logs
from conformance.inspect.slices import Slice
from conformance.inspect.subjects import InspectedPartition, gather
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict

KEPT = 200
"""Findings of which the batches are looked up, and partitions and groups that are kept to be shown:
those that have most to tell."""

Truths = dict[str, dict[str, int]]
"""By formula, of how many it holds, is false, and was not judged."""


@dataclass(frozen=True, slots=True)
class SliceTask:
    """What a slice is judged with."""

    evidence: Evidence
    copies: Copies
    specifications: Specifications
    traces: Path | None = None
    """Where histories are written as traces; None: nowhere."""


@dataclass(frozen=True, slots=True)
class JudgedSlice:
    """What is said of a slice. It does not grow with the slice but by findings and table rows."""

    discoveries: tuple[Discovery, ...]
    unjudged: tuple[UnjudgedSubject, ...]
    truths: Truths
    partitions: int
    batches: int
    telling: tuple[PartitionJudgement, ...]
    """The partitions that have most to tell."""
    group_count: int
    groups: tuple[JudgedGroup, ...]
    """The groups that have most to tell."""
    other_states: Mapping[tuple[str, str, str], int]
    """Batches in folders being deleted or moved, by broker, partition and state."""
    tables: Mapping[str, pa.Table]
    any_holds: bool = field(default=False)
    """Whether some formula held of some partition."""


def judge_slice(task: SliceTask, part: Slice) -> JudgedSlice:
    """Everything about the partitions of a slice, and the groups in them."""
    evidence = task.evidence.within(part.parts)
    scanned = read_logs(evidence)
    lines = read_lines(task.evidence, frozenset(part.keys))
    subjects = gather(evidence, part.keys, scanned.logs(), part.controller, lines)
    formulas = ReplicationFormulas(task.specifications[REPLICATION])
    judge = PartitionJudge(task.copies, part.controller.last_time, formulas)
    judged = {key: judge.judge(subject) for key, subject in subjects.items()}
    groups = judge_groups(task.evidence, evidence, part.controller, task.specifications)
    if task.traces is not None:
        traces.write(judged.values(), task.copies, task.traces)
    results = [*_from_files(task, part, evidence, subjects), *_noted(judged, groups)]
    discoveries = most_telling_first(item for item in results if isinstance(item, Discovery))
    return JudgedSlice(
        tuple(_with_commands(evidence, discoveries, judged)),
        tuple(item for item in results if isinstance(item, UnjudgedSubject)),
        counted([*(o.truths for o in judged.values()), *(g.truths for g in groups)]),
        len(judged),
        sum(log.batches for subject in subjects.values() for log in subject.logs),
        tuple(_light(judgement) for judgement in telling(judged.values(), discoveries)[:KEPT]),
        len(groups),
        tuple(telling_groups(groups)[:KEPT]),
        scanned.other_states,
        tables.histories(task.copies, judged.values(), groups),
        any(True in judgement.truths.values() for judgement in judged.values()),
    )


def _from_files(
    task: SliceTask, part: Slice, evidence: Evidence, subjects: Mapping[Key, InspectedPartition]
) -> Iterator[Discovery | UnjudgedSubject]:
    """What the files themselves tell."""
    yield from damage.damaged(evidence, subjects, task.copies)
    for subject in subjects.values():
        yield from damage.irregular(subject)
        yield from damage.without_epoch(subject)
        yield from replica_files.misfits(subject, task.copies)
    yield from replica_files.producers_without_records(evidence, subjects)
    yield from damage.contents_differ(evidence, subjects)
    if damage.METADATA_LOG in subjects:
        yield from damage.metadata_differs(part.controller)
    yield from damage.misplaced(subjects, task.copies)


def _noted(
    judged: Mapping[Key, PartitionJudgement], groups: Iterable[JudgedGroup]
) -> Iterator[Discovery | UnjudgedSubject]:
    """What the formulas tell."""
    for notes in (
        *(judgement.notes for judgement in judged.values()),
        *(group.notes for group in groups),
    ):
        yield from notes.discoveries
        yield from notes.unjudged


def counted(all_truths: Iterable[Mapping[str, bool | None]]) -> Truths:
    """By formula, of how many it holds, is false, and was not judged."""
    result: Truths = {}
    for truths in all_truths:
        for name, holds in truths.items():
            row = result.setdefault(name, {"holds": 0, "false": 0, "not judged": 0})
            row["not judged" if holds is None else "holds" if holds else "false"] += 1
    return result


_ORDER = ("CommittedNeverLost", "lost-by-unclean-election", "OneExposedRecordPerOffset",
          "LogMatching", "ElectableHasExposed", "HighWatermarkWithinLog")  # fmt: skip


def most_telling_first(discoveries: Iterable[Discovery]) -> list[Discovery]:
    """Each finding once: proved ones first, losses before what may cause them."""

    def rank(discovery: Discovery) -> tuple[object, ...]:
        place = _ORDER.index(discovery.kind) if discovery.kind in _ORDER else len(_ORDER)
        return (
            discovery.verdict is not Verdict.FAIL,
            place,
            discovery.subject,
            discovery.offsets or (-1, -1),
        )

    return sorted({discovery.key: discovery for discovery in discoveries}.values(), key=rank)


def telling(
    judged: Iterable[PartitionJudgement], discoveries: Sequence[Discovery]
) -> list[PartitionJudgement]:
    """The accused partitions in the order of their findings, eventful ones, then the user's own."""
    accused: dict[Key, int] = {}
    for number, discovery in enumerate(discoveries):
        accused.setdefault((discovery.topic, discovery.partition), number)

    def rank(judgement: PartitionJudgement) -> tuple[object, ...]:
        key = judgement.subject.key
        eventful = bool(judgement.truncations) or any(d.conflicting for d in judgement.differences)
        return accused.get(key, len(discoveries)), not eventful, key[0].startswith("__"), key

    return sorted(judged, key=rank)


def telling_groups(groups: Iterable[JudgedGroup]) -> list[JudgedGroup]:
    """The accused groups first."""
    return sorted(groups, key=lambda group: (not group.notes.discoveries, group.name))


def _light(judgement: PartitionJudgement) -> PartitionJudgement:
    """Without the sums of blocks, which have been compared."""
    replica_copies = {
        name: replace(each, log=each.log and replace(each.log, sums={}))
        for name, each in judgement.subject.copies.items()
    }
    return replace(judgement, subject=replace(judgement.subject, copies=replica_copies))


def _with_commands(
    evidence: Evidence, discoveries: Sequence[Discovery], judged: Mapping[Key, PartitionJudgement]
) -> Iterator[Discovery]:
    """The findings, the first of them with the commands that show the bytes they are about."""
    for number, discovery in enumerate(discoveries):
        part = judged.get((discovery.topic, discovery.partition))
        if number >= KEPT or discovery.offsets is None or part is None:
            yield discovery
        else:
            yield replace(discovery, commands=tuple(_commands(evidence, discovery, part)))


def _commands(evidence: Evidence, discovery: Discovery, part: PartitionJudgement) -> list[str]:
    assert discovery.offsets is not None
    commands: list[str] = []
    for broker in discovery.brokers or tuple(part.subject.copies):
        copy = part.subject.copies.get(broker)
        folder = evidence.manifest.get("folders", {}).get(broker, broker)
        if copy is None:
            continue
        if discovery.kind == "EpochCacheMatchesLog":
            commands.append(text_file(beside(folder, f"{copy.path}/leader-epoch-checkpoint")))
        if discovery.kind == "HighWatermarkWithinLog":
            name = beside(copy.directory, "replication-offset-checkpoint")
            commands.append(text_file(beside(folder, name)))
        row = _batch_at(evidence, discovery, broker)
        if row is not None:
            path = beside(folder, row["segment"])
            commands.append(dump_log(path, offset=row["base_offset"]))
            commands.append(raw_bytes(path, row["position"]))
        else:
            commands.append(dump_log(beside(folder, f"{copy.path}/{copy.base:020}.log")))
    return commands


def _batch_at(evidence: Evidence, discovery: Discovery, broker: str) -> Mapping[str, Any] | None:
    """The batch that holds a finding's first offset on a broker."""
    assert discovery.offsets is not None
    where = (
        (pc.field("topic") == discovery.topic)
        & (pc.field("partition") == discovery.partition)
        & (pc.field("broker") == broker)
        & (pc.field("state") == "")
        & (pc.field("base_offset") <= discovery.offsets[0])
        & (pc.field("last_offset") >= discovery.offsets[0])
    )
    rows = evidence.table("batches", ["segment", "position", "base_offset"], where).to_pylist()
    return rows[0] if rows else None
