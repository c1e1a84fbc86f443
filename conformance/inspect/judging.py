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
from conformance.inspect.findings import Discovery, Unjudged
from conformance.inspect.formulas import ReplicationFormulas
from conformance.inspect.group_judgement import judge_groups
from conformance.inspect.groups import JudgedGroup
from conformance.inspect.history import Key
from conformance.inspect.judgement import Judge, Judged
from conformance.inspect.lines import read_lines
from conformance.inspect.partitions import read_logs
from conformance.inspect.slices import Slice
from conformance.inspect.specifications import REPLICATION, Specifications
from conformance.inspect.subjects import Subject, gather
from conformance.verdict import Verdict

KEPT = 200
"""Findings of which the batches are looked up, and partitions and groups that are kept to be shown:
those that have most to tell."""

Truths = dict[str, dict[str, int]]
"""By formula, of how many it holds, is false, and was not judged."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a slice is judged with."""

    evidence: Evidence
    copies: Copies
    specifications: Specifications
    traces: Path | None = None
    """Where histories are written as traces; None: nowhere."""


@dataclass(frozen=True, slots=True)
class JudgedSlice:
    """What is said of a slice. It does not grow with the slice but by findings and table rows."""

    found: tuple[Discovery, ...]
    unjudged: tuple[Unjudged, ...]
    truths: Truths
    partitions: int
    batches: int
    telling: tuple[Judged, ...]
    """The partitions that have most to tell."""
    group_count: int
    groups: tuple[JudgedGroup, ...]
    """The groups that have most to tell."""
    other_states: Mapping[tuple[str, str, str], int]
    """Batches in folders being deleted or moved, by broker, partition and state."""
    tables: Mapping[str, pa.Table]
    held: bool = field(default=False)
    """Whether some formula held of some partition."""


def judge_slice(task: Task, part: Slice) -> JudgedSlice:
    """Everything about the partitions of a slice, and the groups in them."""
    evidence = task.evidence.within(part.parts)
    scanned = read_logs(evidence)
    lines = read_lines(task.evidence, frozenset(part.keys))
    subjects = gather(evidence, part.keys, scanned.logs(), part.controller, lines)
    formulas = ReplicationFormulas(task.specifications[REPLICATION])
    judge = Judge(task.copies, part.controller.last_time, formulas)
    judged = {key: judge.judge(subject) for key, subject in subjects.items()}
    groups = judge_groups(task.evidence, evidence, part.controller, task.specifications)
    if task.traces is not None:
        traces.write(judged.values(), task.copies, task.traces)
    said = [*_said(task, part, evidence, subjects), *_noted(judged, groups)]
    found = most_telling_first(one for one in said if isinstance(one, Discovery))
    return JudgedSlice(
        tuple(_with_commands(evidence, found, judged)),
        tuple(one for one in said if isinstance(one, Unjudged)),
        counted([*(o.truths for o in judged.values()), *(g.truths for g in groups)]),
        len(judged),
        sum(log.batches for one in subjects.values() for log in one.logs),
        tuple(_light(one) for one in telling(judged.values(), found)[:KEPT]),
        len(groups),
        tuple(telling_groups(groups)[:KEPT]),
        scanned.other_states,
        tables.histories(task.copies, judged.values(), groups),
        any(True in one.truths.values() for one in judged.values()),
    )


def _said(
    task: Task, part: Slice, evidence: Evidence, subjects: Mapping[Key, Subject]
) -> Iterator[Discovery | Unjudged]:
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
    judged: Mapping[Key, Judged], groups: Iterable[JudgedGroup]
) -> Iterator[Discovery | Unjudged]:
    """What the formulas tell."""
    for notes in (*(one.notes for one in judged.values()), *(one.notes for one in groups)):
        yield from notes.found
        yield from notes.unjudged


def counted(all_truths: Iterable[Mapping[str, bool | None]]) -> Truths:
    """By formula, of how many it holds, is false, and was not judged."""
    found: Truths = {}
    for truths in all_truths:
        for name, holds in truths.items():
            row = found.setdefault(name, {"holds": 0, "false": 0, "not judged": 0})
            row["not judged" if holds is None else "holds" if holds else "false"] += 1
    return found


