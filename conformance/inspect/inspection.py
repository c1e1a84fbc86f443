"""The whole judgement: evidence in, findings, histories and a verdict out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.compute as pc

from conformance.events import JsonValue
from conformance.inspect import damage
from conformance.inspect.commands import beside, dump_log, raw_bytes, text_file
from conformance.inspect.copies import Copies, read_copies
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import Discovery, Unjudged
from conformance.inspect.formulas import ReplicationFormulas
from conformance.inspect.groups import JudgedGroup, judge_groups
from conformance.inspect.history import Controller, Key, controller
from conformance.inspect.judgement import Judge, Judged
from conformance.inspect.lines import read_lines
from conformance.inspect.partitions import read_logs
from conformance.inspect.subjects import gather
from conformance.verdict import Verdict

Tell = Callable[[int, int], None]
"""Takes how many partitions are judged, and how many there are."""
_COMMANDS_FOR = 200
"""Findings for which the batches are looked up."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything that an inspection says."""

    evidence: Evidence
    copies: Copies
    controller: Controller
    partitions: Mapping[Key, Judged]
    groups: Sequence[JudgedGroup]
    found: tuple[Discovery, ...]
    unjudged: tuple[Unjudged, ...]
    files: Mapping[str, int]
    """How many files were read, skipped and in error."""
    other_states: Mapping[tuple[str, str, str], int]
    """Batches in folders being deleted or moved, by broker, partition and state."""

    @property
    def verdict(self) -> Verdict:
        """Fail over inconclusive over pass; nothing judged is no pass."""
        if any(one.verdict is Verdict.FAIL for one in self.found):
            return Verdict.FAIL
        doubtful = bool(self.found) or any(one.matters for one in self.unjudged)
        judged = any(True in one.truths.values() for one in self.partitions.values())
        if doubtful or not judged or self.files.get("error"):
            return Verdict.INCONCLUSIVE
        return Verdict.PASS

    def truths(self) -> dict[str, dict[str, int]]:
        """By formula, on how many partitions and groups it held, was false, was not judged."""
        found: dict[str, dict[str, int]] = {}
        of_all = [*(o.truths for o in self.partitions.values()), *(g.truths for g in self.groups)]
        for truths in of_all:
            for name, holds in truths.items():
                row = found.setdefault(name, {"holds": 0, "false": 0, "not judged": 0})
                row["not judged" if holds is None else "holds" if holds else "false"] += 1
        return found

    def figures(self) -> dict[str, JsonValue]:
        """The inspection's part of the JSON report."""
        return {
            "partitions": len(self.partitions),
            "groups": len(self.groups),
            "findings": len(self.found),
            "unjudged": [
                {"subject": o.subject, "what": o.what, "why": o.why, "matters": o.matters}
                for o in self.unjudged
            ],
            "formulas": {name: dict(row) for name, row in sorted(self.truths().items())},
            "files": dict(self.files),
            "copies_apart_ms": self.copies.apart,
            "copies_apart_metadata_records": self.copies.metadata_apart,
        }


def _silent(_done: int, _all: int) -> None:
    pass


def inspect(evidence: Evidence, *, tell: Tell = _silent) -> Inspection:
    """Judge all that was read."""
    copies, history = read_copies(evidence), controller(evidence)
    scanned = read_logs(evidence)
    subjects = gather(evidence, scanned.logs(), history, read_lines(evidence))
    judge = Judge(copies, history.last_time, ReplicationFormulas())
    judged: dict[Key, Judged] = {}
    for number, (key, subject) in enumerate(subjects.items()):
        judged[key] = judge.judge(subject)
        tell(number + 1, len(subjects))
    said: list[Discovery | Unjudged] = [
        *damage.damaged(evidence, subjects, copies),
        *(one for subject in subjects.values() for one in damage.irregular(subject)),
        *damage.contents_differ(evidence, subjects),
        *damage.metadata_differs(history),
        *damage.misplaced(evidence, subjects, copies),
        *_beyond_reach(evidence, history, scanned.other_states),
    ]
    groups = judge_groups(evidence, history)
    for notes in (*(one.notes for one in judged.values()), *(one.notes for one in groups)):
        said += [*notes.found, *notes.unjudged]
    found = [one for one in said if isinstance(one, Discovery)]
    return Inspection(
        evidence,
        copies,
        history,
        judged,
        groups,
        tuple(_with_commands(evidence, _most_telling_first(found), judged)),
        tuple(dict.fromkeys(one for one in said if isinstance(one, Unjudged))),
        _files(evidence),
        scanned.other_states,
    )


def _beyond_reach(
    evidence: Evidence, history: Controller, states: Mapping[tuple[str, str, str], int]
) -> list[Unjudged]:
    """What the whole inspection cannot say."""
    found = []
    if not history.partitions:
        found.append(
            Unjudged(
                "the controller",
                "elections, ISRs and what was committed",
                "no copy holds __cluster_metadata: give the controllers' directories too",
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
        words = f"{batches} batches in a folder or file that is {state}"
        found.append(Unjudged(f"{broker}: {partition}", words, "no log consists of them"))
    if evidence.manifest.get("verify") is False:
        found.append(Unjudged("checksums", "the batches' checksums", "they were not verified"))
    return found


def _files(evidence: Evidence) -> dict[str, int]:
    counts: dict[str, int] = {"read": 0, "skipped": 0, "error": 0}
    for row in evidence.table("files", ["status"]).to_pylist():
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    return counts


_ORDER = ("CommittedNeverLost", "lost-by-unclean-election", "OneExposedRecordPerOffset",
          "LogMatching", "ElectableHasExposed", "HighWatermarkWithinLog")  # fmt: skip


def _most_telling_first(found: Sequence[Discovery]) -> list[Discovery]:
    def rank(one: Discovery) -> tuple[object, ...]:
        place = _ORDER.index(one.kind) if one.kind in _ORDER else len(_ORDER)
        return one.verdict is not Verdict.FAIL, place, one.subject, one.offsets or (-1, -1)

    return sorted({one.key: one for one in found}.values(), key=rank)


def _with_commands(
    evidence: Evidence, found: Sequence[Discovery], judged: Mapping[Key, Judged]
) -> list[Discovery]:
    """The findings with the commands that show the bytes they are about."""
    told = list(found)
    for number, one in enumerate(told[:_COMMANDS_FOR]):
        part = judged.get((one.topic, one.partition))
        commands = [] if one.offsets is None or part is None else _commands(evidence, one, part)
        told[number] = replace(one, commands=tuple(commands))
    return told


def _commands(evidence: Evidence, one: Discovery, part: Judged) -> list[str]:
    assert one.offsets is not None
    commands: list[str] = []
    for broker in one.brokers or tuple(part.subject.held):
        held = part.subject.held.get(broker)
        folder = evidence.manifest.get("folders", {}).get(broker, [broker])[0]
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
