"""Brokers together: restarts, elections, and logs that must agree in the end."""

from __future__ import annotations

import pytest

from impl.disk import nothing
from impl.types import (
    ProtocolConfig,
)
from tests.unit.impl.brokers import TP, epochs_of
from tests.unit.impl.cluster import Cluster

TRUNCATE_ON_FETCH = ProtocolConfig()
ASK_FOR_EPOCHS = ProtocolConfig(truncation_on_fetch=False)
BOTH = pytest.mark.parametrize(
    "protocol", [TRUNCATE_ON_FETCH, ASK_FOR_EPOCHS], ids=["truncate-on-fetch", "ask-for-epochs"]
)


def test_high_watermark_comes_back_from_its_checkpoint() -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1))
    cluster.append(0, 3)
    cluster.settle()
    assert cluster.log(0).high_watermark == 3
    cluster.brokers[0].checkpoint_high_watermarks()
    cluster.append(0, 2)
    cluster.settle()
    cluster.log(0).flush()

    cluster.crash(0, nothing)
    cluster.start(0)
    cluster.tell(0, (0, 1), (0,))

    assert (cluster.log(0).high_watermark, cluster.log(0).log_end_offset) == (3, 5)


def test_checkpointed_high_watermark_above_a_shortened_log_is_cut() -> None:
    cluster = Cluster()
    cluster.elect(0, (0,), tell=(0,))
    cluster.append(0, 2)
    cluster.brokers[0].checkpoint_high_watermarks()

    cluster.crash(0, nothing)
    cluster.start(0)
    cluster.elect(1, (1,))

    assert (cluster.log(0).high_watermark, cluster.log(0).log_end_offset) == (0, 0)


def test_restarted_follower_catches_up_from_what_survived() -> None:
    cluster = Cluster()
    cluster.elect(0, (0, 1))
    cluster.append(0, 3)
    cluster.settle()
    cluster.crash(1, nothing)
    cluster.append(0, 2)

    cluster.start(1)
    cluster.tell(0, (0, 1), (1,))
    cluster.settle()

    assert cluster.log(1).batches() == cluster.log(0).batches()
    assert cluster.log(0).high_watermark == 5


@BOTH
def test_p21_epochs_follow_the_leaders(protocol: ProtocolConfig) -> None:
    cluster = Cluster(protocol=protocol)

    def epochs() -> list[list[tuple[int, int]]]:
        return [epochs_of(cluster.log(broker)) for broker in (0, 1)]

    cluster.elect(0, (0, 1))
    cluster.append(0)
    cluster.settle()
    assert epochs() == [[(0, 0)], [(0, 0)]]

    cluster.stop(1)
    cluster.start(1)
    cluster.elect(0, (0, 1))
    cluster.settle()
    assert epochs() == [[(0, 0), (1, 1)], [(0, 0)]]

    cluster.append(0)
    cluster.settle()
    assert epochs() == [[(0, 0), (1, 1)]] * 2
    assert cluster.log(0).batches()[-1].partition_leader_epoch == 1

    cluster.stop(0)
    cluster.start(0)
    cluster.elect(0, (0, 1))
    cluster.settle()
    assert epochs() == [[(0, 0), (1, 1), (2, 2)], [(0, 0), (1, 1)]]

    cluster.append(0)
    cluster.settle()
    assert epochs() == [[(0, 0), (1, 1), (2, 2)]] * 2


@BOTH
def test_p23_logs_do_not_diverge_on_fast_unclean_elections(protocol: ProtocolConfig) -> None:
    """KIP-279: one round of truncation is not enough."""
    cluster = Cluster(protocol=protocol)
    a, b = 0, 1
    cluster.elect(a, (a, b))
    cluster.append(a)
    cluster.settle()

    for leader, count in ((b, 1), (a, 3), (b, 1), (a, 2)):
        other = a if leader == b else b
        if leader not in cluster.brokers:
            cluster.start(leader)
        if other in cluster.brokers:
            cluster.stop(other)
        cluster.elect(leader, (leader,))
        cluster.append(leader, count)
    assert cluster.log(a).log_end_offset == 6
    cluster.start(b)
    cluster.tell(a, (a,), (b,))
    assert cluster.log(b).log_end_offset == 3
    cluster.settle()

    assert cluster.log(b).batches() == cluster.log(a).batches()
    assert [entry.crc for entry in cluster.log(b).batches()] == [
        entry.crc for entry in cluster.log(a).batches()
    ]


@BOTH
def test_follower_in_an_epoch_that_wrote_nothing_agrees_with_the_next_leader(
    protocol: ProtocolConfig,
) -> None:
    """KAFKA-7415: three brokers, the middle leader writes nothing."""
    cluster = Cluster(3, protocol=protocol)
    cluster.elect(0, (0, 1, 2))
    cluster.append(0)
    cluster.settle()
    cluster.append(0)
    cluster.elect(1, (1, 2), tell=(1, 2))
    cluster.elect(2, (2, 1), tell=(1, 2))
    cluster.append(2)

    cluster.tell(2, (2, 1), (0,))
    cluster.settle()

    assert cluster.log(0).batches() == cluster.log(2).batches()
    assert epochs_of(cluster.log(0)) == [(0, 0), (2, 1)]


def test_isr_grows_and_the_high_watermark_follows() -> None:
    cluster = Cluster()
    cluster.elect(0, (0,))
    cluster.append(0, 2)
    assert cluster.log(0).high_watermark == 2
    cluster.settle()
    assert cluster.controllers[0].proposals() == [[0, 1]]

    cluster.controllers[0].accept()
    cluster.append(0)
    assert cluster.log(0).high_watermark == 2
    cluster.settle()

    assert cluster.brokers[0].get_partition_or_exception(TP).in_sync_replica_ids == {0, 1}
    assert [cluster.log(broker).high_watermark for broker in (0, 1)] == [3, 3]
