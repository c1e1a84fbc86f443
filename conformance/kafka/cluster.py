"""Real brokers on loopback: combined KRaft nodes that start, stop, die, pause, and end with us.

Each node has three listeners: for clients, between brokers, and for controllers. Where a tap sits
in front of them, nodes advertise the tap's ports (`Endpoints`), so that all traffic passes it.
"""

from __future__ import annotations

import base64
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from conformance.children import end_with_us
from conformance.errors import EnvironmentProblem, UserError
from conformance.kafka.client import BrokerGone, Connection
from conformance.kafka.jars import KafkaJars
from conformance.kafka.maven import Tell, silent
from conformance.kafka.ports import free_ports
from conformance.kafka.schemas import Body, Schemas
from conformance.tla import find_java

CLIENT, BROKER, CONTROLLER = LISTENERS = ("CLIENT", "BROKER", "CONTROLLER")
_KIP_853 = (3, 9, 0)
"""Since then followers go to where the leader of the quorum says that it is."""

DEFAULTS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "controlled.shutdown.enable": "true",
    "group.initial.rebalance.delay.ms": "200",
    "group.min.session.timeout.ms": "500",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "num.io.threads": "3",
    "num.network.threads": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "1048576",
    "replica.lag.time.max.ms": "3000",
    "transaction.state.log.num.partitions": "1",
}
"""Settings that make faults show within seconds and keep a node small."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What a cluster is made of."""

    brokers: int = 1
    seed: int = 0
    heap_mb: int = 320
    properties: Mapping[str, str] = field(default_factory=dict)
    """Broker settings besides `DEFAULTS`, or in their place."""
    jvm: tuple[str, ...] = ()
    """Further options of each node's JVM; `{node}` and `{folder}` are replaced."""
    listeners: Mapping[str, str] = field(default_factory=dict)
    """Further listeners for clients, by name the security protocol; what they need besides (keys,
    SASL mechanisms, users) is in `properties`, under listener.name.NAME. as Kafka has it."""
    scram: tuple[str, ...] = ()
    """Users, each as Kafka's StorageTool takes it: SCRAM-SHA-256=[name=alice,password=secret]."""
    ready_seconds: float = 120.0


class ClusterTimeout(EnvironmentProblem):
    """What was waited for did not come about: brokers were too slow for it, or too fast."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where nodes listen, and where the others are told to find them."""

    bound: Mapping[tuple[int, str], int]
    """(node, listener) -> port."""
    advertised: Mapping[tuple[int, str], int]
    """(node, listener) -> port that clients and brokers are told."""
    voters: Mapping[tuple[int, int], int]
    """(node, controller) -> port at which the node finds the controller."""

    @classmethod
    def direct(cls, nodes: Sequence[int]) -> Endpoints:
        """Nothing in between."""
        pairs = [(node, listener) for node in nodes for listener in LISTENERS]
        bound = dict(zip(pairs, free_ports(len(pairs)), strict=True))
        voters = {(node, other): bound[other, CONTROLLER] for node in nodes for other in nodes}
        return cls(bound, bound, voters)


class KafkaNode:
    """One broker and controller in a JVM of its own."""

    def __init__(self, number: int, folder: Path, command: Sequence[str]) -> None:
        self.number = number
        self.folder = folder
        self.starts = 0
        """How often it was started; the epoch of an event is counted from here."""
        self.paused = False
        self.wanted = False
        """Whether it was started, and nobody has ended it since."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What the broker logs."""
        return self.folder / "server.log"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.folder / "data"

    @property
    def running(self) -> bool:
        """Whether its process is there (paused counts)."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; it is not ready yet."""
        if self.running:
            return
        self.starts += 1
        self.wanted = True
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C at the terminal is for us: we end it in order
            )
        end_with_us(self._process)

    def stop(self, seconds: float = 30.0) -> None:
        """A controlled shutdown; killed if it takes too long."""
        self.wanted = False
        self.resume()
        self._signal(signal.SIGTERM)
        self._wait(seconds)

    def kill(self) -> None:
        """As a crash of the process; what the operating system holds for it stays on disk."""
        self.wanted = False
        self._signal(signal.SIGKILL)
        self._wait(10.0)
        self.paused = False

    def pause(self) -> None:
        """Stop the process where it is (SIGSTOP): a long pause of its garbage collector."""
        self._signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)
        self.paused = False

    def last_words(self) -> str:
        """The end of what it said, for an error message."""
        text = ""
        for path in (self.folder / "output.log", self.log):
            if path.is_file():
                text += path.read_text(encoding="utf-8", errors="replace")[-1500:]
        return text.strip()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _wait(self, seconds: float) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10.0)


