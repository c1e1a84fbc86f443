"""What follows `wire:`: where the broker listens, and what is known of its settings.

    127.0.0.1:9092?initial-delay=30&JoinGroup=5

A name says all of it, since a name is what a worker process and a command to repeat are given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from conformance.errors import UserError

FORM = "wire:HOST:PORT[?NAME=VALUE&...]"

_ADDRESS = re.compile(r"(\[[^\]]+\]|[^:\[\]]+):(\d{1,5})")
_DEFAULT_INITIAL_DELAY_MS = 3_000
"""group.initial.rebalance.delay.ms of Kafka as delivered."""
_DEFAULT_PATIENCE_MS = 300
SHARDS = 8
"""Of Kafka's cache of fetch sessions (KafkaBroker.NumFetchSessionCacheShards)."""

APIS: Mapping[str, str] = MappingProxyType(
    {
        "JoinGroup": "join_group",
        "SyncGroup": "sync_group",
        "Heartbeat": "heartbeat",
        "LeaveGroup": "leave_group",
        "OffsetCommit": "offset_commit",
        "DescribeGroups": "describe_groups",
        "DeleteGroups": "delete_groups",
        "FindCoordinator": "find_coordinator",
        "ListGroups": "list_groups",
        "OffsetFetch": "offset_fetch",
        "Metadata": "metadata",
        "CreateTopics": "create_topics",
        "DeleteTopics": "delete_topics",
        "CreatePartitions": "create_partitions",
        "IncrementalAlterConfigs": "incremental_alter_configs",
        "DescribeConfigs": "describe_configs",
        "ConsumerGroupHeartbeat": "consumer_group_heartbeat",
        "ConsumerGroupDescribe": "consumer_group_describe",
        "Produce": "produce",
        "Fetch": "fetch",
        "ListOffsets": "list_offsets",
        "InitProducerId": "init_producer_id",
        "DescribeProducers": "describe_producers",
        "AddPartitionsToTxn": "add_partitions_to_txn",
        "AddOffsetsToTxn": "add_offsets_to_txn",
        "TxnOffsetCommit": "txn_offset_commit",
        "EndTxn": "end_txn",
        "WriteTxnMarkers": "write_txn_markers",
        "DescribeTransactions": "describe_transactions",
        "ListTransactions": "list_transactions",
        "DeleteRecords": "delete_records",
        "OffsetForLeaderEpoch": "offset_for_leader_epoch",
    }
)
"""The requests whose version can be fixed, by Kafka's name."""
OPTIONAL = frozenset(
    {
        "describe_groups",
        "delete_groups",
        "list_groups",
        "offset_fetch",
        "metadata",
        "create_topics",
        "delete_topics",
        "create_partitions",
        "incremental_alter_configs",
        "describe_configs",
        "consumer_group_heartbeat",
        "consumer_group_describe",
        "produce",
        "fetch",
        "list_offsets",
        "init_producer_id",
        "describe_producers",
        "add_partitions_to_txn",
        "add_offsets_to_txn",
        "txn_offset_commit",
        "end_txn",
        "write_txn_markers",
        "describe_transactions",
        "list_transactions",
        "delete_records",
        "offset_for_leader_epoch",
    }
)
"""Requests that a broker may lack: what they would show or do is left out then."""


_NUMBERS = (
    "initial-delay",
    "patience",
    "max-size",
    "session",
    "min-session",
    "rebalance",
    "groups",
    "store-failures",
    "fetch-slots",
    "fetch-shards",
    "consumer-max-size",
    "assignment-interval",
    "regex-refresh",
)
_TEXTS = ("config", "tls-ca", "fail-over", "deviations", "migration-policy", "assignor")


@dataclass(frozen=True, slots=True)
class Address:
    """A broker. Times in ms: `initial_delay` is its group.initial.rebalance.delay.ms, `patience`
    how long a state that the specification does not allow is looked at again; `session` the timeout
    of a session that is to expire, 0 if none is to; `min_session` its group.min.session.timeout.ms;
    `rebalance` that of a rebalance that is to expire; `groups`: so many side by side; `max_size`
    its group.max.size, 0 if it is not said; `store_failures`: 1 if its offsets topic may be made to
    refuse an append for a moment; `fetch_slots`: its max.incremental.fetch.session.cache.slots, 0
    if it is not said, in so many `fetch_shards`; `migration_policy` and `assignor`: its
    group.consumer.migration.policy, and the first of its group.consumer.assignors;
    `consumer_max_size`, `assignment_interval` and `regex_refresh`: its group.consumer.max.size and
    group.consumer.regex.refresh.interval.ms, 0 if they are not said, and its
    group.consumer.assignment.interval.ms; `config`: a client's configuration file; `tls_ca`: a PEM
    file of whom to trust; `fail_over`: a command that moves the coordinator, or `move`;
    `deviations`: a system whose known deviations the broker has too; `versions`: of requests by
    kio's name, others get the newest that both sides know."""

    host: str
    port: int
    initial_delay: int = _DEFAULT_INITIAL_DELAY_MS
    patience: int = _DEFAULT_PATIENCE_MS
    max_size: int = 0
    session: int = 0
    min_session: int = 0
    rebalance: int = 800
    groups: int = 8
    store_failures: int = 0
    fetch_slots: int = 0
    fetch_shards: int = SHARDS
    migration_policy: str = "bidirectional"
    assignor: str = "uniform"
    consumer_max_size: int = 0
    assignment_interval: int = 0
    regex_refresh: int = 0
    config: str = ""
    tls_ca: str = ""
    fail_over: str = ""
    deviations: str = ""
    versions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read what follows `wire:`. Raises UserError."""
    where, _, query = text.partition("?")
    match = _ADDRESS.fullmatch(where)
    if match is None or not 0 < int(match[2]) < 65_536:
        raise UserError(
            f"{where!r} is no address of a broker. Write the system as `{FORM}`, for example "
            "`wire:127.0.0.1:9092?initial-delay=3000`."
        )
    numbers: dict[str, Any] = {}
    texts: dict[str, Any] = {}
    versions: dict[str, int] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in APIS:
            versions[APIS[name]] = _number(name, value)
        elif name in _NUMBERS:
            numbers[name.replace("-", "_")] = _number(name, value)
        elif name in _TEXTS:
            texts[name.replace("-", "_")] = value
        else:
            known = ", ".join([*_NUMBERS, *_TEXTS, *APIS])
            raise UserError(f"wire: knows no setting {name!r}. Known: {known}.")
    numbers.setdefault("min_session", numbers.get("session", 0))
    host, port = match[1].strip("[]"), int(match[2])
    return Address(host, port, versions=versions, **numbers, **texts)


def _number(name: str, value: str) -> int:
    if not value.isdecimal():
        raise UserError(f"wire: {name} is a number, not {value!r}: milliseconds, or a version.")
    return int(value)
