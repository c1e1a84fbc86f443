"""The re-elected leader on unmodified brokers: an acknowledged record is lost in a clean election.

Five combined nodes on this machine; the partition is on three of them, which control nothing: L
leads, F and G follow. One record per fetch, acks=all, min.insync.replicas=2.

1. G stands still (SIGSTOP). L takes records, the last of them with acks=all; F copies them.
2. L stands still, G goes on, and is elected as the preferred leader. F truncates to G's log.
3. G begins to shut down; L is elected again, with F in the ISR.
4. L goes on. It hears of both elections in one delta, takes F's old position for true, and
   acknowledges what it alone holds. It is killed at once.
5. F is elected from the ISR. What it lacks is lost.

With --control L goes on for a while between the two elections, hears of each in turn, and
acknowledges nothing that F does not hold.

    python -m experiments.re_elected_leader [--kafka 4.4.0] [--control] [--folder FOLDER]

Exit code 0: as told above. 1: the record was not lost, or lost in the control. About a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import EnvironmentProblem
from conformance.kafka.client import BrokerGone, Connection
from conformance.kafka.cluster import CLIENT, Cluster, ClusterSettings, KafkaNode
from conformance.kafka.jars import NEWEST, kafka_jars
from impl.record_format import Record
from impl.records import MemoryRecords, decode_batches

TOPIC = "t"
REPLICATED = 8
"""Records that all three have before G stands still."""
BEHIND = 3
"""Records that G lacks then; the answer to a fetch that it had sent may still bring it one."""

PROPERTIES = {
    "replica.fetch.max.bytes": "1",
    "replica.fetch.response.max.bytes": "1",
    # A pause must look like one, not like a death.
    "broker.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": "120000",
    "replica.socket.timeout.ms": "120000",
    # F is told UNKNOWN_LEADER_EPOCH by a leader that has not heard of its epoch yet: then it waits.
    "replica.fetch.backoff.ms": "10000",
}
_ACKNOWLEDGED_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Roles:
    """Who is who among the nodes."""

    leader: KafkaNode
    follower: KafkaNode
    lagging: KafkaNode


class Play:
    """The five scenes on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        controller = cluster.controller()
        others = [node for number, node in cluster.nodes.items() if number != controller]
        self.roles = Roles(*others[:3])

    def prepare(self) -> None:
        """A partition that L leads and all three hold in full; G is its preferred leader."""
        ends = [self.roles.leader, self.roles.follower, self.roles.lagging]
        replicas = [node.number for node in ends]
        configs = {"min.insync.replicas": "2"}
        self._cluster.create_topic(TOPIC, assignment={0: replicas}, configs=configs)
        for _ in range(REPLICATED):
            self.produce(acks=-1)
        self._await_records(ends, REPLICATED)
        lagging_first = [replicas[2], *replicas[:2]]
        partition = {"partitionIndex": 0, "replicas": lagging_first}
        with self._cluster.connection() as connection:
            topics = [{"name": TOPIC, "partitions": [partition]}]
            connection.call("AlterPartitionReassignments", {"topics": topics, "timeoutMs": 20_000})
        self._cluster.await_that(
            "the replicas are in their new order",
            lambda: self._cluster.partition(TOPIC)["replicaNodes"] == lagging_first,
            30.0,
        )

    def produce(self, acks: int) -> int:
        """Append one record at L; its offset, once it is acknowledged. Raises BrokerGone."""
        port = self._cluster.endpoints.bound[self.roles.leader.number, CLIENT]
        records = MemoryRecords.with_records(Record(b"value")).to_bytes()
        body = {
            "acks": acks,
            "timeoutMs": 120_000,
            "topicData": [{"name": TOPIC, "partitionData": [{"index": 0, "records": records}]}],
        }
        with Connection(self._cluster.schemas, port, seconds=120.0) as connection:
            answer = connection.call("Produce", body, _PRODUCE_BY_NAME)
        (partition,) = answer["responses"][0]["partitionResponses"]
        if partition["errorCode"]:
            raise BrokerGone(f"A record was refused: error {partition['errorCode']}.")
        return int(partition["baseOffset"])

    def outrun(self, pool: ThreadPoolExecutor) -> Future[int]:
        """G stands still; L and F get records that G lacks. The last waits for its acks."""
        self.roles.lagging.pause()
        for _ in range(BEHIND - 1):
            self.produce(acks=1)
        acknowledged = pool.submit(self.produce, acks=-1)
        self._await_records([self.roles.leader, self.roles.follower], REPLICATED + BEHIND)
        return acknowledged

    def elect_the_lagging_one(self) -> None:
        """While L stands still G is elected, and F truncates to what G has."""
        self.roles.leader.pause()
        self.roles.lagging.resume()
        time.sleep(2.0)  # whatever was under way to G has arrived
        self._cluster.await_that(
            "G is elected", lambda: self._cluster.elect(TOPIC) in (0, _NOT_NEEDED), 30.0
        )
        self._cluster.await_that("G leads", lambda: self._leads(self.roles.lagging), 30.0)
        follower, lagging = self.roles.follower, self.roles.lagging
        self._cluster.await_that(
            "F has truncated",
            lambda: records_of(follower) == records_of(lagging) < REPLICATED + BEHIND,
            30.0,
        )

    def hear_of_it(self) -> None:
        """The control: L learns that G leads, before it is elected again."""
        self.roles.leader.resume()
        leader, lagging = self.roles.leader, self.roles.lagging
        self._cluster.await_that(
            "L has truncated", lambda: records_of(leader) == records_of(lagging), 60.0
        )
        leader.pause()

    def elect_the_old_leader(self, pool: ThreadPoolExecutor) -> None:
        """G goes in order, so the next in the ISR is elected: L, which does not hear of it yet.

        G's process ends later: the controller lets it go when all brokers know of it.
        """
        pool.submit(self.roles.lagging.stop, 60.0)
        self._cluster.await_that("L leads again", lambda: self._leads(self.roles.leader), 60.0)

    def elect_the_follower(self) -> None:
        """L is dead; F is elected, from the ISR."""
        self.roles.leader.kill()
        self._cluster.await_that("F leads", lambda: self._leads(self.roles.follower), 120.0)

    def _leads(self, node: KafkaNode) -> bool:
        return bool(self._cluster.partition(TOPIC)["leaderId"] == node.number)

    def _await_records(self, nodes: Sequence[KafkaNode], count: int) -> None:
        self._cluster.await_that(
            f"{len(nodes)} replicas have {count} records",
            lambda: all(records_of(node) == count for node in nodes),
            60.0,
        )


