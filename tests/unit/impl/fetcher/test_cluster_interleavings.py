"""Whole brokers under schedules chosen by a seed: elections and appends between any two steps."""

from __future__ import annotations

import pytest

from impl.deterministic_scheduler import DeterministicScheduler
from impl.types import ProtocolConfig
from tests.unit.impl.fetcher.cluster import TP, Cluster


def elections(cluster: Cluster, scheduler: DeterministicScheduler) -> None:
    """Clean elections among two brokers, each followed by an append; the last leader is 1."""
    for epoch, leader in enumerate((1, 2, 1, 1, 2, 1)):
        cluster.elect(leader)
        scheduler.checkpoint(f"epoch {epoch}")
        cluster.brokers[leader].append(f"{epoch}a")
        scheduler.checkpoint(f"appended in epoch {epoch}")
        cluster.brokers[leader].append(f"{epoch}b")


def run_all(scheduler: DeterministicScheduler, rounds: int) -> None:
    for _ in range(rounds):
        for name in scheduler.runnable():
            if name in scheduler.runnable():
                scheduler.step(name)


def contents_of(cluster: Cluster, scheduler: DeterministicScheduler) -> list[list[tuple[int, int]]]:
    """Read the logs as a task: another one may stand inside a lock that reading needs."""
    contents: list[list[tuple[int, int]]] = []
    brokers = cluster.brokers.values()
    scheduler.spawn("observer", lambda: contents.extend(broker.contents() for broker in brokers))
    while scheduler.point("observer") != "finished":
        run_all(scheduler, rounds=1)
    return contents


@pytest.mark.parametrize("truncation_on_fetch", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_brokers_agree_after_any_schedule(seed: int, truncation_on_fetch: bool) -> None:
    scheduler = DeterministicScheduler()
    protocol = ProtocolConfig(truncation_on_fetch=truncation_on_fetch)
    cluster = Cluster(2, protocol, scheduler)
    scheduler.spawn("controller", lambda: elections(cluster, scheduler))
    scheduler.run_random(seed, max_steps=2_000)
    assert scheduler.point("controller") == "finished"
    run_all(scheduler, rounds=150)
    one, two = cluster.brokers[1], cluster.brokers[2]
    logs = contents_of(cluster, scheduler)
    assert logs[0] == logs[1]
    assert one.log.log_end_offset >= 2
    assert two.log.high_watermark == one.log.high_watermark == one.log.log_end_offset
    for broker in (one, two):
        assert broker.fetchers.dead_thread_count == 0
        assert not broker.fetchers.failed_partitions.contains(TP)


def test_three_brokers_follow_each_other() -> None:
    scheduler = DeterministicScheduler()
    cluster = Cluster(3, None, scheduler)
    scheduler.spawn("controller", lambda: elections(cluster, scheduler))
    scheduler.run_random(seed=1, max_steps=3_000)
    assert scheduler.point("controller") == "finished"
    run_all(scheduler, rounds=150)
    logs = contents_of(cluster, scheduler)
    assert logs == [logs[0]] * 3
