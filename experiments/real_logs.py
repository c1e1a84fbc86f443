"""Logs of real clusters: do all releases that may load them load them, and do both judges agree?

A series is one broker that is upgraded in place over three releases, the features with it. At each
stage groups of all kinds live, move and die (coordinator_workload.py), while the cleaner compacts
segments of a few seconds. Then the broker stops or is killed, and every partition of a
coordinator's topic that holds a record is copied. Both judges of `kconform load` load each copy
with the release that wrote it, with those of the stages behind it, and with the newest one.

    python -m experiments.real_logs -o real-logs [--seconds 20] [--seed 1] [--limit 15]

What is there is not done again. `--limit` minutes: then no further stage or log is begun. Exit code
0: every log loads as it should. 1: one does not, or the judges do not agree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from conformance.kafka.client import Connection
from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.jars import NEWEST, kafka_jars, release_of
from conformance.load.classes import release_classes
from conformance.load.judgement import judge_release
from conformance.load.partition import read_partition
from conformance.load.topics import OFFSETS, TOPICS, topic_of
from conformance.modelcheck.specifications import Specifications
from conformance.stages.load import OLDEST
from experiments.coordinator_workload import Workload

SERIES = (
    ("3.9.2", "4.1.2", "4.3.1"),
    ("4.0.2", "4.2.2", "4.4.0"),
    ("4.1.0", "4.2.0", "4.3.0"),
    ("4.0.0", "4.1.1", "4.2.1"),
)
PROPERTIES: Mapping[str, str] = {
    "offsets.topic.num.partitions": "12",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
    "share.coordinator.state.topic.prune.interval.ms": "3000",
    # Segments that roll, and a cleaner that goes over them at once.
    "log.roll.ms": "2000",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.delete.retention.ms": "1500",
    # Members, offsets and transactional ids that go within a stage.
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.share.min.session.timeout.ms": "500",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
    "group.streams.min.session.timeout.ms": "500",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.initial.rebalance.delay.ms": "0",
    "offsets.retention.check.interval.ms": "2000",
    "transactional.id.expiration.ms": "8000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "2000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}
_UPGRADE = 1
"""FeatureUpdate.UpgradeType."""


@dataclass(frozen=True, slots=True)
class LogResult:
    """What a release makes of a log."""

    log: str
    release: str
    records: int
    units: int
    answers: Mapping[str, int]
    findings: Sequence[str]
    disagreements: Sequence[str]
    variants: int
    compared: int
    seconds: float

    @property
    def topic(self) -> str:
        """The topic's name."""
        return Path(self.log).name.rpartition("-")[0]


def make_stage(series: Sequence[str], number: int, folder: Path, seed: int, seconds: float) -> None:
    """Let a stage's release run on what the former ones left; copy the partitions."""
    release = series[number]
    chance = random.Random(f"{seed} {series} {number}")
    settings = ClusterSettings(seed=seed, properties=PROPERTIES)
    with Cluster(kafka_jars(release), folder / "broker", settings) as cluster:
        with cluster.connection() as connection:
            refused = upgrade_features(connection)
        workload = Workload(cluster, chance)
        workload.run(seconds)
        if chance.random() < 0.5:
            cluster.stop()
        (node,) = cluster.nodes.values()
    copied = copy_partitions(node.data, folder / "copying")
    (folder / "copying").rename(_stage(folder, series, number))
    print(f"{release}: {copied} partitions; done {dict(workload.done)}; "
          f"refused {[*refused, *map(str, workload.refused.items())]}", flush=True)  # fmt: skip


def upgrade_features(connection: Connection) -> list[str]:
    """Raise each feature to what the release supports, as an operator does; the refusals."""
    supported = connection.call("ApiVersions", _CLIENT, _API_VERSIONS)["supportedFeatures"]
    refused = []
    for feature in sorted(supported, key=lambda entry: entry["name"] != "metadata.version"):
        name, highest = feature["name"], feature["maxVersion"]
        if not highest or name.startswith("kraft"):
            continue
        update = {"feature": name, "maxVersionLevel": highest, "upgradeType": _UPGRADE}
        answer = connection.call("UpdateFeatures", {"featureUpdates": [update]})
        if answer["errorCode"]:
            refused.append(f"{name} {highest}: {answer['errorMessage']}")
    return refused


_CLIENT = {"clientSoftwareName": "kconform", "clientSoftwareVersion": "1"}
_API_VERSIONS = 4
"""Former versions leave out what may be level 0."""


