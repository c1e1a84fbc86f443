"""Stage `load`: whether releases of Kafka load the logs of partitions, compacted or not."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from conformance.errors import UserError
from conformance.events import Finding, JsonValue, StageFinished, StageStarted
from conformance.inspect.reading.names import CONSUMER_OFFSETS
from conformance.inspect.workers import OnDemand
from conformance.kafka.jars import kafka_jars, release_of
from conformance.load.advice import advice
from conformance.load.classes import release_classes
from conformance.load.judgement import (
    GroupVerdict,
    LoadAnswer,
    LoadFault,
    ReleaseVerdict,
    judge_release,
)
from conformance.load.partition import PartitionLog, read_partition
from conformance.load.specification import MODEL
from conformance.modelcheck.specifications import Specifications
from conformance.printable import counted
from conformance.stages.context import Context, stage
from conformance.verdict import Verdict

STAGE = "log"
"""Of one folder and one release."""
OLDEST = (4, 0, 0)
"""Before, another coordinator was the default."""
MANY_PARTITIONS = 200
"""So many and more go to Spark's workers, if the specification alone judges."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class PartitionVerdicts:
    """One partition's folder, and what each release makes of it."""

    folder: Path
    log: PartitionLog
    """Without its records."""
    releases: tuple[ReleaseVerdict, ...]
    seconds: Mapping[str, float]
    """By release."""


def releases_of(given: Iterable[str]) -> list[str]:
    """`4.1.0,kafka-4.4.0`: releases, each once. UserError for what is none, or too old."""
    names = [name.strip().removeprefix("kafka-") for text in given for name in text.split(",")]
    releases = list(dict.fromkeys(filter(None, names)))
    if not releases:
        raise UserError("--kafka names no release: give 4.1.0,4.4.0 or the like.")
    for release in releases:
        if release_of(release) < OLDEST:
            raise UserError(
                f"Kafka {release} has another group coordinator by default: `kconform load` knows "
                "what releases from 4.0.0 on load."
            )
    return releases


def folders_of(brokers: Mapping[str, Sequence[str]]) -> list[Path]:
    """The longest copy of each partition of __consumer_offsets in brokers' data directories."""
    longest: dict[str, tuple[int, int, Path]] = {}
    for directory in (Path(place) for places in brokers.values() for place in places):
        for folder in sorted(directory.glob(f"{CONSUMER_OFFSETS}-*")):
            segments = [path for path in folder.glob("*.log") if path.stem.isdigit()]
            if folder.name.rpartition("-")[2].isdigit() and segments:
                newest = max(segments)
                copy = (int(newest.stem), newest.stat().st_size, folder)
                longest[folder.name] = max(longest.get(folder.name, copy), copy)
    return [folder for _, (_, _, folder) in sorted(longest.items())]


def load(
    context: Context,
    folders: Sequence[Path],
    releases: Sequence[str],
    *,
    classes: bool,
    master: str | None = None,
) -> list[PartitionVerdicts]:
    """Judge each folder for each release."""
    if not folders:
        with stage(context, STAGE, ", ".join(releases)) as outcome:
            outcome.summary = f"there is no copy of {CONSUMER_OFFSETS} to load"
        return []
    jars = {release: kafka_jars(release).classpath for release in releases}
    specifications = Specifications()
    specifications.prepare([MODEL])
    judge = partial(_judge, jars=jars, specifications=specifications, classes=classes)
    with OnDemand(master, wanted=None if not classes else False) as workers:
        verdicts = []
        for partition in workers.fit(len(folders), MANY_PARTITIONS).map(judge, folders):
            verdicts.append(partition)
            for verdict in partition.releases:
                _report(context, partition, verdict)
    return verdicts


def _judge(
    folder: Path,
    *,
    jars: Mapping[str, Sequence[Path]],
    specifications: Specifications,
    classes: bool,
) -> PartitionVerdicts:
    log = read_partition(folder)
    verdicts, seconds = [], {}
    for release, classpath in jars.items():
        started = time.monotonic()
        with release_classes(release) if classes else nullcontext() as judge:
            verdicts.append(judge_release(log, release, classpath, specifications, judge))
        seconds[release] = time.monotonic() - started
    return PartitionVerdicts(folder, log.without_records(), tuple(verdicts), seconds)


