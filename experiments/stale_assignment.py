"""A fenced Java consumer takes an assignment that it no longer has: two consumers own a partition.

Kafka's own classes of group.protocol=consumer, in this process's JVM: no broker is started.

1. Consumer m1 is given both partitions. Its background thread begins the reconciliation: what the
   application is to take (PartitionsAssignedEvent) waits for its next poll.
2. The group's session of m1 runs out before that. Its heartbeat is answered UNKNOWN_MEMBER_ID.
   SubscriptionState is still empty, so there is nothing to lose, and m1 joins again at once.
3. The application polls. It takes the assignment of the membership that has ended: applyAssignment
   asks neither for the epoch nor for the state. onPartitionsAssigned is called.
4. Consumer m2 joins and is given both partitions. m1 joins and is given none.
5. m1 owns both, as m2 does, and commits them in its new epoch: the commit is taken.

It ends when m1 next reconciles.

    python -m experiments.stale_assignment [--kafka 4.4.0]

Exit code 0: m1 owns what m2 owns. 1: it does not, as up to 4.2. Seconds.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

from conformance.kafka.jars import NEWEST
from conformance.stages.context import Context, one_model, workbench
from conformance.systems.external import CHANNELS
from conformance.systems.kafka.consumers import JavaConsumerGroupSystem
from conformance.systems.kafka.java_consumer import JavaConsumer
from conformance.systems.wire.consumer.member import CommitAnswer
from conformance.tla import Action, Fn

MODEL = "consumer/expiries-2m"
FENCED = ("ExpireSession m1", "SendHeartbeat m1", "RefuseHeartbeat m1", "ReceiveAnswer m1")
OTHER_JOINS = ("Join m2", "SendHeartbeat m2", "HandleHeartbeat m2", "ReceiveAnswer m2", "Assign m2")


class Owners(NamedTuple):
    """What both consumers own at the end, and what of m1's commit is taken."""

    first: frozenset[int]
    second: frozenset[int]
    committed: frozenset[int]


def follow(release: str) -> Owners:
    """Drive the story on a release's classes."""
    bench = workbench(Context(), one_model(MODEL), f"kafka-{release}+client", with_graph=False)
    system = bench.make_system()
    assert isinstance(system, JavaConsumerGroupSystem)
    try:
        return _follow(system)
    finally:
        system.close()


def _follow(system: JavaConsumerGroupSystem) -> Owners:
    system.reset({})
    first = system.members["m1"]
    assert isinstance(first, JavaConsumer)
    _take(system, "Join m1", "SendHeartbeat m1", "HandleHeartbeat m1", "ReceiveAnswer m1")
    first.begin_reconciliation()
    _take(system, *FENCED)
    first.poll()
    _take(system, *OTHER_JOINS)
    _take(system, "SendHeartbeat m1")
    everything, nothing = frozenset({0, 1}), frozenset[int]()
    system.choose({"target": Fn({"m1": nothing, "m2": everything})})
    _take(system, "HandleHeartbeat m1", "ReceiveAnswer m1")
    if first.consumer.owned:
        _take(system, "SendCommit m1", "HandleCommit m1")
    answer = first.commit
    committed = answer.committed if isinstance(answer, CommitAnswer) else nothing
    return Owners(first.consumer.owned, system.members["m2"].consumer.owned, committed)


def _take(system: JavaConsumerGroupSystem, *steps: str) -> None:
    for step in steps:
        name, member = step.split()
        system.apply(Action(name, (member,)))


def main() -> int:
    """Print what comes of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default=NEWEST)
    release = parser.parse_args().kafka
    try:
        owners = follow(release)
    finally:
        CHANNELS.close()
    both = sorted(owners.first & owners.second)
    print(f"Kafka {release}: m1 owns {sorted(owners.first)}, m2 owns {sorted(owners.second)}.")
    print(f"Both own {both}. m1's commit of {sorted(owners.committed)} is taken.")
    return 0 if both else 1


if __name__ == "__main__":
    sys.exit(main())
