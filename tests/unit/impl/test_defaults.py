"""What nobody sets is as Kafka sets it: the defaults, by the names of Kafka's settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from impl.controller.request_batch import ControllerConfig
from impl.delayed.waiting_requests import WaitingRequests
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.group.client.config import GroupRebalanceConfig
from impl.group.client.consumer_config import ConsumerConfig
from impl.log_types import LogConfig
from impl.network import FetchConfig
from impl.purgatory.delayed_operation_purgatory import (
    REAPER_POLL_MS,
    DelayedOperationPurgatory,
)
from impl.purgatory.system_timer import SystemTimer
from impl.replica_requests import ReplicaManagerConfig


def default(function: Callable[..., object], name: str) -> object:
    """What a parameter is if nobody gives it."""
    return inspect.signature(function).parameters[name].default


LOG, FETCH, BROKER = LogConfig(), FetchConfig(1), ReplicaManagerConfig(1)
CONTROLLER, GROUP, CONSUMER = ControllerConfig(1), GroupRebalanceConfig("g"), ConsumerConfig(())


@pytest.mark.parametrize(
    ("setting", "found", "expected"),
    [
        ("log.segment.bytes", LOG.segment_bytes, 1_073_741_824),
        ("log.retention.bytes", LOG.retention_bytes, None),
        ("min.insync.replicas", LOG.min_insync_replicas, 1),
        ("replica.fetch.wait.max.ms", FETCH.max_wait_ms, 500),
        ("replica.fetch.min.bytes", FETCH.min_bytes, 1),
        ("replica.fetch.response.max.bytes", FETCH.max_bytes, 10_485_760),
        ("replica.fetch.max.bytes", FETCH.partition_max_bytes, 1_048_576),
        ("replica.fetch.backoff.ms", default(ReplicaFetcherThread, "fetch_back_off_ms"), 1_000),
        ("replica.lag.time.max.ms", BROKER.replica_lag_time_max_ms, 30_000),
        ("controller.socket.timeout.ms", CONTROLLER.controller_socket_timeout_ms, 30_000),
        ("RequestSendThread's back-off", CONTROLLER.retry_back_off_ms, 100),
        ("session.timeout.ms", GROUP.session_timeout_ms, 45_000),
        ("max.poll.interval.ms", GROUP.rebalance_timeout_ms, 300_000),
        ("heartbeat.interval.ms", GROUP.heartbeat_interval_ms, 3_000),
        ("retry.backoff.ms", GROUP.retry_backoff_ms, 100),
        ("retry.backoff.max.ms", GROUP.retry_backoff_max_ms, 1_000),
        ("leaveGroupOnClose", GROUP.leave_group_on_close, True),
        ("enable.auto.commit", CONSUMER.enable_auto_commit, True),
        ("auto.commit.interval.ms", CONSUMER.auto_commit_interval_ms, 5_000),
        ("timer tick", default(SystemTimer, "tick_ms"), 1),
        ("timer wheel", default(SystemTimer, "wheel_size"), 20),
        ("purge interval", default(DelayedOperationPurgatory, "purge_interval"), 1_000),
        ("purgatory shards", default(DelayedOperationPurgatory, "shards"), 512),
        ("shards of requests", default(WaitingRequests, "shards"), 512),
        ("reaper's work time-out", REAPER_POLL_MS, 200),
        ("reaper", default(DelayedOperationPurgatory, "reaper_enabled"), True),
        ("timer", default(DelayedOperationPurgatory, "timer_enabled"), True),
    ],
)
def test_a_default_is_kafkas(setting: str, found: object, expected: object) -> None:
    assert found == expected, setting
