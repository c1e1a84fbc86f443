"""A replica that forgets an open transaction (forgotten-open-transaction), at real brokers.

    python -m experiments.forgotten_transaction [--kafka 4.4.0] [--control] -o DIR

Five combined nodes on this machine; the partition is on two of them, L and F, which neither
coordinate the transaction nor control the cluster.

1. A producer of confluent-kafka writes a record; L and F have it.
2. F stands still (SIGSTOP). The producer aborts, and the marker is in L's log alone.
3. L is killed. F goes on and is elected from the ISR; the coordinator's marker comes to F.
4. L comes back after producer.id.expiration.ms, five seconds here. It truncates its own marker,
   fetches F's, and is elected as the preferred leader.

What a consumer with read_committed gets is judged. With --control producers expire after a day:
nothing is wrong then.

Exit code 0: as told above. 1: nothing was wrong, or something was in the control.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from conformance.history.rules import Answer
from conformance.kafka.cluster import Cluster, ClusterSettings, KafkaNode
from conformance.kafka.jars import NEWEST, chosen_jars
from conformance.workload.log import HistoryLog
from experiments.re_elected_leader import records_of
from experiments.scripted_transactions import (
    TOPIC,
    ScriptedTransactions,
    print_judgement,
    read_to_the_end,
    record,
)

EXPIRATION_MS = 5_000
DAY_MS = 86_400_000
PROPERTIES = {
    # What the coordinator writes must not wait for F.
    "transaction.state.log.replication.factor": "1",
    # F stands still for some seconds, and must not be fenced for it.
    "broker.session.timeout.ms": "15000",
    "replica.lag.time.max.ms": "120000",
}
FETCH_WAIT_S = 2.0
"""By then no fetch of F is under way any more (replica.fetch.wait.max.ms is 500)."""
VERSION = 2
"""Whose rules judge. librdkafka speaks version 1, whose rules excuse a record of an aborted
transaction that is read: a late EndTxn may do that (KAFKA-17754). Here each request is answered
before the next one is sent."""


class ForgottenTransaction:
    """The cluster, and what happens in it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def run(self, log: HistoryLog) -> None:
        """One transaction is committed in peace; the next one is aborted as told above."""
        transactions = ScriptedTransactions(self._cluster.bootstrap, log, 1)
        self._coordinator = int(self._cluster.partition("__transaction_state")["leaderId"])
        busy = {self._coordinator, self._cluster.controller()}
        free = [node for number, node in self._cluster.nodes.items() if number not in busy]
        self._leader, self._follower = free[:2]
        replicas = [self._leader.number, self._follower.number]
        self._cluster.create_topic(TOPIC, assignment={0: replicas})
        transactions.run(record(0, "committed"), commits=True)
        self._await_batches(self._follower, 2)
        transactions.run(record(0, "aborted"), self._halt_the_follower, commits=False)
        self._lose_the_leader()
        self._return_of_the_leader()
        transactions.close()

    def _halt_the_follower(self) -> None:
        self._await_batches(self._follower, 3)
        self._follower.pause()
        time.sleep(FETCH_WAIT_S)

    def _lose_the_leader(self) -> None:
        self._await_batches(self._leader, 4)
        self._leader.kill()
        ends = [records_of(node, TOPIC) for node in (self._leader, self._follower)]
        print(f"L has {ends[0]} batches, F {ends[1]}")
        self._follower.resume()
        self._cluster.await_that("F leads", lambda: self._leads(self._follower), 60.0)
        self._await_batches(self._follower, 4)

    def _return_of_the_leader(self) -> None:
        time.sleep(EXPIRATION_MS / 1000)
        self._leader.start()
        self._cluster.await_that("L is in the ISR", self._is_in_sync, 120.0)
        self._cluster.elect(TOPIC)
        self._cluster.await_that("L leads again", lambda: self._leads(self._leader), 60.0)

    def _is_in_sync(self) -> bool:
        return self._leader.number in self._cluster.partition(TOPIC)["isrNodes"]

    def _leads(self, node: KafkaNode) -> bool:
        partition = self._cluster.partition(TOPIC, node=self._coordinator)
        return bool(partition["leaderId"] == node.number)

    def _await_batches(self, node: KafkaNode, count: int) -> None:
        self._cluster.await_that(
            f"node {node.number} has {count} batches",
            lambda: records_of(node, TOPIC) == count,
            60.0,
        )


def main() -> int:
    """Make the history and judge it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kafka", default=NEWEST)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    output: Path = options.output
    output.mkdir(parents=True)
    expiration = DAY_MS if options.control else EXPIRATION_MS
    properties = {**PROPERTIES, "producer.id.expiration.ms": str(expiration)}
    settings = ClusterSettings(brokers=5, heap_mb=256, properties=properties, ready_seconds=300.0)
    with Cluster(chosen_jars(options.kafka, None), output / "work", settings) as cluster:
        with HistoryLog(output / "transactions.ndjson", "transactions") as log:
            ForgottenTransaction(cluster).run(log)
        read_to_the_end(cluster.bootstrap, output, 1)
    judgement = print_judgement(output, VERSION)
    is_wrong = any(tally.answers[Answer.BROKEN] for tally in judgement.tallies.values())
    return int(is_wrong is options.control)


if __name__ == "__main__":
    sys.exit(main())
