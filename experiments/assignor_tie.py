"""Two real consumers of KIP-848 that name different assignors: does their group come to rest?

One broker of a release with its default settings, and two consumers of librdkafka: one names the
assignor `range`, the other one `uniform`. Nothing else happens. In 4.4.0 each heartbeat of the
first one makes a new group epoch (`assignor-tie` in docs/findings.md). With an assignment interval
longer than the heartbeat interval (5 s) any of the two may make the next target.

    python -m experiments.assignor_tie [--kafka 4.4.0] [--seconds 60] [--interval-ms 1000]

Prints the group's epoch over time, and how often the consumers were given or had to give up
partitions. Exit code 0: the group came to rest. 1: it did not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from confluent_kafka import Consumer, TopicPartition

from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.entities import make, module_of
from conformance.kafka.jars import NEWEST, chosen_jars
from conformance.systems.wire.address import parse_address
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import Security

GROUP = "tie"
TOPICS = ("a", "b", "c")
"""One partition each: range gives all of them to one member, uniform does not."""
ASSIGNORS = ("range", "uniform")
_INTERVAL = "group.consumer.assignment.interval.ms"
_DESCRIBE = "consumer_group_describe"
_SETTLED = 20.0
"""Seconds after which two consumers that have joined have what they are to have."""
_LOOKS_EVERY = 5.0


@dataclass(slots=True)
class Member:
    """A consumer in its thread, and what its callbacks said."""

    assignor: str
    rebalances: list[str] = field(default_factory=list)

    def run(self, bootstrap: str, stop: Event) -> None:
        """Poll until told to stop."""
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "group.remote.assignor": self.assignor,
            }
        )
        with closing(consumer):
            consumer.subscribe(list(TOPICS), on_assign=self._assigned, on_revoke=self._revoked)
            while not stop.is_set():
                consumer.poll(0.1)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        self.rebalances.append("+" + ",".join(part.topic for part in partitions))

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_unassign(partitions)
        self.rebalances.append("-" + ",".join(part.topic for part in partitions))


@contextmanager
def polling(members: Sequence[Member], bootstrap: str) -> Iterator[None]:
    """All of them, each in a thread."""
    stop = Event()
    threads = [Thread(target=member.run, args=(bootstrap, stop)) for member in members]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def described(port: Port) -> str:
    """The group's epochs and its assignor."""
    module = module_of(_DESCRIBE, port.versions[_DESCRIBE], "request")
    request = make(
        module.ConsumerGroupDescribeRequest, group_ids=(GROUP,), include_authorized_operations=False
    )
    (group,) = port.ask_body(request).groups
    epochs = f"group epoch {group.group_epoch}, assignment epoch {group.assignment_epoch}"
    return f"{epochs}, {group.group_state}, assignor {group.assignor_name}"


def run(version: str, seconds: float, interval_ms: int) -> bool:
    """Whether the group came to rest."""
    settings = ClusterSettings(properties={_INTERVAL: str(interval_ms)})
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(chosen_jars(version, None), Path(folder), settings) as cluster,
    ):
        for name in TOPICS:
            cluster.create_topic(name)
        members = [Member(assignor) for assignor in ASSIGNORS]
        with polling(members, cluster.bootstrap):
            return _watch(members, cluster.bootstrap, seconds)


def _watch(members: Sequence[Member], bootstrap: str, seconds: float) -> bool:
    time.sleep(_SETTLED)
    with closing(Port(parse_address(bootstrap), Security())) as port:
        begun, before = time.monotonic(), described(port)
        counts = [len(member.rebalances) for member in members]
        print(f"   0 s  {before}")
        while (passed := time.monotonic() - begun) < seconds:
            time.sleep(_LOOKS_EVERY)
            print(f"{passed + _LOOKS_EVERY:4.0f} s  {described(port)}", flush=True)
        after = described(port)
    for member, count in zip(members, counts, strict=True):
        later = len(member.rebalances) - count
        print(f"{member.assignor}: {count} callbacks before, {later} meanwhile", member.rebalances)
    return before == after


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default=NEWEST)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--interval-ms", type=int, default=1000)
    options = parser.parse_args()
    rests = run(options.kafka, options.seconds, options.interval_ms)
    print("the group came to rest" if rests else "the group does not come to rest")
    return 0 if rests else 1


if __name__ == "__main__":
    sys.exit(main())