_PRODUCE_BY_NAME = 9
"""From version 13 on a topic is named by its id."""
_NOT_NEEDED = 84
"""ELECTION_NOT_NEEDED: it leads already."""


def records_of(node: KafkaNode, topic: str = TOPIC) -> int:
    """How many records its log has on disk (one segment, one record in a batch)."""
    (segment,) = (node.data / f"{topic}-0").glob("*.log")
    return len(decode_batches(segment.read_bytes()))


def play(cluster: Cluster, *, control: bool) -> bool:
    """The whole of it; whether an acknowledged record is lost."""
    scenes = Play(cluster)
    scenes.prepare()
    print(f"L, F and G are nodes {', '.join(str(n.number) for n in _nodes(scenes.roles))}")
    with ThreadPoolExecutor(2) as pool:
        waiting = scenes.outrun(pool)
        scenes.elect_the_lagging_one()
        print(f"G leads; F has truncated to {records_of(scenes.roles.follower)} records")
        if control:
            scenes.hear_of_it()
        scenes.elect_the_old_leader(pool)
        scenes.roles.leader.resume()
        acknowledged = _acknowledged(waiting)
        records = records_of(scenes.roles.follower)
        print(_told(acknowledged), f"F holds {records} records at that time", sep="; ")
        scenes.elect_the_follower()
    end = records_of(scenes.roles.follower)
    print(f"F leads, and has {end} records")
    return acknowledged is not None and end <= acknowledged


def _nodes(roles: Roles) -> tuple[KafkaNode, ...]:
    return roles.leader, roles.follower, roles.lagging


def _acknowledged(waiting: Future[int]) -> int | None:
    try:
        return waiting.result(_ACKNOWLEDGED_WITHIN)
    except (BrokerGone, TimeoutError):
        return None


def _told(offset: int | None) -> str:
    if offset is None:
        return "the last record was not acknowledged"
    return f"L has acknowledged offset {offset} with acks=all"


def main() -> int:
    """Run it once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kafka", default=NEWEST)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="re-elected-leader-"))
    settings = ClusterSettings(brokers=5, heap_mb=256, properties=PROPERTIES, ready_seconds=300.0)
    try:
        with Cluster(kafka_jars(given.kafka), folder, settings, tell=print) as cluster:
            lost = play(cluster, control=given.control)
    except EnvironmentProblem as problem:
        print(problem, file=sys.stderr)
        return 2
    print(f"Kafka {given.kafka}: an acknowledged record is {'lost' if lost else 'not lost'}")
    print(f"logs and data: {folder}")
    return int(lost is given.control)


if __name__ == "__main__":
    sys.exit(main())
