"""Stage `load`: whether releases of Kafka load the logs of partitions, compacted or not."""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from conformance.errors import UserError
from conformance.events import Finding, JsonValue, StageFinished, StageStarted
from conformance.inspect.workers import OnDemand
from conformance.kafka.jars import kafka_jars, release_of
from conformance.load.advice import advice
from conformance.load.classes import release_classes
from conformance.load.judgement import (
    LoadAnswer,
    LoadFault,
    ReleaseVerdict,
    UnitVerdict,
    judge_release,
)
from conformance.load.partition import PartitionLog, read_partition
from conformance.load.topics import OFFSETS, TOPICS, TRANSACTIONS, StateTopic, topic_of
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
    """The longest copy of each partition of coordinators' topics in brokers' data directories."""
    longest: dict[str, tuple[int, int, Path]] = {}
    for directory in (Path(place) for places in brokers.values() for place in places):
        for folder in sorted(path for name in TOPICS for path in directory.glob(f"{name}-*")):
            segments = [path for path in folder.glob("*.log") if path.stem.isdecimal()]
            if folder.name.rpartition("-")[2].isdecimal() and segments:
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
            outcome.summary = f"there is no copy of {', '.join(TOPICS)} to load"
        return []
    jars = {release: kafka_jars(release).classpath for release in releases}
    specifications = Specifications()
    specifications.prepare(sorted({topic_of(folder).model for folder in folders}))
    judge = partial(_judge, jars=jars, specifications=specifications, classes=classes)
    with OnDemand(master, wanted=None if not classes else False) as workers:
        verdicts = []
        for partition in workers.fit(len(folders), MANY_PARTITIONS).map(judge, folders):
            verdicts.append(partition)
            for verdict in partition.releases:
                _report(context, partition, verdict)
    return verdicts


def log_answers(
    context: Context, folders: Sequence[Path], system: str, replayed: Collection[str] = ()
) -> dict[str, str]:
    """What a release's classes make of each unit of copies of partitions, by folder and unit.

    PASS where the specification says the same; whether the log loads is the answer. Folders all of
    whose answers were `replayed` before are left out, and systems that have no such classes.
    """
    family, _, release = system.partition("-")
    answers: dict[str, str] = {}
    if family != "kafka" or not release or release_of(release) < OLDEST:
        return answers
    left = [f for f in folders if not any(row.partition(" ")[0] == f.name for row in replayed)]
    specifications = Specifications()
    specifications.prepare(sorted({topic_of(folder).model for folder in left}))
    jars = {release: kafka_jars(release).classpath}
    for folder in left:
        with stage(context, STAGE, f"{folder.name} {system}") as outcome:
            partition = _judge(folder, jars=jars, specifications=specifications, classes=True)
            (verdict,) = partition.releases
            named = {f"{folder.name} {unit.name}".rstrip(): unit for unit in verdict.units}
            made = {row: _words(unit.answer, verdict.topic) for row, unit in named.items()}
            answers |= made
            outcome.summary = _summary(partition.log, verdict)
            outcome.figures = {"folder": str(folder), "release": release, "answers": {**made}}
            outcome.fault = bool(verdict.disagreements)
            read = not partition.log.damage and not verdict.remainders
            whole = made and read and not verdict.disagreements
            outcome.verdict = Verdict.PASS if whole else Verdict.INCONCLUSIVE
    return answers


def _judge(
    folder: Path,
    *,
    jars: Mapping[str, Sequence[Path]],
    specifications: Specifications,
    classes: bool,
) -> PartitionVerdicts:
    topic = topic_of(folder)
    log = read_partition(folder, whole=topic is not OFFSETS)
    verdicts, seconds = [], {}
    for release, classpath in jars.items():
        started = time.monotonic()
        with release_classes(release) if classes else nullcontext() as judge:
            verdicts.append(judge_release(log, release, classpath, specifications, judge, topic))
        seconds[release] = time.monotonic() - started
    return PartitionVerdicts(folder, log.without_records(), tuple(verdicts), seconds)