def copy_partitions(data: Path, target: Path) -> int:
    """Copies of those that hold a record; how many."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    copied = 0
    for folder in sorted(path for name in TOPICS for path in data.glob(f"{name}-*")):
        segments = [path for path in folder.glob("*.log") if path.stem.isdigit()]
        if any(path.stat().st_size for path in segments):
            (target / folder.name).mkdir()
            for path in segments:
                shutil.copy(path, target / folder.name)
            copied += 1
    return copied


def _stage(folder: Path, series: Sequence[str], number: int) -> Path:
    return folder / f"{number + 1}-{series[number]}"


def logs_of(output: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Every distinct log, and the releases that may have to load it."""
    seen = set()
    for series in SERIES:
        folder = output / "-".join(series)
        for number in range(len(series)):
            releases = dict.fromkeys((*series[number:], NEWEST))
            asked = tuple(release for release in releases if release_of(release) >= OLDEST)
            for log in sorted(_stage(folder, series, number).glob("__*")):
                content = hashlib.sha256()
                for path in sorted(log.glob("*.log")):
                    content.update(path.name.encode() + path.read_bytes())
                if content.digest() not in seen:
                    seen.add(content.digest())
                    yield log, asked


def is_cleaned(log: Path) -> bool:
    """Whether offsets are missing: the cleaner, or pruning, has taken records away."""
    content = read_partition(log, whole=True)
    return bool(content.records) and content.count <= content.records[-1].offset


def judged(log: Path, release: str, output: Path, specifications: Specifications) -> LogResult:
    """Both judges' answer."""
    topic, started = topic_of(log), time.monotonic()
    content = read_partition(log, whole=topic is not OFFSETS)
    with release_classes(release) as classes:
        verdict = judge_release(
            content, release, kafka_jars(release).classpath, specifications, classes, topic
        )
    answers: dict[str, int] = {}
    for unit in verdict.units:
        answers[str(unit.answer)] = answers.get(str(unit.answer), 0) + 1
    findings = [
        f"{unit.name}: {unit.answer} {unit.faults[0].rule} at {unit.faults[0].offset}, "
        f"{unit.faults[0].record}"
        for unit in verdict.faulty
    ]
    findings += [f"damage: {damage.segment} {damage.detail}" for damage in content.damage]
    return LogResult(
        str(log.relative_to(output)),
        release,
        content.count,
        len(verdict.units),
        answers,
        findings,
        verdict.disagreements,
        sum(unit.variants for unit in verdict.units),
        sum(unit.compared for unit in verdict.units),
        round(time.monotonic() - started, 2),
    )


def table(results: Sequence[LogResult]) -> Iterator[str]:
    """By release and topic."""
    yield "| release | topic | logs | records | load as they should | do not | judges disagree | " \
        "variants | by the classes too | seconds |"  # fmt: skip
    yield f"|{'---|' * 10}"
    for key in sorted({(release_of(result.release), result.topic) for result in results}):
        chosen = [r for r in results if (release_of(r.release), r.topic) == key]
        bad = sum(bool(result.findings) for result in chosen)
        cells = (
            chosen[0].release,
            f"`{key[1]}`",
            len(chosen),
            sum(result.records for result in chosen),
            len(chosen) - bad,
            bad,
            sum(bool(result.disagreements) for result in chosen),
            sum(result.variants for result in chosen),
            sum(result.compared for result in chosen),
            f"{sum(result.seconds for result in chosen):.0f}",
        )
        yield f"| {' | '.join(map(str, cells))} |"


def main() -> int:
    """Make what is missing, judge what is not judged, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=15.0)
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.limit
    for number in range(3):
        for series in SERIES:
            folder = given.output / "-".join(series)
            if not _stage(folder, series, number).is_dir() and time.monotonic() < until:
                make_stage(series, number, folder, given.seed, given.seconds)
    results = judge_all(given.output, until)
    for line in table(results):
        print(line)
    bad = [result for result in results if result.findings or result.disagreements]
    for result in bad:
        for text in (*result.findings, *result.disagreements):
            print(f"{result.log} {result.release}: {text}")
    logs = sorted({result.log for result in results})
    cleaned = sum(is_cleaned(given.output / log) for log in logs)
    print(f"{len(logs)} logs, {cleaned} of them cleaned or pruned, {len(results)} loads asked")
    return 1 if bad else 0


def judge_all(output: Path, until: float) -> list[LogResult]:
    """The results that are there, and those that are not."""
    path = output / "results.ndjson"
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    results = [LogResult(**json.loads(line)) for line in lines]
    known = {(result.log, result.release) for result in results}
    specifications = Specifications()
    specifications.prepare([topic.model for topic in TOPICS.values()])
    with path.open("a", encoding="utf-8") as file:
        for log, releases in logs_of(output):
            for release in releases:
                if (str(log.relative_to(output)), release) in known or time.monotonic() > until:
                    continue
                results.append(judged(log, release, output, specifications))
                file.write(json.dumps(asdict(results[-1])) + "\n")
                file.flush()
    return results


if __name__ == "__main__":
    sys.exit(main())