class Cluster:
    """Brokers in a folder. Use as a context manager: leaving it ends all that it started."""

    def __init__(
        self,
        jars: KafkaJars,
        folder: Path,
        settings: ClusterSettings,
        *,
        schemas: Schemas | None = None,
        endpoints: Endpoints | None = None,
        tell: Tell = silent,
    ) -> None:
        self.jars = jars
        self.settings = settings
        self.schemas = schemas or Schemas.of(jars.classpath)
        numbers = range(1, settings.brokers + 1)
        self.endpoints = endpoints or Endpoints.direct(tuple(numbers))
        # A cluster's id is a uuid; Kafka refuses one that begins with a dash.
        drawn = random.Random(settings.seed).randbytes(16)
        self.cluster_id = "K" + base64.urlsafe_b64encode(drawn)[1:22].decode("ascii")
        pairs = [(node, name) for node in numbers for name in settings.listeners]
        self._further = dict(zip(pairs, free_ports(len(pairs)), strict=True))
        self._tell = tell
        self._java, _ = find_java(os.environ)
        folder = folder.absolute()  # Each broker runs in a folder of its own.
        self.nodes = {number: self._node(number, folder / f"node{number}") for number in numbers}

    def __enter__(self) -> Cluster:
        try:
            self._format()
            for node in self.nodes.values():
                node.start()
            self.await_ready(self.nodes)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    @property
    def bootstrap(self) -> str:
        """The addresses that a client is given."""
        ports = [self.endpoints.advertised[number, CLIENT] for number in self.nodes]
        return ",".join(f"127.0.0.1:{port}" for port in ports)

    def addresses(self, listener: str) -> str:
        """The addresses at one of the further listeners."""
        return ",".join(f"127.0.0.1:{self._further[number, listener]}" for number in self.nodes)

    def connection(self, number: int | None = None) -> Connection:
        """A connection to a node's own port, past any tap; to any that answers by default."""
        if number is not None:
            return Connection(self.schemas, self.endpoints.bound[number, CLIENT])
        problem = BrokerGone("No broker of the cluster is running.")
        for node in self.nodes.values():
            if node.running and not node.paused:
                try:
                    return Connection(self.schemas, self.endpoints.bound[node.number, CLIENT])
                except BrokerGone as error:
                    problem = error
        raise problem

    def client_port(self, number: int) -> int:
        """The port at which a node itself listens for clients."""
        return self.endpoints.bound[number, CLIENT]

    def await_ready(self, numbers: Iterable[int]) -> None:
        """Wait until these nodes are registered, unfenced, and all see one controller."""
        wanted = set(numbers)
        self._tell(f"waiting for brokers {', '.join(map(str, sorted(wanted)))}")
        self.await_that(
            f"brokers {sorted(wanted)} are ready",
            lambda: all(wanted <= self._seen_by(number) for number in wanted),
            self.settings.ready_seconds,
        )

    def await_that(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition of the cluster. Raises ClusterTimeout when it does not come true."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if holds():
                    return
            except BrokerGone:
                pass  # not yet, or not now
            self._check_alive(what)
            if time.monotonic() > deadline:
                words = "\n".join(node.last_words() for node in self.nodes.values())
                raise ClusterTimeout(
                    f"It did not come true within {seconds:.0f} s that {what}. The brokers' last "
                    f"words:\n{words[-4000:]}"
                )
            time.sleep(0.2)

    def metadata(self, topics: Sequence[str] | None = None, *, node: int | None = None) -> Body:
        """A node's answer to a Metadata request."""
        with self.connection(node) as connection:
            names = None if topics is None else [{"name": name} for name in topics]
            return connection.call("Metadata", {"topics": names})

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until every partition has a leader."""
        placed = [
            {"partitionIndex": index, "brokerIds": list(brokers)}
            for index, brokers in (assignment or {}).items()
        ]
        topic = {
            "name": name,
            "numPartitions": -1 if placed else partitions,
            "replicationFactor": -1 if placed else (replicas or min(3, len(self.nodes))),
            "assignments": placed,
            "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
        }
        with self.connection() as connection:
            answer = connection.call("CreateTopics", {"topics": [topic], "timeoutMs": 20_000})
        (result,) = answer["topics"]
        if result["errorCode"] not in (0, 36):  # TOPIC_ALREADY_EXISTS
            raise UserError(
                f"Topic {name} could not be created: error {result['errorCode']}, "
                f"{result.get('errorMessage')}"
            )
        self.await_that(f"topic {name} has leaders", lambda: self._has_leaders(name), 30.0)

    def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics; brokers let go of them soon after."""
        body = {"topics": [{"name": name} for name in names], "timeoutMs": 20_000}
        with self.connection() as connection:
            connection.call("DeleteTopics", body)

    def partition(self, topic: str, index: int = 0, *, node: int | None = None) -> Body:
        """Leader, leader epoch and ISR of a partition, as a node tells them, by default any."""
        (result,) = self.metadata([topic], node=node)["topics"]
        for entry in result["partitions"]:
            if entry["partitionIndex"] == index:
                partition: Body = entry
                return partition
        raise BrokerGone(f"Partition {topic}-{index} is not known yet.")

    def elect(self, topic: str, index: int = 0, *, unclean: bool = False) -> int:
        """Elect the preferred leader, or any; the error code (0, 84: it leads already)."""
        body = {
            "electionType": int(unclean),
            "topicPartitions": [{"topic": topic, "partitions": [index]}],
            "timeoutMs": 10_000,
        }
        with self.connection() as connection:
            answer = connection.call("ElectLeaders", body)
        results = answer["replicaElectionResults"]
        return int(results[0]["partitionResult"][0]["errorCode"]) if results else 0

    def controller(self) -> int:
        """The node whose controller is active."""
        body = {
            "topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]
        }
        with self.connection() as connection:
            answer = connection.call("DescribeQuorum", body)
        return int(answer["topics"][0]["partitions"][0]["leaderId"])

    def coordinator(self, group: str) -> int:
        """The node that coordinates a group."""
        with self.connection() as connection:
            answer = connection.call("FindCoordinator", {"keyType": 0, "coordinatorKeys": [group]})
        (result,) = answer["coordinators"]
        if result["errorCode"]:
            raise BrokerGone(f"Group {group} has no coordinator: error {result['errorCode']}.")
        return int(result["nodeId"])

    def end(self) -> None:
        """Kill every node; nothing that was started stays."""
        for node in self.nodes.values():
            node.kill()

    def stop(self) -> None:
        """Shut all nodes down in order, so that their data directories are complete."""
        for node in self.nodes.values():
            node.resume()
        for number, node in reversed(self.nodes.items()):
            # The last controllers have no quorum to hand over to: nothing to wait for.
            node.stop(20.0 if number > len(self.nodes) // 2 + 1 else 5.0)

    def _seen_by(self, number: int) -> set[int]:
        answer = self.metadata([], node=number)
        if answer["controllerId"] < 0:
            return set()
        return {broker["nodeId"] for broker in answer["brokers"]}

    def _has_leaders(self, name: str) -> bool:
        running = [node.number for node in self.nodes.values() if node.running and not node.paused]
        answers = [self.metadata([name], node=number)["topics"][0] for number in running]
        return all(
            not topic["errorCode"]
            and topic["partitions"]
            and all(entry["leaderId"] >= 0 for entry in topic["partitions"])
            for topic in answers
        )

    def _check_alive(self, what: str) -> None:
        """A node that ended by itself while we wait will not come back."""
        for node in self.nodes.values():
            if node.wanted and not node.running and what.startswith("brokers"):
                raise EnvironmentProblem(
                    f"Broker {node.number} ended while we waited until {what}. Its last words:\n"
                    f"{node.last_words()}"
                )

    def _node(self, number: int, folder: Path) -> KafkaNode:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "server.properties").write_text(self._properties(number, folder), "utf-8")
        for name, text in _LOGGING.items():
            (folder / name).write_text(text.replace("{log}", str(folder / "server.log")), "utf-8")
        jvm = [option.format(node=number, folder=folder) for option in self.settings.jvm]
        heap = f"{self.settings.heap_mb}m"
        options = [f"-Xmx{heap}", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command = [*self._command(folder, [*options, *jvm]), "kafka.Kafka", "server.properties"]
        return KafkaNode(number, folder, command)

    def _command(self, folder: Path, options: Sequence[str]) -> list[str]:
        logging = [
            f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}",
            f"-Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}",
            f"-Dkafka.logs.dir={folder}",
            "-Djava.awt.headless=true",
        ]
        return [str(self._java), *options, *logging, "-cp", str(self.jars)]

    @property
    def chosen(self) -> Mapping[str, str]:
        """The settings of every broker that are no matter of its place: ours, and the user's."""
        return {**DEFAULTS, **self.settings.properties}

    @property
    def _advertised(self) -> tuple[str, ...]:
        """The listeners that a node may advertise: controllers have addresses since KIP-853."""
        return LISTENERS if self.jars.release >= _KIP_853 else (CLIENT, BROKER)

    def _properties(self, number: int, folder: Path) -> str:
        ends = self.endpoints
        replicas = str(min(3, self.settings.brokers))
        voters = [
            f"{other}@127.0.0.1:{ends.voters[number, other]}"
            for other in range(1, self.settings.brokers + 1)
        ]
        more = self.settings.listeners
        own = {
            "process.roles": "broker,controller",
            "node.id": str(number),
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": CONTROLLER,
            "inter.broker.listener.name": BROKER,
            "listeners": _addresses({**ends.bound, **self._further}, number, (*LISTENERS, *more)),
            "advertised.listeners": _addresses(
                {**ends.advertised, **self._further}, number, (*self._advertised, *more)
            ),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}"
                for name, protocol in {**dict.fromkeys(LISTENERS, "PLAINTEXT"), **more}.items()
            ),
            "log.dirs": str(folder / "data"),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
        }
        if any(protocol.startswith("SASL") for protocol in more.values()):
            own["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        merged = {**self.chosen, **own, **self.settings.properties}
        return "".join(f"{key}={value}\n" for key, value in sorted(merged.items()))

    def _format(self) -> None:
        """Format the storage of nodes that have none, side by side."""
        fresh = [
            node for node in self.nodes.values() if not (node.data / "meta.properties").is_file()
        ]
        if not fresh:
            return
        self._tell(f"formatting {len(fresh)} nodes")
        options = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        tool = ["kafka.tools.StorageTool", "format", "-t", self.cluster_id]
        tool += [word for user in self.settings.scram for word in ("--add-scram", user)]
        running = [
            (
                node,
                subprocess.Popen(
                    [*self._command(node.folder, options), *tool, "-c", "server.properties"],
                    cwd=node.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                ),
            )
            for node in fresh
        ]
        for _, process in running:
            end_with_us(process)
        try:
            for node, process in running:
                words, _ = process.communicate(timeout=120)
                if process.returncode:
                    raise EnvironmentProblem(
                        f"The storage of node {node.number} could not be formatted: {words.strip()}"
                    )
        finally:
            for _, process in running:
                if process.poll() is None:  # interrupted, or another one failed
                    process.kill()
                    process.wait()


def _addresses(ports: Mapping[tuple[int, str], int], node: int, names: Iterable[str]) -> str:
    return ",".join(f"{name}://127.0.0.1:{ports[node, name]}" for name in names)


_LOGGING = {
    "log4j.properties": """log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={log}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
""",
    "log4j2.properties": """status=error
appender.file.type=File
appender.file.name=file
appender.file.fileName={log}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.file.ref=file
""",
}
"""Kafka's usual layout in one file, for reload4j (up to 3.9) and log4j2 (since 4.0)."""
