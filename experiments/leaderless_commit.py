"""A commit that is decided while a partition has no leader (KAFKA-20734), at real brokers.

    python -m experiments.leaderless_commit --kafka 4.4.0 -o DIR

A producer of confluent-kafka writes a record into a partition of one replica. The broker that has
it is killed; the coordinator of the transaction is another one. The producer commits, the broker
comes back, and the producer aborts its next transaction in that partition. The history is judged:
from Kafka 4.3 on the commit is acknowledged, and its record is aborted with the next one.
"""

from __future__ import annotations

import argparse
import threading
from contextlib import closing
from pathlib import Path

from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.jars import chosen_jars
from conformance.workload.log import CONFIGURE, HistoryLog
from experiments.scripted_transactions import (
    TOPIC,
    ScriptedTransactions,
    print_judgement,
    read_to_the_end,
    record,
)

BROKERS = 3
AWAY_S = 5.0
"""Seconds for which the broker is away after the cluster has seen it go: the commit is decided by
then. Up to 4.2 its markers wait for the leader."""
NO_LEADER = -1
VERSION = 1
"""librdkafka speaks version 1 of the protocol of transactions with every broker."""


class LeaderlessCommit:
    """The cluster, and what happens in it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._coordinator = 0
        self._leader = 0
        self._return: threading.Timer | None = None

    def run(self, log: HistoryLog) -> None:
        """One transaction is committed without a leader, the next one is aborted.

        A first one is committed in peace: whoever has read it and what follows has passed the
        others.
        """
        transactions = ScriptedTransactions(self._cluster.bootstrap, log, 1)
        self._coordinator = int(self._cluster.partition("__transaction_state")["leaderId"])
        self._leader = next(n for n in self._cluster.nodes if n != self._coordinator)
        self._cluster.create_topic(TOPIC, assignment={0: [self._leader]})
        transactions.run(record(0, "first"), commits=True)
        transactions.run(record(0, "second"), self._lose_the_leader, commits=True)
        self._cluster.await_that("the partition has a leader", self._has_leader, 60.0)
        transactions.run(record(0, "third"), commits=False)
        transactions.close()

    def _lose_the_leader(self) -> None:
        self._cluster.nodes[self._leader].kill()
        self._cluster.await_that("the partition has no leader", lambda: not self._has_leader(), 30)
        self._return = threading.Timer(AWAY_S, self._cluster.nodes[self._leader].start)
        self._return.start()

    def close(self) -> None:
        """No broker comes back once the cluster has ended."""
        if self._return is not None:
            self._return.cancel()
            self._return.join()

    def _has_leader(self) -> bool:
        partition = self._cluster.partition(TOPIC, node=self._coordinator)
        return bool(partition["leaderId"] != NO_LEADER)


def main() -> None:
    """Make the history and judge it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.4.0")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    output: Path = options.output
    output.mkdir(parents=True)
    jars = chosen_jars(options.kafka, None)
    with Cluster(jars, output / "work", ClusterSettings(brokers=BROKERS)) as cluster:
        with HistoryLog(output / "transactions.ndjson", "transactions") as log:
            log.event(CONFIGURE, configured={"transaction_version": VERSION})
            with closing(LeaderlessCommit(cluster)) as commit:
                commit.run(log)
        read_to_the_end(cluster.bootstrap, output, 1)
    print_judgement(output, VERSION)


if __name__ == "__main__":
    main()