def _report(context: Context, partition: PartitionVerdicts, verdict: ReleaseVerdict) -> None:
    """The stage of one folder and one release, with its findings."""
    name = partition.folder.resolve().name
    subject = f"{name} kafka-{verdict.release}"
    context.emit(StageStarted(STAGE, subject))
    for unit in verdict.faulty:
        context.emit(_finding(partition, verdict, unit))
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
    variants = sum(unit.variants for unit in verdict.units)
    compared = sum(unit.compared for unit in verdict.units)
    units = counted(len(verdict.units), verdict.topic.unit)
    parts = [f"{units} of {counted(log.count, 'record')}"]
    if not verdict.units:
        parts.append("nothing to load")
    for answer in LoadAnswer:
        count = sum(unit.answer is answer for unit in verdict.units)
        if count:
            parts.append(f"{count} {_words(answer, verdict.topic)}")
    parts.append(f"{counted(variants, 'log')} followed, {compared} of them by the classes too")
    parts += [f"{damage.segment}: {damage.detail}" for damage in log.damage[:1]]
    if verdict.remainders:
        first, places = next(iter(verdict.remainders)), sum(verdict.remainders.values())
        parts.append(f"not understood: {first} ({counted(places, 'such place')})")
    parts += [f"the judges do not agree: {text}" for text in verdict.disagreements[:1]]
    return "; ".join(parts)


def _words(answer: LoadAnswer, topic: StateTopic) -> str:
    return str(answer).replace("compacted", "pruned") if topic.pruned else str(answer)


def _finding(partition: PartitionVerdicts, verdict: ReleaseVerdict, unit: UnitVerdict) -> Finding:
    fault, release, topic = unit.faults[0], verdict.release, verdict.topic
    return Finding(
        key=f"load {fault.answer} {fault.rule}",
        title=f"kafka-{release}: {topic.unit} {unit.name} {_words(unit.answer, topic)}",
        stage=STAGE,
        message=_message(fault, verdict),
        formula=fault.rule,
        story=tuple(_story(unit.faults, release, topic)),
        reproduce=shlex.join(["kconform", "load", str(partition.folder), "--kafka", release]),
    )


def _message(fault: LoadFault, verdict: ReleaseVerdict) -> str:
    topic = verdict.topic
    match fault.answer:
        case LoadAnswer.FAILS:
            return (
                f"The load ends at offset {fault.offset} ({fault.record}) by the rule "
                f"{fault.rule}: {topic.consequence}{_lost(fault, verdict)}."
            )
        case LoadAnswer.FAILS_COMPACTED:
            return (
                f"{fault.where} the load ends at offset {fault.offset} ({fault.record}) by the "
                f"rule {fault.rule}."
            )
        case LoadAnswer.OTHER_STATE:
            return (
                f"{fault.where} the {topic.unit} is loaded in another state than from the log as "
                "it is."
            )
        case _:
            return (
                f"The release does not know records such as {fault.record} at offset "
                f"{fault.offset}: it skips them, and the {topic.unit} has another state than it "
                "had."
            )


def _lost(fault: LoadFault, verdict: ReleaseVerdict) -> str:
    """How many others a load loses that ends in silence."""
    if verdict.topic is not TRANSACTIONS:
        return ""
    others = sum(unit.last > fault.offset for unit in verdict.units)
    return f" ({counted(others, verdict.topic.unit)})"


def _story(faults: Sequence[LoadFault], release: str, topic: StateTopic) -> Iterator[str]:
    for fault in faults[:_SHOWN]:
        if fault.dropped:
            offsets = ", ".join(map(str, fault.dropped[:20]))
            yield f"offset {fault.offset}, {fault.record}: without the records at {offsets}"
    yield f"What to do: {advice(faults[0], release, topic)}"


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
        "variants": sum(unit.variants for unit in verdict.units),
        "compared": sum(unit.compared for unit in verdict.units),
        "disagreements": list(verdict.disagreements),
        _key(verdict.topic.units): [_unit(unit, verdict) for unit in verdict.units],
    }


def _key(noun: str) -> str:
    """`transactional_ids`."""
    return noun.replace(" ", "_")


def _unit(unit: UnitVerdict, verdict: ReleaseVerdict) -> JsonValue:
    return {
        _key(verdict.topic.unit): unit.name,
        "answer": _words(unit.answer, verdict.topic),
        "records": unit.records,
        "variants": unit.variants,
        "faults": [
            {
                "answer": _words(fault.answer, verdict.topic),
                "rule": fault.rule,
                "offset": fault.offset,
                "record": fault.record,
                "dropped": list(fault.dropped),
                "advice": advice(fault, verdict.release, verdict.topic),
            }
            for fault in unit.faults
        ],
    }
