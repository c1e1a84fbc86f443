"""Runs a scenario against real brokers and collects what tap, agent, clients and disks tell.

A recording is a folder that appears whole or not at all (docs/cluster.md says what is in it).
`series` makes many of them on one start of the brokers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from conformance.children import end_with_us
from conformance.errors import EnvironmentProblem, UserError
from conformance.files import space_for
from conformance.kafka.agent import build_agent
from conformance.kafka.client import BrokerGone
from conformance.kafka.clients import require
from conformance.kafka.cluster import Cluster, ClusterSettings, Endpoints
from conformance.kafka.jars import KafkaJars
from conformance.kafka.java import compile_java
from conformance.kafka.maven import Tell, silent
from conformance.kafka.scenario import ScenarioClient, ScenarioPlan, ScheduledFault, as_json
from conformance.kafka.schemas import Schemas
from conformance.kafka.tap import TapThread, writer_to
from conformance.kafka.tapped import tapped
from conformance.printable import counted

SCHEMA_VERSION = 1
TAP = "tap.ndjson"
AGENTS = "node*/agent.ndjson"
_ASSIGNORS = ",".join(
    f"org.apache.kafka.clients.consumer.{name}Assignor" for name in ("Range", "RoundRobin")
)
_JAVA_CLIENT = Path(__file__).resolve().parent / "javaclient" / "Consumer.java"


@dataclass(frozen=True, slots=True)
class RecordingSummary:
    """What was recorded, for a summary."""

    folder: Path
    messages: int
    undecoded: int
    observations: int
    faults: int


class RecordedClientProcess:
    """A client in a process of its own that can be started, ended in order, and killed."""

    def __init__(self, command: Sequence[str], output: Path) -> None:
        self._command = command
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        with self._output.open("ab") as out, self._output.with_suffix(".err").open("ab") as err:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        end_with_us(self._process)

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs, or before it was started."""
        return None if self._process is None else self._process.poll()

    def stop(self, seconds: float = 8.0) -> None:
        """Let it close in order."""
        self.ask_to_stop()
        self.await_end(seconds)

    def ask_to_stop(self) -> None:
        """Begin to close in order."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def await_end(self, seconds: float) -> None:
        """Wait for its end; killed if it takes too long."""
        if self._process is not None:
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Its crash."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(10.0)


@dataclass(slots=True)
class _ScheduledUndo:
    """Something to undo at a time."""

    at: float
    what: str
    node: int


@dataclass(slots=True)
class ScenarioRun:
    """A scenario while it runs."""

    plan: ScenarioPlan
    cluster: Cluster
    tap: TapThread | None
    clients: Mapping[str, RecordedClientProcess]
    tell: Tell
    done: list[dict[str, Any]] = field(default_factory=list)
    ended: int = 0
    """When the scenario was over: from then on topics are deleted, or brokers shut down."""
    stalled: float = 0.0
    """Seconds by which this process, asking for a moment's sleep, was woken too late at most."""
    _due: list[_ScheduledUndo] = field(default_factory=list)

    def __enter__(self) -> ScenarioRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in self.clients.values():
            client.kill()

    def drive(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Start clients and faults at their times until the scenario is over, or does not go on."""
        started = time.monotonic()
        waiting = list(self.plan.faults)
        scenario = self.plan.scenario
        unstarted = [client for client in scenario.client if client.starts >= 0]
        while (now := time.monotonic() - started) < scenario.seconds and goes_on():
            for client in [client for client in unstarted if client.starts <= now]:
                unstarted.remove(client)
                self.clients[client.name].start()
            for due in [undo for undo in self._due if undo.at <= now]:
                self._due.remove(due)
                self._undo(due)
            while waiting and waiting[0].at <= now:
                self._happen(waiting.pop(0), now)
            self.tell(f"{now:.0f} of {scenario.seconds:.0f} s, {counted(len(self.done), 'fault')}")
            self._rest(0.05)

    def settle(self) -> None:
        """Undo what is still disturbed, and let clients end in order.

        Observations from here on belong to the end of the recording, not to the scenario.
        """
        self.restore()
        time.sleep(1.0)
        for client in self.clients.values():
            client.ask_to_stop()
        for client in self.clients.values():
            client.await_end(8.0)
        self.ended = time.monotonic_ns()

    def restore(self) -> None:
        """Undo what is still disturbed, and wait until all brokers are in order."""
        for due in self._due:
            self._undo(due)
        self._due.clear()
        self.cluster.await_ready(self.cluster.nodes)

    def _rest(self, seconds: float) -> None:
        before = time.monotonic()
        time.sleep(seconds)
        self.stalled = max(self.stalled, time.monotonic() - before - seconds)

    @property
    def happened(self) -> int:
        """How many faults came true."""
        return sum("at" in fault and not fault["problem"] for fault in self.done)

    def lines(self) -> Iterator[str]:
        """The faults that happened or could not, for a reader."""
        for fault in self.done:
            if fault.get("problem"):
                yield f"{fault['action']} did not happen: {fault['problem']}"
            elif "at" in fault:
                yield f"{fault['at']:.0f} s: {fault['action']} of broker {fault['node']}"

    def _happen(self, fault: ScheduledFault, now: float) -> None:
        """Let one fault happen; one that cannot is noted as such."""
        node, problem = 0, ""
        try:
            node = self._act(fault, now)
        except (BrokerGone, EnvironmentProblem) as error:
            problem = str(error)
        self.done.append(
            {**as_json(fault), "time": time.monotonic_ns(), "node": node, "problem": problem}
        )

    def _act(self, fault: ScheduledFault, now: float) -> int:
        match fault.action:
            case "kill-client":
                self.clients[fault.client].kill()
                return 0
            case "stop-client":
                self.clients[fault.client].stop()
                return 0
            case "start-client":
                self.clients[fault.client].start()
                return 0
            case "elect":
                for index in range(self._partitions(fault.topic)):
                    self.cluster.elect(fault.topic, index)
                return 0
        number = self._node(fault)
        if number not in self.cluster.nodes:
            raise BrokerGone(f"There is no {fault.node} now.")
        if any(due.node == number for due in self._due):
            raise BrokerGone(f"Node {number} is disturbed already.")
        node = self.cluster.nodes[number]
        match fault.action:
            case "kill":
                node.kill()
            case "stop":
                node.stop()
            case "pause":
                node.pause()
            case _:
                self._isolate(number)
        undo = {"kill": "start", "stop": "start", "pause": "resume"}.get(fault.action, "mend")
        self._due.append(_ScheduledUndo(now + fault.seconds, undo, number))
        return number

    def _partitions(self, name: str) -> int:
        (topic,) = [topic for topic in self.plan.scenario.topic if topic.name == name]
        return topic.partitions

    def _isolate(self, number: int) -> None:
        """Cut a node from the other controllers, both ways: as a leader it becomes a zombie."""
        if self.tap is None:
            raise UserError("The fault isolate needs the tap: leave `tap = false` out.")
        others = [other for other in self.cluster.nodes if other != number]
        links = [f"{number}->{other}:controller" for other in others]
        self.tap.cut(*links, *(f"{other}->{number}:controller" for other in others))

    def _undo(self, due: _ScheduledUndo) -> None:
        match due.what:
            case "start":
                self.cluster.nodes[due.node].start()
            case "resume":
                self.cluster.nodes[due.node].resume()
            case _:
                assert self.tap is not None
                self.tap.mend()
        self.done.append({"action": due.what, "time": time.monotonic_ns(), "node": due.node})

    def _node(self, fault: ScheduledFault) -> int:
        if isinstance(fault.node, int):
            return fault.node
        kind, _, name = fault.node.partition(":")
        match kind:
            case "controller":
                return self.cluster.controller()
            case "coordinator":
                return self.cluster.coordinator(name)
            case "leader":
                return int(self.cluster.partition(name)["leaderId"])
            case "follower":
                result = self.cluster.partition(name)
                return min(set(result["isrNodes"]) - {result["leaderId"]}, default=0) or int(
                    result["leaderId"]
                )
        raise UserError(
            f"A fault's node is a number, leader:TOPIC, follower:TOPIC, controller or "
            f"coordinator:GROUP, not {fault.node!r}."
        )


@dataclass(frozen=True, slots=True)
class WatchedCluster:
    """A cluster that is ready, with what watches it."""

    cluster: Cluster
    tap: TapThread | None


@contextmanager
def started(
    plan: ScenarioPlan, jars: KafkaJars, folder: Path, tell: Tell
) -> Iterator[WatchedCluster]:
    """The brokers of a scenario, recorded in this folder; they end with the block."""
    scenario = plan.scenario
    schemas = Schemas.of(jars.classpath)
    with ExitStack() as stack:
        ends: Endpoints | None = None
        tap: TapThread | None = None
        if scenario.tap:
            ends, links = tapped(range(1, scenario.brokers + 1))
            # Line by line, so that what has happened is in the file.
            file = stack.enter_context((folder / TAP).open("w", buffering=1, encoding="utf-8"))
            tap = stack.enter_context(TapThread(schemas, links, writer_to(file)))
        settings = ClusterSettings(
            brokers=scenario.brokers,
            seed=plan.seed,
            properties=scenario.settings,
            jvm=_agent_options(scenario.agent, jars, tell),
        )
        cluster = Cluster(jars, folder, settings, schemas=schemas, endpoints=ends, tell=tell)
        yield WatchedCluster(stack.enter_context(cluster), tap)


def prepared(
    plan: ScenarioPlan, jars: KafkaJars, brokers: WatchedCluster, folder: Path, tell: Tell = silent
) -> ScenarioRun:
    """A run of the plan whose topics are there, and whose clients will write to the folder."""
    cluster = brokers.cluster
    for topic in plan.scenario.topic:
        cluster.create_topic(
            topic.name,
            partitions=topic.partitions,
            replicas=topic.replicas or None,
            configs=topic.configs,
        )
    clients = _clients(plan, jars, cluster.bootstrap, folder / "clients", tell)
    return ScenarioRun(plan, cluster, brokers.tap, clients, tell)


@contextmanager
def folder_aside(plan: ScenarioPlan, output: Path) -> Iterator[Path]:
    """A folder that becomes `output` if the block ends well, and is removed if it does not.

    Raises UserError if `output` is there already, or a client library is missing.
    """
    if output.exists():
        raise UserError(f"{output} exists already. Remove it, or name another folder with -o.")
    for library in {client.library for client in plan.scenario.client} - {"java"}:
        require(library)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as aside:
        folder = Path(aside) / "recording"
        folder.mkdir()
        with space_for(output):
            yield folder
            folder.rename(output)


def record(
    plan: ScenarioPlan, jars: KafkaJars, output: Path, *, tell: Tell = silent
) -> RecordingSummary:
    """Run the plan; the recording is then the folder `output`.

    Raises UserError if `output` is there already, a client library or Java is missing, or the
    brokers do not come up.
    """
    with folder_aside(plan, output) as folder:
        with (
            started(plan, jars, folder, tell) as brokers,
            prepared(plan, jars, brokers, folder, tell) as run,
        ):
            run.drive()
            run.settle()
            brokers.cluster.stop()
        remove_logging(folder)
        write_manifest(folder, jars, run)
        return RecordingSummary(
            output,
            brokers.tap.passed if brokers.tap else 0,
            brokers.tap.undecoded if brokers.tap else 0,
            observations(folder),
            run.happened,
        )


def _agent_options(wanted: bool, jars: KafkaJars, tell: Tell) -> tuple[str, ...]:
    if not wanted:
        return ()
    agent = build_agent(jars, tell=tell)
    return (agent.option("{node}", Path("{folder}") / "agent.ndjson"),)


def _clients(
    plan: ScenarioPlan, jars: KafkaJars, bootstrap: str, folder: Path, tell: Tell
) -> dict[str, RecordedClientProcess]:
    folder.mkdir()
    return {
        client.name: RecordedClientProcess(
            _command(client, jars, bootstrap, tell), folder / f"{client.name}.ndjson"
        )
        for client in plan.scenario.client
    }


def _command(client: ScenarioClient, jars: KafkaJars, bootstrap: str, tell: Tell) -> list[str]:
    if client.library != "java":
        options = {**msgspec.to_builtins(client), "bootstrap": bootstrap}
        module = "conformance.kafka.clients"
        return [sys.executable, "-m", module, client.role, json.dumps(options)]
    classes = compile_java([_JAVA_CLIENT], jars.classpath, tell=tell)
    settings = {
        "bootstrap.servers": bootstrap,
        "client.id": client.name,
        "group.id": client.group,
        "group.protocol": "classic",
        "session.timeout.ms": client.session_ms,
        "heartbeat.interval.ms": max(100, client.session_ms // 5),
        "max.poll.interval.ms": client.max_poll_ms,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
        # The other libraries know these two: members of one group need one in common.
        "partition.assignment.strategy": _ASSIGNORS,
    }
    if client.instance:
        settings["group.instance.id"] = client.instance
    java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    pairs = [f"{key}={value}" for key, value in settings.items()]
    main = "kconform.client.Consumer"
    return [*java, "-cp", f"{classes}:{jars}", main, client.topic, *pairs]


def observations(folder: Path) -> int:
    """How many lines the agents have written there."""
    count = 0
    for path in folder.glob(AGENTS):
        with path.open("rb") as file:
            count += sum(1 for _ in file)
    return count


def remove_logging(folder: Path) -> None:
    """Remove what told the brokers how to log: it names places that are no longer there."""
    for leftover in folder.glob("node*/log4j*.properties"):
        leftover.unlink()


def write_manifest(folder: Path, jars: KafkaJars, run: ScenarioRun, spoiled: str = "") -> None:
    """Write what the recording is; `spoiled` says why it is none that could be judged."""
    plan, cluster = run.plan, run.cluster
    (folder / "scenario.toml").write_text(plan.text, encoding="utf-8")
    manifest = {
        "schema_version": SCHEMA_VERSION,
        "kafka": jars.version,
        "seed": plan.seed,
        "scenario_sha256": plan.digest,
        "cluster_id": cluster.cluster_id,
        "brokers": sorted(cluster.nodes),
        "settings": dict(cluster.chosen),
        "starts": {number: node.starts for number, node in cluster.nodes.items()},
        "ended": run.ended,
        "spoiled": spoiled,
        "faults": run.done,
    }
    text = json.dumps(manifest, indent=1)
    (folder / "recording.json").write_text(text, encoding="utf-8")