_ORDER = ("CommittedNeverLost", "lost-by-unclean-election", "OneExposedRecordPerOffset",
          "LogMatching", "ElectableHasExposed", "HighWatermarkWithinLog")  # fmt: skip


def most_telling_first(found: Iterable[Discovery]) -> list[Discovery]:
    """Each finding once: proved ones first, losses before what may cause them."""

    def rank(one: Discovery) -> tuple[object, ...]:
        place = _ORDER.index(one.kind) if one.kind in _ORDER else len(_ORDER)
        return one.verdict is not Verdict.FAIL, place, one.subject, one.offsets or (-1, -1)

    return sorted({one.key: one for one in found}.values(), key=rank)


def telling(judged: Iterable[Judged], found: Sequence[Discovery]) -> list[Judged]:
    """The accused partitions in the order of their findings, eventful ones, then the user's own."""
    accused: dict[Key, int] = {}
    for number, one in enumerate(found):
        accused.setdefault((one.topic, one.partition), number)

    def rank(one: Judged) -> tuple[object, ...]:
        key = one.subject.key
        eventful = bool(one.truncations) or any(d.conflicting for d in one.differences)
        return accused.get(key, len(found)), not eventful, key[0].startswith("__"), key

    return sorted(judged, key=rank)


def telling_groups(groups: Iterable[JudgedGroup]) -> list[JudgedGroup]:
    """The accused groups first."""
    return sorted(groups, key=lambda one: (not one.notes.found, one.name))


def _light(one: Judged) -> Judged:
    """Without the sums of blocks, which have been compared."""
    held = {
        name: replace(each, log=each.log and replace(each.log, sums={}))
        for name, each in one.subject.held.items()
    }
    return replace(one, subject=replace(one.subject, held=held))


def _with_commands(
    evidence: Evidence, found: Sequence[Discovery], judged: Mapping[Key, Judged]
) -> Iterator[Discovery]:
    """The findings, the first of them with the commands that show the bytes they are about."""
    for number, one in enumerate(found):
        part = judged.get((one.topic, one.partition))
        if number >= KEPT or one.offsets is None or part is None:
            yield one
        else:
            yield replace(one, commands=tuple(_commands(evidence, one, part)))


def _commands(evidence: Evidence, one: Discovery, part: Judged) -> list[str]:
    assert one.offsets is not None
    commands: list[str] = []
    for broker in one.brokers or tuple(part.subject.held):
        held = part.subject.held.get(broker)
        folder = evidence.manifest.get("folders", {}).get(broker, broker)
        if held is None:
            continue
        if one.kind == "EpochCacheMatchesLog":
            commands.append(text_file(beside(folder, f"{held.path}/leader-epoch-checkpoint")))
        if one.kind == "HighWatermarkWithinLog":
            name = beside(held.directory, "replication-offset-checkpoint")
            commands.append(text_file(beside(folder, name)))
        row = _batch_at(evidence, one, broker)
        if row is not None:
            path = beside(folder, row["segment"])
            commands.append(dump_log(path, offset=row["base_offset"]))
            commands.append(raw_bytes(path, row["position"]))
        else:
            commands.append(dump_log(beside(folder, f"{held.path}/{held.base:020}.log")))
    return commands


def _batch_at(evidence: Evidence, one: Discovery, broker: str) -> Mapping[str, Any] | None:
    """The batch that holds a finding's first offset on a broker."""
    assert one.offsets is not None
    where = (
        (pc.field("topic") == one.topic)
        & (pc.field("partition") == one.partition)
        & (pc.field("broker") == broker)
        & (pc.field("state") == "")
        & (pc.field("base_offset") <= one.offsets[0])
        & (pc.field("last_offset") >= one.offsets[0])
    )
    rows = evidence.table("batches", ["segment", "position", "base_offset"], where).to_pylist()
    return rows[0] if rows else None