def _report(context: Context, partition: PartitionVerdicts, verdict: ReleaseVerdict) -> None:
    """The stage of one folder and one release, with its findings."""
    name = partition.folder.resolve().name
    subject = f"{name} kafka-{verdict.release}"
    context.emit(StageStarted(STAGE, subject))
    for group in verdict.faulty:
        context.emit(_finding(partition, verdict.release, group))
    result = verdict.verdict
    if partition.log.damage and result is Verdict.PASS:
        result = Verdict.INCONCLUSIVE
    context.emit(
        StageFinished(
            STAGE,
            subject,
            result,
            partition.seconds[verdict.release],
            _summary(partition.log, verdict),
            _figures(partition, verdict),
            fault=bool(verdict.disagreements),
        )
    )


def _summary(log: PartitionLog, verdict: ReleaseVerdict) -> str:
    variants = sum(group.variants for group in verdict.groups)
    compared = sum(group.compared for group in verdict.groups)
    parts = [f"{counted(len(verdict.groups), 'group')} of {counted(log.count, 'record')}"]
    if not verdict.groups:
        parts.append("nothing to load")
    for answer in LoadAnswer:
        count = sum(group.answer is answer for group in verdict.groups)
        if count:
            parts.append(f"{count} {answer}")
    parts.append(f"{counted(variants, 'log')} followed, {compared} of them by the classes too")
    parts += [f"{damage.segment}: {damage.detail}" for damage in log.damage[:1]]
    parts += [f"the judges do not agree: {text}" for text in verdict.disagreements[:1]]
    return "; ".join(parts)


def _finding(partition: PartitionVerdicts, release: str, group: GroupVerdict) -> Finding:
    fault = group.faults[0]
    return Finding(
        key=f"load {fault.answer} {fault.rule}",
        title=f"kafka-{release}: group {group.group} {group.answer}",
        stage=STAGE,
        message=_message(fault),
        formula=fault.rule,
        story=tuple(_story(group.faults, release)),
        reproduce=shlex.join(["kconform", "load", str(partition.folder), "--kafka", release]),
    )


def _message(fault: LoadFault) -> str:
    match fault.answer:
        case LoadAnswer.FAILS:
            return (
                f"The load ends at offset {fault.offset} ({fault.record}) by the rule "
                f"{fault.rule}: the partition has no coordinator, and none of its groups works."
            )
        case LoadAnswer.FAILS_COMPACTED:
            return (
                f"{fault.where} the load ends at offset {fault.offset} ({fault.record}) by the "
                f"rule {fault.rule}."
            )
        case LoadAnswer.OTHER_STATE:
            return f"{fault.where} the group is loaded in another state than from the log as it is."
        case _:
            return (
                f"The release does not know records such as {fault.record} at offset "
                f"{fault.offset}: it skips them, and the group has another state than it had."
            )


def _story(faults: Sequence[LoadFault], release: str) -> Iterator[str]:
    for fault in faults[:_SHOWN]:
        if fault.dropped:
            offsets = ", ".join(map(str, fault.dropped[:20]))
            yield f"offset {fault.offset}, {fault.record}: without the records at {offsets}"
    yield f"What to do: {advice(faults[0], release)}"


def _figures(partition: PartitionVerdicts, verdict: ReleaseVerdict) -> dict[str, JsonValue]:
    """The stage's part of the JSON report."""
    log = partition.log
    return {
        "folder": str(partition.folder),
        "release": verdict.release,
        "judges": list(verdict.judges),
        "records": log.count,
        "bytes": log.size,
        "damage": [f"{damage.segment}: {damage.detail}" for damage in log.damage],
        "variants": sum(group.variants for group in verdict.groups),
        "compared": sum(group.compared for group in verdict.groups),
        "disagreements": list(verdict.disagreements),
        "groups": [_group(group, verdict.release) for group in verdict.groups],
    }


def _group(group: GroupVerdict, release: str) -> JsonValue:
    return {
        "group": group.group,
        "answer": str(group.answer),
        "records": group.records,
        "variants": group.variants,
        "faults": [
            {
                "answer": str(fault.answer),
                "rule": fault.rule,
                "offset": fault.offset,
                "record": fault.record,
                "dropped": list(fault.dropped),
                "advice": advice(fault, release),
            }
            for fault in group.faults
        ],
    }
