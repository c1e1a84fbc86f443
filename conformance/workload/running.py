"""Runs a workload: starts clients, kills them, ends them, and reads everything once more."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType

import msgspec

from conformance.errors import UserError
from conformance.kafka.clients import require
from conformance.kafka.jars import KafkaJars
from conformance.kafka.java import compile_java
from conformance.kafka.maven import Tell
from conformance.kafka.recording import RecordedClientProcess
from conformance.workload.brokers import prepared
from conformance.workload.client import DRAIN_S, ClientJob
from conformance.workload.plan import (
    CONSUMER_PROTOCOL_LIBRARIES,
    FIRST_S,
    LIBRARIES,
    MAX_MESSAGE_BYTES,
    ClientRole,
    InstancePlan,
    ProducerKind,
    WorkloadSettings,
    ending_plan,
    workload_plan,
)
from conformance.workload.ports import ANSWER_S

CLIENTS = "clients"
"""The folder of the plans, and of what clients print."""
SUMMARY = "workload.json"
_JAVA = Path(__file__).resolve().parent / "java" / "Workload.java"
_STARTING_S = 60.0
"""Seconds that clients have to start: on a busy machine a JVM takes half of it."""
_CALLS = 5
"""Of the longest operation, which each may take their time-out: a transaction sends, commits
positions, tries to commit and to abort, and its producer is closed."""
_PATIENCE_S = _CALLS * ANSWER_S + 20.0
"""Seconds that a client has to finish what it is at, and to close."""
_FENCING_S = 180.0
"""Seconds that the closer has for all transactional ids and the last values, while brokers may
still be coming back."""
_CLOSING_S = 10.0
_IN_ORDER = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit codes of clients: a young one has no handler of SIGTERM yet, and a JVM adds 128."""


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    """What became of a workload."""

    files: tuple[Path, ...]
    clients: int
    killed: int
    problems: tuple[str, ...]
    """Clients that ended by themselves, or did not end, or could not read to the end."""


@dataclass(frozen=True, slots=True)
class WorkloadPlace:
    """Where clients find brokers, and where they write."""

    bootstrap: str
    output: Path
    jars: KafkaJars | None
    """Kafka's own client, if it takes part."""
    unclean_election: bool = False


def check_libraries(libraries: Sequence[str]) -> None:
    """Raise UserError if one is unknown or not installed."""
    for library in libraries:
        if library not in LIBRARIES:
            raise UserError(f"There is no client {library!r}. There are {', '.join(LIBRARIES)}.")
        if library != "java":
            require(library)


def run_workload(settings: WorkloadSettings, place: WorkloadPlace, tell: Tell) -> WorkloadReport:
    """Make a history of `settings.seconds` seconds. Raises UserError.

    If it is interrupted, clients are ended in order first: their files can be read.
    """
    unclean = str(place.unclean_election).lower()
    configs = {"unclean.leader.election.enable": unclean, "cleanup.policy": "delete"}
    configs |= {"retention.ms": "-1", "max.message.bytes": str(MAX_MESSAGE_BYTES)}
    features = prepared(place.bootstrap, settings.all_topics, settings.partitions, configs, tell)
    version = features.get("transaction.version", 0)
    if features.get("group.version", 0) > 0:
        settings = replace(settings, consumer_protocol=_consumer_protocol(place))
    (place.output / CLIENTS).mkdir(parents=True)
    classes = None
    if place.jars is not None:
        classes = compile_java([_JAVA], place.jars.classpath, tell=tell)
    with WorkloadRun(settings, place, version, classes, tell) as run:
        run.drive(workload_plan(settings))
        closer, *readers = ending_plan(settings)
        run.finish([closer], _FENCING_S)
        run.finish(readers, DRAIN_S + _PATIENCE_S)
        report = run.report()
    summary = {
        "seed": settings.seed,
        "topics": settings.all_topics,
        "settings": {**asdict(settings), "kinds": [str(kind) for kind in settings.kinds]},
        "transaction_version": version,
        "clients": report.clients,
        "killed": report.killed,
        "problems": report.problems,
    }
    (place.output / SUMMARY).write_text(json.dumps(summary, indent=1), encoding="utf-8")
    return report


def _consumer_protocol(place: WorkloadPlace) -> tuple[str, ...]:
    """The libraries that speak KIP-848 as it was released: of Java's clients those of 4.0."""
    old = place.jars is not None and place.jars.release < (4, 0, 0)
    return tuple(name for name in CONSUMER_PROTOCOL_LIBRARIES if not (old and name == "java"))


