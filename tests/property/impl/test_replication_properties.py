"""After any history of (unclean) elections, late decisions and crashes, logs converge.

Three brokers with real managers and fetchers. In the end all follow one leader and settle: the logs
must be equal, and the epoch caches must say what the logs hold (KIP-101, KIP-279, KIP-595).
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from impl.disk import first
from impl.types import ProtocolConfig
from tests.unit.impl.brokers import epochs_of
from tests.unit.impl.cluster import Cluster

BROKERS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Era:
    """One leader epoch: who leads, who hears of it, what is written and copied, who crashes."""

    leader: int
    told: frozenset[int]
    appends: int
    rounds: int
    crashed: int | None
    survivors: int


ERAS = st.lists(
    st.builds(
        Era,
        leader=st.sampled_from(BROKERS),
        told=st.frozensets(st.sampled_from(BROKERS)),
        appends=st.integers(0, 3),
        rounds=st.integers(0, 3),
        crashed=st.sampled_from([None, None, *BROKERS]),
        survivors=st.integers(0, 12),
    ),
    min_size=1,
    max_size=6,
)


def live_through(cluster: Cluster, era: Era) -> None:
    cluster.elect(era.leader, (era.leader,), tell=tuple(era.told | {era.leader}))
    cluster.append(era.leader, era.appends)
    cluster.settle(era.rounds)
    if era.crashed is not None:
        cluster.crash(era.crashed, first(era.survivors))
        cluster.start(era.crashed)


@settings(derandomize=True, max_examples=60)
@given(st.booleans(), ERAS, st.sampled_from(BROKERS))
def test_logs_converge(truncation_on_fetch: bool, eras: list[Era], last_leader: int) -> None:
    cluster = Cluster(3, protocol=ProtocolConfig(truncation_on_fetch=truncation_on_fetch))
    for era in eras:
        live_through(cluster, era)

    cluster.elect(last_leader, (last_leader,))
    cluster.append(last_leader)
    cluster.settle(25)

    logs = [cluster.log(broker) for broker in BROKERS]
    assert [log.batches() for log in logs] == [logs[last_leader].batches()] * 3
    for log in logs:
        starts: dict[int, int] = {}
        for batch in log.batches():
            starts.setdefault(batch.partition_leader_epoch, batch.base_offset)
        assert dict(epochs_of(log)) == starts
