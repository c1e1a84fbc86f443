"""Many runs of one scenario on one start of the brokers, each a recording of its own.

A run has topics, groups, clients and faults of its own (`plans`), and begins when all brokers are
in order. What agents and tap wrote while it ran is cut out of their files into the run's folder; of
the agents' lines those about its own topics and groups. A broker that starts reads of the topics of
earlier runs, too: those lines are nobody's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from conformance.errors import EnvironmentProblem
from conformance.kafka.client import BrokerGone
from conformance.kafka.jars import KafkaJars
from conformance.kafka.maven import Tell, silent
from conformance.kafka.recording import (
    AGENTS,
    TAP,
    ScenarioRun,
    WatchedCluster,
    folder_aside,
    observations,
    prepared,
    remove_logging,
    started,
    write_manifest,
)
from conformance.kafka.scenario import Scenario, ScenarioPlan, run_of

SERIES = "series.json"
STALLED = 2.0
"""Seconds: where this process waits so long for its turn, brokers and clients do as well, and the
faults do not come when they should."""


@dataclass(frozen=True, slots=True)
class Series:
    """What was recorded, for a summary."""

    folder: Path
    runs: int
    spoiled: Mapping[str, str]
    """Run -> why it is none that could be judged."""
    observations: int
    faults: int


def plans(plan: ScenarioPlan, count: int) -> list[ScenarioPlan]:
    """So many runs of one scenario, each with names and a seed of its own."""
    return [run_of(plan, number, plan.seed + number - 1) for number in range(1, count + 1)]


def record_series(
    runs: Sequence[ScenarioPlan], jars: KafkaJars, output: Path, *, tell: Tell = silent
) -> Series:
    """Make these runs on brokers of the first one's settings; the series is the folder `output`.

    No two runs may share a name of a topic, group or client (`scenario.run_of`). The series ends
    early if the brokers cannot be brought in order again. Raises UserError if `output` is there
    already, a client library or Java is missing, or the brokers do not come up.
    """
    first = runs[0]
    with folder_aside(first, output) as folder:
        with started(first, jars, folder, tell) as brokers:
            recorder = _SeriesRecorder(jars, brokers, folder, tell)
            for number, plan in enumerate(runs, 1):
                if not recorder.run(f"r{number}", plan):
                    break
            brokers.cluster.stop()
        remove_logging(folder)
        for whole in (*folder.glob(AGENTS), *folder.glob(TAP)):
            whole.unlink()  # every run has its own part
        manifest = {
            "schema_version": 1,
            "kafka": jars.version,
            "seed": first.seed,
            "runs": recorder.ended,
        }
        (folder / SERIES).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        spoiled = {name: why for name, why in recorder.ended.items() if why}
        seen = sum(observations(folder / name) for name in recorder.ended)
        return Series(output, len(recorder.ended), spoiled, seen, recorder.faults)


class _SeriesRecorder:
    """Makes run after run on brokers that stay."""

    def __init__(self, jars: KafkaJars, brokers: WatchedCluster, folder: Path, tell: Tell) -> None:
        self._jars = jars
        self._brokers = brokers
        self._folder = folder
        self._tell = tell
        self._cuts = Cuts(folder)
        self.ended: dict[str, str] = {}
        """Run -> why it is spoiled, or nothing."""
        self.faults = 0

    def run(self, name: str, plan: ScenarioPlan) -> bool:
        """Make one run; whether the brokers are in order after it."""
        target = self._folder / name
        target.mkdir()
        run = ScenarioRun(plan, self._brokers.cluster, self._brokers.tap, {}, self._tell)
        problem, in_order = "", True
        try:
            run = prepared(plan, self._jars, self._brokers, target, self._teller(name))
            with run:
                run.drive()
                run.settle()
            if run.stalled > STALLED:
                problem = f"the machine was starved: nothing of ours ran for {run.stalled:.1f} s"
        except (BrokerGone, EnvironmentProblem) as error:
            problem = str(error)
            run.ended = time.monotonic_ns()
            in_order = self._restored(run)
        self._cuts.move(target, plan.scenario)
        write_manifest(target, self._jars, run, problem)
        self.ended[name] = problem
        self.faults += run.happened
        return in_order and self._forget(plan.scenario)

    def _teller(self, name: str) -> Tell:
        return lambda line: self._tell(f"{name}: {line}")

    def _restored(self, run: ScenarioRun) -> bool:
        try:
            run.restore()
        except (BrokerGone, EnvironmentProblem):
            return False
        return True

    def _forget(self, scenario: Scenario) -> bool:
        """Delete the run's topics: idle partitions cost brokers time in every fetch."""
        try:
            self._brokers.cluster.delete_topics([topic.name for topic in scenario.topic])
        except BrokerGone:
            return False
        return True


class Cuts:
    """Divides what agents and tap write to a folder among the runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def move(self, target: Path, scenario: Scenario) -> None:
        """Write what has been written since the last run to this run's folder."""
        own = _RunNames.of(scenario)
        for path in (*self._folder.glob(TAP), *self._folder.glob(AGENTS)):
            lines = self._new_lines(path)
            kept = lines if path.name == TAP else [line for line in lines if own.has(line)]
            place = target / path.relative_to(self._folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(b"".join(line + b"\n" for line in kept))

    def _new_lines(self, path: Path) -> list[bytes]:
        """The whole lines that were written since the last time."""
        begin = self._read.get(path, 0)
        with path.open("rb") as file:
            file.seek(begin)
            whole = file.read().rpartition(b"\n")[0]
        self._read[path] = begin + len(whole) + 1 if whole else begin
        return whole.split(b"\n") if whole else []


class _LineSubject(msgspec.Struct):
    """What a line of the agent is about."""

    partition: str = ""
    registration: str = ""
    group: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _RunNames:
    """The names that are a run's own."""

    topics: frozenset[str]
    groups: frozenset[str]

    @classmethod
    def of(cls, scenario: Scenario) -> _RunNames:
        return cls(
            frozenset(topic.name for topic in scenario.topic),
            frozenset(client.group for client in scenario.client if client.group),
        )

    def has(self, line: bytes) -> bool:
        """Whether the run has to do with it; what the agent could not do, every run has.

        A process that was killed may leave a line unfinished: the next one's first is glued to it.
        """
        try:
            about = msgspec.json.decode(line, type=_LineSubject)
        except msgspec.DecodeError:
            return False
        topic = (about.partition or about.registration).rpartition("-")[0]
        return topic in self.topics or about.group in self.groups or bool(about.problem)