@dataclass(slots=True)
class WorkloadRun:
    """A workload while it runs. Use as a context manager: leaving it ends all clients."""

    settings: WorkloadSettings
    place: WorkloadPlace
    transaction_version: int
    classes: Path | None
    tell: Tell
    killed: int = 0
    problems: list[str] = field(default_factory=list)
    _processes: dict[str, RecordedClientProcess] = field(default_factory=dict)
    _is_dead: set[str] = field(default_factory=set)

    def __enter__(self) -> WorkloadRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            process.ask_to_stop()
        for process in self._processes.values():
            process.await_end(_CLOSING_S)

    def drive(self, plan: Sequence[InstancePlan]) -> None:
        """Start and kill instances at their times, until the workload's time is over.

        Time begins when the first instances run: on a busy machine that takes a while.
        """
        waiting = list(plan)
        while waiting and waiting[0].starts < FIRST_S:
            self._start(waiting.pop(0))
        self._await_logs(list(self._processes), _STARTING_S)
        began = time.monotonic()
        while (now := time.monotonic() - began) < self.settings.seconds:
            while waiting and waiting[0].starts <= now:
                self._start(waiting.pop(0))
            for instance in plan:
                if instance.dies is not None and instance.dies <= now:
                    self._kill(instance)
            self.tell(f"{now:.0f} of {self.settings.seconds:.0f} s")
            time.sleep(0.05)
        started = [instance for instance in plan if instance.process in self._processes]
        for instance in started:
            self._processes[instance.process].ask_to_stop()
        self._await(started, _PATIENCE_S)

    def finish(self, plan: Sequence[InstancePlan], seconds: float) -> None:
        """Start instances and wait for their end, so long from their first line on."""
        self.tell(f"{', '.join(instance.client for instance in plan)}")
        for instance in plan:
            self._start(instance)
        self._await_logs([instance.process for instance in plan], _STARTING_S)
        self._await(plan, seconds)

    def report(self) -> WorkloadReport:
        """What became of it so far."""
        files = tuple(sorted(self.place.output.glob("*.ndjson")))
        return WorkloadReport(files, len(self._processes), self.killed, tuple(self.problems))

    def _await_logs(self, processes: Sequence[str], seconds: float) -> None:
        """Wait until these have written a line, or have ended."""
        until = time.monotonic() + seconds
        for name in processes:
            log = self._log_of(name)
            while not log.exists() and time.monotonic() < until:
                if self._processes[name].exit_code is not None:
                    break
                time.sleep(0.05)

    def _log_of(self, process: str) -> Path:
        return (self.place.output / f"{process}.ndjson").absolute()

    def _await(self, plan: Sequence[InstancePlan], seconds: float) -> None:
        """Let instances come to the end of their plans; what takes too long is killed."""
        until = time.monotonic() + seconds
        for instance in plan:
            process = self._processes[instance.process]
            while process.exit_code is None and time.monotonic() < until:
                time.sleep(0.05)
            if process.exit_code is None:
                process.kill()
                self.problems.append(f"{instance.process} ({instance.library}) did not end in time")
            elif process.exit_code not in _IN_ORDER and instance.process not in self._is_dead:
                self.problems.append(self._words(instance))

    def _start(self, instance: InstancePlan) -> None:
        folder = self.place.output / CLIENTS
        job = ClientJob(
            self.place.bootstrap,
            instance,
            str(self._log_of(instance.process)),
            self._declared(instance),
        )
        path = folder / f"{instance.process}.json"
        path.write_bytes(msgspec.json.encode(job))
        process = RecordedClientProcess(
            self._command(instance, path), folder / f"{instance.process}.out"
        )
        process.start()
        self._processes[instance.process] = process

    def _command(self, instance: InstancePlan, job: Path) -> list[str]:
        if instance.library != "java":
            return [sys.executable, "-m", "conformance.workload.client", str(job)]
        java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        path = f"{self.classes}:{self.place.jars}"
        return [*java, "-cp", path, "kconform.workload.Workload", str(job)]

    def _declared(self, instance: InstancePlan) -> dict[str, str | bool | int]:
        """What `history` must know of the client to judge it."""
        jars = self.place.jars
        newest = (
            instance.library == "java"
            and jars is not None
            and jars.release >= (4, 0, 0)
            and self.transaction_version >= 2
        )
        declared: dict[str, str | bool | int] = {}
        if instance.role in {
            ClientRole.MEMBER,
            ClientRole.READER,
            ClientRole.FINAL_READER,
            ClientRole.TRANSFORMER,
        }:
            declared["isolation"] = instance.isolation
        if instance.role in {ClientRole.TRANSACTIONS, ClientRole.TRANSFORMER}:
            declared["transaction_version"] = 2 if newest else 1
        if instance.role is ClientRole.PRODUCER:
            declared["acks"] = "all" if instance.acks == "all" else "1"
            declared["idempotence"] = instance.kind is not ProducerKind.PLAIN
        return {**declared, "unclean_election": self.place.unclean_election}

    def _kill(self, instance: InstancePlan) -> None:
        if instance.process in self._is_dead or instance.process not in self._processes:
            return
        self._processes[instance.process].kill()
        self._is_dead.add(instance.process)
        self.killed += 1

    def _words(self, instance: InstancePlan) -> str:
        path = self.place.output / CLIENTS / f"{instance.process}.err"
        last = path.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["nothing"]
        return f"{instance.process} ({instance.library}) ended by itself; its last words: {last[0]}"
