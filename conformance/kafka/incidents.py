"""Incidents made to order on real brokers: what happened is known, and the files are left behind.

Each incident is a short script against a cluster of three brokers. What remains is what an engineer
has the day after: copies of the brokers' data directories and their server logs, in `b1` to `b3`.
"""

from __future__ import annotations

import base64
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

from conformance.errors import EnvironmentProblem, UserError
from conformance.kafka.batches import batch_bytes
from conformance.kafka.client import BrokerGone, Connection
from conformance.kafka.cluster import Cluster, ClusterSettings, ClusterTimeout
from conformance.kafka.frames import batches
from conformance.kafka.jars import KafkaJars
from conformance.kafka.maven import Tell, silent
from conformance.kafka.schemas import Body, Schemas

TOPIC = "orders"
SHARED = "parcels"
"""A topic of several partitions, which a consumer group shares."""
_PRODUCE_VERSION = 9
"""The newest that names its topics (later ones have ids); every release from 2.7 on takes it."""
_UNKNOWN_MEMBER = 25
_FENCED_EPOCH = 110
_ROUNDS = 60
_ATTEMPTS = 4
_SMALL_FILES = {"log.index.size.max.bytes": "65536"}


@dataclass(frozen=True, slots=True)
class Incident:
    """What happens, and the settings under which it can happen."""

    summary: str
    script: Callable[[IncidentStage], None]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IncidentStage:
    """What a script works with: the cluster, one topic, and where the copies go."""

    cluster: Cluster
    output: Path
    tell: Tell

    def produce(
        self, count: int, *, node: int | None = None, acks: int = -1, text: str = "order"
    ) -> int:
        """Append so many batches of one record; the last one's offset. Raises BrokerGone.

        To the leader, whoever it is by the time, unless a node is named.
        """
        last = -1
        for number in range(count):
            value = f"{text} {number}".encode()
            last = self._append(value, acks) if node is None else self._append_at(node, value, acks)
        return last

    def _append(self, value: bytes, acks: int) -> int:
        deadline = time.monotonic() + 30
        while True:
            try:
                return self._append_at(self.leader()[0], value, acks)
            except BrokerGone:  # not every broker knows the newest leader yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _append_at(self, node: int, value: bytes, acks: int) -> int:
        port = self.cluster.client_port(node)
        with Connection(self.cluster.schemas, port, seconds=60) as connection:
            return append(connection, value, acks)

    def leader(self) -> tuple[int, int]:
        """Leader and leader epoch as a running broker tells them."""
        result = self.cluster.partition(TOPIC)
        return int(result["leaderId"]), int(result["leaderEpoch"])

    def await_leader(self, node: int | None = None, *, other_than: int | None = None) -> None:
        """Wait for a certain leader, or for any but one."""

        def holds() -> bool:
            leader, _ = self.leader()
            return leader >= 0 and leader != other_than and node in (None, leader)

        self.cluster.await_that(f"{TOPIC} has the leader {node or 'that is wanted'}", holds, 60.0)

    def await_isr(self, members: set[int]) -> None:
        """Wait until the ISR is this set."""

        def holds() -> bool:
            return set(self.cluster.partition(TOPIC)["isrNodes"]) == members

        self.cluster.await_that(f"the ISR of {TOPIC} is {sorted(members)}", holds, 60.0)

    def restart(self, node: int) -> None:
        """Start a node that is down; return when it is in the ISR again."""
        self.cluster.nodes[node].start()
        self.cluster.await_ready([node])
        self.await_isr({*self.cluster.partition(TOPIC)["isrNodes"], node})

    def log_end(self, node: int) -> int:
        """The end of a node's log, off its first segment: an incident's logs have one.

        0 as well before the node has made the log, of which it learns later than the controller.
        """
        path = self.cluster.nodes[node].data / f"{TOPIC}-0" / f"{0:020}.log"
        result = batches(path.read_bytes()) if path.exists() else []
        return result[-1]["lastOffset"] + 1 if result else 0

    def copy(self) -> None:
        """Copy every node's data directory and server log, as a backup of running brokers does."""
        for number, node in self.cluster.nodes.items():
            target = self.output / f"b{number}"
            lock = shutil.ignore_patterns(".lock")
            shutil.copytree(node.data, target / "data", ignore=lock, copy_function=_copy_if_there)
            shutil.copy2(node.log, target / "server.log")

    def await_that_elected(self, node: int) -> None:
        """Have a replica elected that is outside the ISR, if the controller has not done so."""

        def holds() -> bool:
            if self.leader()[0] != node:
                self.cluster.elect(TOPIC, unclean=True)
            return self.leader()[0] == node

        self.cluster.await_that(f"broker {node} leads {TOPIC}", holds, 60.0)

    def await_checkpoint(self, node: int, offset: int) -> None:
        """Wait until a node's checkpointed high watermark is at least this offset."""
        path = self.cluster.nodes[node].data / "replication-offset-checkpoint"

        def holds() -> bool:
            text = path.read_text("utf-8") if path.exists() else ""
            rows = [line.split() for line in text.splitlines()[2:]]
            return any(row[:2] == [TOPIC, "0"] and int(row[2]) >= offset for row in rows)

        self.wait_until(f"broker {node} has exposed the records below {offset}", holds)

    def wait_until(self, what: str, holds: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait for something on disk. Raises EnvironmentProblem."""
        self.cluster.await_that(what, holds, seconds)


def _copy_if_there(source: str, target: str) -> None:
    """Copy a file that a running broker may remove meanwhile."""
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


def make(name: str, jars: KafkaJars, output: Path, *, seed: int = 0, tell: Tell = silent) -> None:
    """Let an incident happen; its files are then in `output`, whole or not at all.

    Where brokers are too fast or too slow for the script it starts again with new ones, at most
    `_ATTEMPTS` times.

    Raises UserError if there is no such incident or if `output` exists already.
    Raises ClusterTimeout if the brokers did not reach the state that the incident needs.
    """
    if name not in INCIDENTS:
        raise UserError(f"There is no incident {name!r}. There are {', '.join(INCIDENTS)}.")
    if output.exists():
        raise UserError(f"{output} exists already. Remove it, or name another folder with -o.")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _attempt(INCIDENTS[name], jars, output, seed, tell)
            break
        except ClusterTimeout as problem:
            if attempt == _ATTEMPTS:
                raise ClusterTimeout(
                    f"The incident {name} did not happen in {_ATTEMPTS} attempts: its script needs "
                    f"a machine that is less busy. The last attempt: {problem}"
                ) from problem
            first_line, *_ = str(problem).splitlines()
            tell(f"attempt {attempt + 1} of {_ATTEMPTS}, with new brokers: {first_line}")


def _attempt(incident: Incident, jars: KafkaJars, output: Path, seed: int, tell: Tell) -> None:
    aside = output.with_name(f".{output.name}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    work, copies = aside / "work", aside / "copies"
    settings = ClusterSettings(3, seed, properties={**_SMALL_FILES, **incident.settings})
    try:
        work.mkdir(parents=True)
        schemas = Schemas.of(jars.classpath)
        with Cluster(jars, work, settings, schemas=schemas, tell=tell) as cluster:
            incident.script(IncidentStage(cluster, copies, tell))
        copies.rename(output)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


# --- scripts --------------------------------------------------------------------------------


def _clean(stage: IncidentStage) -> None:
    """Elections, restarts and rebalances in which nothing goes wrong."""
    cluster = stage.cluster
    cluster.create_topic(TOPIC, replicas=3, configs={"min.insync.replicas": "2"})
    first, _ = stage.leader()
    stage.produce(20)
    if _knows_consumer_groups(cluster):
        stage.tell("a consumer group of KIP-848 shares four partitions")
        cluster.create_topic(SHARED, partitions=4, replicas=3)
        _rebalance_consumers(ConsumerGroup(cluster, "shipping"))
    with ScriptedGroup(cluster, "billing") as group:
        group.join("m1")
        group.join("m2")
        stage.tell(f"stopping the leader, broker {first}, in order")
        cluster.nodes[first].stop()
        stage.await_leader(other_than=first)
        stage.produce(20)
        stage.restart(first)
        group.join("m3")
        group.leave("m2")
        cluster.elect(TOPIC)
        stage.await_leader(first)
        stage.produce(20)
        group.leave("m3")
        group.leave("m1")
    stage.tell("killing a follower")
    follower = min(set(cluster.nodes) - {first})
    cluster.nodes[follower].kill()
    stage.produce(5)
    stage.restart(follower)
    stage.produce(5)
    cluster.stop()
    stage.copy()


def _knows_consumer_groups(cluster: Cluster) -> bool:
    """Whether the cluster has finalized the feature of KIP-848: by default since 4.0."""
    client = {"clientSoftwareName": "kconform", "clientSoftwareVersion": "1"}
    with cluster.connection() as connection:
        known = connection.call("ApiVersions", client, 3)["finalizedFeatures"]
    return any(
        future["name"] == "group.version" and future["maxVersionLevel"] >= 1 for future in known
    )


def _rebalance_consumers(group: ConsumerGroup) -> None:
    """Members join and leave; one leaves for a while, and comes back with another id."""
    group.join("s1")
    group.join("s2", instance="shelf")
    group.join("s3")
    group.leave("s2", for_a_while=True)
    group.join("s2", instance="shelf")
    group.leave("s1")
    group.leave("s3")


def _zombie(stage: IncidentStage) -> None:
    """A leader that does not know its successor takes records with acks=1, and must cut them."""
    cluster = stage.cluster
    cluster.create_topic(TOPIC, replicas=3)
    zombie, _ = stage.leader()
    stage.produce(10)
    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        open_ = [stack.enter_context(cluster.connection(zombie)) for _ in range(8)]
        for connection in open_:
            connection.call("Metadata", {"topics": []})
        stage.tell(f"pausing the leader, broker {zombie}")
        cluster.nodes[zombie].pause()
        stage.await_leader(other_than=zombie)
        stage.produce(3, text="successor")
        sent = [pool.submit(append, future, b"taken by the zombie", 1) for future in open_]
        time.sleep(0.5)  # the requests lie in the paused broker's sockets now
        cluster.nodes[zombie].resume()
        count = sum(_succeeded(future) for future in sent)
    if not count:
        raise ClusterTimeout("The paused leader learned of its successor first.")
    stage.await_isr(set(cluster.nodes))
    stage.produce(3)
    cluster.stop()
    stage.copy()


def _succeeded(sent: Future[int]) -> bool:
    try:
        return sent.result(30) >= 0
    except BrokerGone:
        return False


def _unclean(stage: IncidentStage) -> None:
    """A replica outside the ISR is elected; what the dead leader had exposed is lost."""
    cluster = stage.cluster
    leader, late = 1, 2
    cluster.create_topic(
        TOPIC, assignment={0: [leader, late]}, configs={"unclean.leader.election.enable": "true"}
    )
    stage.produce(10)
    stage.tell(f"broker {late} dies; broker {leader} alone acknowledges more, then dies too")
    cluster.nodes[late].kill()
    stage.await_isr({leader})
    last = stage.produce(10)
    stage.await_checkpoint(leader, last + 1)
    cluster.nodes[leader].kill()
    cluster.nodes[late].start()
    cluster.await_ready([late])
    stage.await_that_elected(late)
    stage.produce(3, text="after the loss")
    stage.restart(leader)
    stage.produce(2, text="after the loss")
    cluster.stop()
    stage.copy()


def _re_elected_leader(stage: IncidentStage) -> None:
    """A leader that is elected again keeps what it knew of its followers, and exposes too much.

    It sleeps through the term of another leader, under which a follower truncated. Apache Kafka
    up to 4.4.0: `Partition.makeLeader` takes it for the leader that it was (docs/kafka.md).
    """
    cluster = stage.cluster
    follower = cluster.controller()  # the others pause and stop, the quorum's leader does not
    between, leader = sorted(set(cluster.nodes) - {follower})
    cluster.create_topic(
        TOPIC,
        assignment={0: [between, leader, follower]},
        configs={"min.insync.replicas": "2"},
    )
    cluster.nodes[between].stop()
    stage.await_leader(leader)
    stage.restart(between)
    stage.produce(8)
    stage.wait_until("all have 8 records", lambda: _ends(stage) == {8})
    with ThreadPoolExecutor(2) as pool:
        stage.tell(f"broker {between} sleeps while broker {follower} gets two more records")
        cluster.nodes[between].pause()
        time.sleep(1.5)  # its parked fetch is answered, empty: it does not get them
        waiting = [
            pool.submit(stage.produce, 1, node=leader, text="acknowledged, and lost")
            for _ in range(2)
        ]
        stage.wait_until("the follower has 10 records", lambda: stage.log_end(follower) == 10)
        stage.tell(
            f"broker {leader} sleeps; broker {between} leads, and broker {follower} truncates"
        )
        cluster.nodes[leader].pause()
        cluster.nodes[between].resume()
        time.sleep(1.0)
        cluster.elect(TOPIC)
        stage.await_leader(between)
        stage.wait_until("the follower truncated", lambda: stage.log_end(follower) == 8)
        stage.tell(f"broker {between} goes; broker {leader} is elected again, and wakes")
        cluster.nodes[between].stop(10.0)
        stage.await_leader(leader)
        cluster.nodes[leader].resume()
        stage.await_checkpoint(leader, 10)
        for future in waiting:
            future.result(30)  # acks=all: the leader says that it is safe
        if stage.log_end(follower) != 8:
            raise ClusterTimeout("The follower was faster than the fault.")
    cluster.nodes[leader].kill()
    cluster.nodes[between].start()
    stage.tell(f"broker {leader} is dead; waiting until its session expires")
    stage.await_leader(follower)
    cluster.await_ready([between])
    stage.produce(3, acks=1, text="after the loss")
    stage.await_isr({between, follower})
    stage.copy()


def _ends(stage: IncidentStage) -> set[int]:
    return {stage.log_end(node) for node in stage.cluster.nodes}


INCIDENTS: Mapping[str, Incident] = MappingProxyType(
    {
        "clean": Incident("elections, restarts and rebalances; nothing is lost", _clean),
        "zombie": Incident("a paused leader takes acks=1 records, and must cut them", _zombie),
        "unclean-election": Incident(
            "a replica outside the ISR is elected, and exposed records are lost",
            _unclean,
            {"replica.high.watermark.checkpoint.interval.ms": "500"},
        ),
        "re-elected-leader": Incident(
            "a leader elected again exposes what only it holds, and dies",
            _re_elected_leader,
            {
                "broker.session.timeout.ms": "20000",
                "controller.quorum.election.timeout.ms": "20000",
                "controller.quorum.fetch.timeout.ms": "30000",
                "replica.fetch.backoff.ms": "5000",
                "replica.high.watermark.checkpoint.interval.ms": "200",
                "replica.lag.time.max.ms": "40000",
            },
        ),
    }
)


# --- clients --------------------------------------------------------------------------------


def append(connection: Connection, value: bytes, acks: int) -> int:
    """Append one record to the topic's partition 0; its offset. Raises BrokerGone."""
    partition = {"index": 0, "records": batch_bytes([value], first_ms=int(time.time() * 1000))}
    answer = connection.call(
        "Produce",
        {
            "transactionalId": None,
            "acks": acks,
            "timeoutMs": 60_000,
            "topicData": [{"name": TOPIC, "partitionData": [partition]}],
        },
        _PRODUCE_VERSION,
    )
    (result,) = answer["responses"][0]["partitionResponses"]
    if result["errorCode"]:
        raise BrokerGone(f"The broker refused the record: error {result['errorCode']}.")
    return int(result["baseOffset"])


@dataclass(slots=True)
class ScriptedMember:
    """A member of a consumer group: what it sends with its next heartbeat."""

    id: str
    instance: str | None
    epoch: int = 0
    owned: list[Body] = field(default_factory=list)
    """By topic ids; given back at once when they are no longer assigned."""


class ConsumerGroup:
    """A group of KIP-848 whose members send heartbeats until all have what they are assigned."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._members: dict[str, ScriptedMember] = {}

    def join(self, member: str, *, instance: str | None = None) -> None:
        """A member joins; return when the group is balanced."""
        self._members[member] = ScriptedMember(_uuid(), instance)
        self._settle()

    def leave(self, member: str, *, for_a_while: bool = False) -> None:
        """A member leaves; a static one may say that it comes back."""
        gone = self._members.pop(member)
        gone.epoch, gone.owned = (-2 if for_a_while else -1), []
        self._heartbeat(gone)
        self._settle()

    def _settle(self) -> None:
        """Heartbeats of all, until two rounds change nothing. Raises EnvironmentProblem."""
        quiet = 0
        for _ in range(_ROUNDS):
            before = [(future.epoch, future.owned) for future in self._members.values()]
            for future in self._members.values():
                self._heartbeat(future)
            after = [(future.epoch, future.owned) for future in self._members.values()]
            quiet = quiet + 1 if before == after else 0
            if quiet == 2:
                return
            time.sleep(0.1)
        raise ClusterTimeout(f"The group {self._name} does not come to rest.")

    def _heartbeat(self, future: ScriptedMember) -> None:
        """Say what it owns, take what it is given; who was put out joins again."""
        body = {
            "groupId": self._name,
            "memberId": future.id,
            "memberEpoch": future.epoch,
            "instanceId": future.instance,
            "rebalanceTimeoutMs": 60_000,
            "subscribedTopicNames": [SHARED],
            "topicPartitions": future.owned,
        }
        accepted = (0, _UNKNOWN_MEMBER, _FENCED_EPOCH)
        call = partial(self._call_once, "ConsumerGroupHeartbeat", body)
        answer = until_accepted(call, "ConsumerGroupHeartbeat", accepted)
        if answer["errorCode"]:
            future.epoch, future.owned = 0, []
            return
        future.epoch = answer["memberEpoch"]
        if answer["assignment"] is not None:
            future.owned = answer["assignment"]["topicPartitions"]

    def _call_once(self, api: str, body: Body) -> Body:
        node = self._cluster.coordinator(self._name)
        port = self._cluster.client_port(node)
        with Connection(self._cluster.schemas, port, seconds=60) as connection:
            return connection.call(api, body)


def _uuid() -> str:
    """A member id as Kafka's consumers make them."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def until_accepted(call: Callable[[], Body], what: str, accepted: Sequence[int]) -> Body:
    """Ask the coordinator until it has loaded the group. Raises EnvironmentProblem."""
    deadline = time.monotonic() + 60
    while True:
        try:
            answer = call()
            if answer["errorCode"] in accepted:
                return answer
            problem = f"error {answer['errorCode']}"
        except BrokerGone as gone:
            problem = str(gone)
        if time.monotonic() > deadline:
            raise EnvironmentProblem(f"The group's {what} was refused: {problem}")
        time.sleep(0.3)


class ScriptedGroup:
    """A consumer group of the classic protocol whose members do as they are told."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._ids: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(8)

    def __enter__(self) -> ScriptedGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def join(self, member: str) -> None:
        """A member joins: all join, the leader assigns the topic's partitions, all sync."""
        self._ids[member] = ""
        self._rebalance()

    def leave(self, member: str) -> None:
        """A member leaves; the others, if any, rebalance."""
        members = [{"memberId": self._ids.pop(member), "groupInstanceId": None}]
        self._call("LeaveGroup", {"groupId": self._name, "members": members}, 3)
        if self._ids:
            self._rebalance()

    def _rebalance(self) -> None:
        members = sorted(self._ids, key=lambda future: self._ids[future] != "")  # new ones first
        joining = {}
        for member in members:
            joining[member] = self._pool.submit(self._join, self._ids[member])
            time.sleep(0.3)
        answers = {member: future.result(60) for member, future in joining.items()}
        leader = next(m for m, future in answers.items() if future["leader"] == future["memberId"])
        self._ids = {member: answer["memberId"] for member, answer in answers.items()}
        plan = self._plan([future["memberId"] for future in answers[leader]["members"]])
        syncing = [
            self._pool.submit(self._sync, answer, plan if member == leader else [])
            for member, answer in answers.items()
        ]
        for future in syncing:
            future.result(60)

    def _plan(self, members: Sequence[str]) -> list[Body]:
        """The topic's one partition to the first member, nothing to the others."""
        schema = self._cluster.schemas.message("ConsumerProtocolAssignment")
        plan = []
        for number, member in enumerate(sorted(members)):
            parts = [{"topic": TOPIC, "partitions": [0]}] if number == 0 else []
            body = {"assignedPartitions": parts, "userData": None}
            plan.append({"memberId": member, "assignment": b"\x00\x01" + schema.encode(1, body)})
        return plan

    def _join(self, member_id: str) -> Body:
        schema = self._cluster.schemas.message("ConsumerProtocolSubscription")
        subscription = {"topics": [TOPIC], "userData": None, "ownedPartitions": []}
        metadata = b"\x00\x01" + schema.encode(1, subscription)
        body = {
            "groupId": self._name,
            "sessionTimeoutMs": 240_000,  # no member sends heartbeats, and brokers restart
            "rebalanceTimeoutMs": 60_000,
            "memberId": member_id,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": metadata}],
        }
        return self._call("JoinGroup", body, 3)

    def _sync(self, answer: Body, plan: Sequence[Body]) -> Body:
        body = {
            "groupId": self._name,
            "generationId": answer["generationId"],
            "memberId": answer["memberId"],
            "assignments": list(plan),
        }
        return self._call("SyncGroup", body, 2)

    def _call(self, api: str, body: Body, version: int) -> Body:
        """Ask the coordinator, wherever it is now; until it has loaded the group."""
        deadline = time.monotonic() + 60
        while True:
            try:
                node = self._cluster.coordinator(self._name)
                with Connection(
                    self._cluster.schemas, self._cluster.client_port(node), seconds=60
                ) as connection:
                    answer = connection.call(api, body, version)
                if not answer["errorCode"]:
                    return answer
                if answer["errorCode"] == _UNKNOWN_MEMBER and api == "JoinGroup":
                    body = {**body, "memberId": ""}  # as a consumer does: it joins as a new one
                problem = f"error {answer['errorCode']}"
            except BrokerGone as gone:
                problem = str(gone)
            if time.monotonic() > deadline:
                raise EnvironmentProblem(f"The group's {api} was refused: {problem}")
            time.sleep(0.3)
