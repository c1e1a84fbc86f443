"""One broker's request handlers over a group coordinator: what KafkaApis does for a consumer.

The coordinators are real. Topics hold what producers send (`producing`, `transactions`), or records
that are made up for whoever reads (`reading`, `logs`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..clock import Clock
from ..concurrency import NoConcurrency
from ..coordinator.group.config import ConsumerGroupConfig
from ..disk import MemoryDisk
from ..errors import Errors
from ..fetch_session import MAX_SESSIONS, FetchSessionCache
from ..group.config import GroupConfig
from ..group.find_coordinator import find_coordinator
from ..group.group_coordinator import GroupCoordinator, seeded_ids
from ..group.messages import (
    CONSUMER_PROTOCOL_TYPE,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
)
from ..group.offset_handler import CommitCallback, commit_error
from ..group.offsets_topic import LocalOffsetsTopic
from ..scheduler import ImmediateScheduler
from ..types import BrokerEndPoint, TopicPartition
from . import group_requests, group_responses
from .consumer_groups import ConsumerGroups
from .entities import (
    NO_TIME,
    Entity,
    Received,
    make,
    module_of,
)
from .group_responses import code
from .logs import PartitionLogs, ProducedLogs, RecordLogs
from .producing import Producing
from .reading import Reading
from .transactions import Transactions

Answer = Callable[[Entity], None]
"""Called once with the response's body, at once or later; None: nobody waits for one."""
Delay = Callable[[int, Callable[[], None]], None]
"""Runs a function so many milliseconds later."""

CLUSTER_ID = "kconform"
_UNKNOWN_AUTHORIZED_OPERATIONS = -(2**31)

OFFERED: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "produce": (0, 3, 13),
        "fetch": (1, 4, 18),
        "list_offsets": (2, 1, 11),
        "metadata": (3, 0, 13),
        "offset_commit": (8, 2, 9),
        "offset_fetch": (9, 1, 9),
        "find_coordinator": (10, 0, 6),
        "join_group": (11, 0, 9),
        "heartbeat": (12, 0, 4),
        "leave_group": (13, 0, 5),
        "sync_group": (14, 0, 5),
        "describe_groups": (15, 0, 5),
        "list_groups": (16, 0, 5),
        "api_versions": (18, 0, 4),
        "create_topics": (19, 2, 7),
        "delete_records": (21, 0, 2),
        "init_producer_id": (22, 0, 5),
        "offset_for_leader_epoch": (23, 2, 4),
        "add_partitions_to_txn": (24, 0, 3),
        "add_offsets_to_txn": (25, 0, 4),
        "end_txn": (26, 0, 5),
        "write_txn_markers": (27, 1, 2),
        "txn_offset_commit": (28, 0, 5),
        "delete_groups": (42, 0, 2),
        "describe_producers": (61, 0, 0),
        "describe_transactions": (65, 0, 0),
        "list_transactions": (66, 0, 2),
        "consumer_group_heartbeat": (68, 0, 1),
        "consumer_group_describe": (69, 0, 1),
    }
)
"""The APIs that are answered: key, lowest and highest version."""
_GROUP_VERSION = ("group.version", 1)
"""The feature that says whether groups may be KIP-848's, and its level."""
_TRANSACTION_VERSION = "transaction.version"
"""The feature that says by which rules clients end their transactions."""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Where the broker listens, its topics' numbers of partitions, its group settings.

    `seed` decides the member ids. A topic that a client asks for is made with `default_partitions`.
    A fetch brings batches of `batch` records that are made up; with 0 what producers have sent.
    `transaction_version` is the level of the feature. `fetch_session_slots`: so many fetch sessions
    are kept.
    """

    endpoint: BrokerEndPoint
    topics: Mapping[str, int] = field(default_factory=dict)
    default_partitions: int = 1
    groups: GroupConfig = field(default_factory=GroupConfig)
    consumer_groups: ConsumerGroupConfig = field(default_factory=ConsumerGroupConfig)
    seed: int = 1
    batch: int = 0
    transaction_version: int = 2
    fetch_session_slots: int = MAX_SESSIONS


class Broker:
    """Answers requests; not thread-safe, as one event loop drives it.

    `expire_due` has to be called as time passes: it lets the coordinator's timers expire.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, delay: Delay) -> None:
        self._config = config
        self._topics = dict(config.topics)
        self._names = {_id_of(name): name for name in config.topics}
        self.logs: PartitionLogs = RecordLogs(config.batch) if config.batch else ProducedLogs(clock)
        concurrency = NoConcurrency()
        topic = LocalOffsetsTopic(MemoryDisk(), ImmediateScheduler(), concurrency, 1)
        self.coordinator = GroupCoordinator(
            topic,
            clock,
            unique_id=seeded_ids(config.seed),
            config=config.groups,
            concurrency=concurrency,
        )
        self.consumer_groups = ConsumerGroups(
            self,
            config.consumer_groups,
            clock,
            delay,
            lambda group_id: self.coordinator.manager.get_group(group_id) is not None,
            seeded_ids(config.seed + 1),
        )
        self._transactions = transactions = Transactions(
            self.logs,
            self.coordinator,
            self._partition,
            lambda partition: partition.partition in range(self.num_partitions(partition.topic)),
            clock,
            config.transaction_version,
        )
        producing = Producing(self.logs, self._partition, transactions.add_partitions)
        sessions = FetchSessionCache(
            concurrency.lock("fetch sessions"), clock, config.fetch_session_slots
        )
        reading = Reading(self.logs, self._partition, delay, sessions)
        self.coordinator.startup()
        self.coordinator.on_election(0, 0)
        self._handlers: Mapping[str, Callable[[Received, str, Answer], None]] = {
            "api_versions": self._api_versions,
            "metadata": self._metadata,
            "create_topics": self._create_topics,
            "list_offsets": at_once(reading.list_offsets),
            "fetch": reading.fetch,
            "offset_for_leader_epoch": at_once(reading.offset_for_leader_epoch),
            "delete_records": at_once(producing.delete_records),
            "produce": at_once(producing.produce),
            "init_producer_id": transactions.init_producer_id,
            "add_partitions_to_txn": at_once(transactions.add_partitions_to_txn),
            "add_offsets_to_txn": at_once(transactions.add_offsets_to_txn),
            "end_txn": transactions.end_txn,
            "write_txn_markers": at_once(transactions.write_txn_markers),
            "txn_offset_commit": self._commit_txn_offsets,
            "describe_transactions": at_once(transactions.describe_transactions),
            "list_transactions": at_once(transactions.list_transactions),
            "describe_producers": at_once(producing.describe_producers),
            "find_coordinator": self._find_coordinator,
            "list_groups": self._list_groups,
            "offset_fetch": self._offset_fetch,
            "consumer_group_heartbeat": self.consumer_groups.heartbeat,
            "consumer_group_describe": self.consumer_groups.describe,
        }
        self._of_group: Mapping[str, Callable[[Any, Callable[[Any], None]], None]] = {
            "join_group": self._join_group,
            "sync_group": self.coordinator.handle_sync_group,
            "heartbeat": self.coordinator.handle_heartbeat,
            "leave_group": self.coordinator.handle_leave_group,
            "offset_commit": self._commit_offsets,
            "describe_groups": lambda request, answer: answer(
                self.coordinator.handle_describe_groups(request)
            ),
            "delete_groups": self._delete_groups,
        }

    def expire_due(self) -> int:
        """Let the timers expire whose time has come; return how many did."""
        self._transactions.expire_due()
        return self.coordinator.expire_due()

    def handle(self, received: Received, client_host: str, answer: Answer) -> None:
        """Answer a request of an offered API and version, at once or when it is due."""
        handler = self._handlers.get(received.api)
        if handler is not None:
            handler(received, client_host, answer)
            return
        message = group_requests.from_entity(received, client_host)

        def answered(response: Any) -> None:
            answer(group_responses.to_entity(received.api, response, received.version))

        self._of_group[received.api](message, answered)

    # ---- topics, as `BrokerTopics` ---------------------------------------------------------

    def topic_id(self, name: str) -> uuid.UUID | None:
        """See `BrokerTopics.topic_id`."""
        return _id_of(name) if name in self._topics else None

    def topic_name(self, topic_id: uuid.UUID) -> str:
        """See `BrokerTopics.topic_name`."""
        return next((name for name in self._topics if _id_of(name) == topic_id), "")

    def topic_names(self) -> frozenset[str]:
        """See `BrokerTopics.topic_names`."""
        return frozenset(self._topics)

    def num_partitions(self, name: str) -> int:
        """See `BrokerTopics.num_partitions`."""
        return self._topics.get(name, 0)

    # ---- the cluster -----------------------------------------------------------------------

    def _api_versions(self, received: Received, _host: str, answer: Answer) -> None:
        version = self._config.transaction_version
        answer(api_versions(received.version, Errors.NONE, version))

    def _metadata(self, received: Received, _host: str, answer: Answer) -> None:
        module = module_of("metadata", received.version, "response")
        asked = received.body.topics
        # Version 0 asks for all topics by naming none.
        everything = asked is None or (received.version == 0 and not asked)
        names = list(self._topics) if everything else [self._name(one) for one in asked]
        node = self._config.endpoint
        broker = make(
            module.MetadataResponseBroker,
            node_id=node.id,
            host=node.host,
            port=node.port,
            rack=None,
        )
        answer(
            make(
                module.MetadataResponse,
                throttle_time=NO_TIME,
                brokers=(broker,),
                cluster_id=CLUSTER_ID,
                controller_id=node.id,
                topics=tuple(self._topic(name, module) for name in names),
                error_code=code(Errors.NONE),
                cluster_authorized_operations=_UNKNOWN_AUTHORIZED_OPERATIONS,
            )
        )

    def _name(self, asked: Any) -> str | uuid.UUID:
        """A topic's name, given by name or by id (KIP-516); of an unknown id the id itself."""
        name: str | None = getattr(asked, "name", None) or getattr(asked, "topic", None)
        return name or self._names.get(asked.topic_id, asked.topic_id)

    def _topic(self, name: str | uuid.UUID, module: Any) -> Entity:
        if isinstance(name, uuid.UUID):
            return make(
                module.MetadataResponseTopic,
                error_code=code(Errors.UNKNOWN_TOPIC_ID),
                name=None,
                topic_id=name,
                is_internal=False,
                partitions=(),
            )
        if name not in self._topics:
            self._create_topic(name, self._config.default_partitions)
        count = self._topics[name]
        node = self._config.endpoint.id
        return make(
            module.MetadataResponseTopic,
            error_code=code(Errors.NONE),
            name=name,
            topic_id=_id_of(name),
            is_internal=False,
            partitions=tuple(
                make(
                    module.MetadataResponsePartition,
                    error_code=code(Errors.NONE),
                    partition_index=index,
                    leader_id=node,
                    leader_epoch=self.logs.leader_epoch(TopicPartition(name, index)),
                    replica_nodes=(node,),
                    isr_nodes=(node,),
                    offline_replicas=(),
                )
                for index in range(count)
            ),
            topic_authorized_operations=_UNKNOWN_AUTHORIZED_OPERATIONS,
        )

    def _create_topic(self, name: str, partitions: int) -> None:
        self._topics[name] = partitions
        self._names[_id_of(name)] = name
        self.consumer_groups.coordinator.on_new_metadata_image({name}, has_new_topics=True)

    def _create_topics(self, received: Received, _host: str, answer: Answer) -> None:
        module = module_of("create_topics", received.version, "response")
        results = []
        for topic in received.body.topics:
            exists = topic.name in self._topics
            if not exists and not received.body.validate_only:
                self._create_topic(topic.name, max(topic.num_partitions, 1))
            error = Errors.TOPIC_ALREADY_EXISTS if exists else Errors.NONE
            results.append(
                make(
                    module.CreatableTopicResult,
                    name=topic.name,
                    topic_id=_id_of(topic.name),
                    error_code=code(error),
                    error_message=None,
                    topic_config_error_code=code(Errors.NONE),
                    num_partitions=self._topics.get(topic.name, -1),
                    replication_factor=1,
                    configs=(),
                )
            )
        answer(make(module.CreateTopicsResponse, throttle_time=NO_TIME, topics=tuple(results)))

    # ---- partitions ------------------------------------------------------------------------

    def _partition(self, topic: Any, index: int) -> TopicPartition | Errors:
        """The partition that a request means by its topic's name or id."""
        name = self._name(topic)
        if not isinstance(name, str):
            return Errors.UNKNOWN_TOPIC_ID
        if index not in range(self._topics.get(name, 0)):
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        return TopicPartition(name, index)

    # ---- groups ----------------------------------------------------------------------------

    def _find_coordinator(self, received: Received, _host: str, answer: Answer) -> None:
        found = [
            (one.key, find_coordinator(one, 1, lambda _partition: self._config.endpoint))
            for one in group_requests.from_entity(received, "")
        ]
        answer(group_responses.to_entity(received.api, found, received.version))

    def _is_modern(self, group_id: str) -> bool:
        return self.consumer_groups.coordinator.has_group(group_id)

    def _join_group(
        self, request: JoinGroupRequest, answer: Callable[[JoinGroupResponse], None]
    ) -> None:
        """A classic member in a group of KIP-848, as with the migration policy `disabled`."""
        if self._is_modern(request.group_id):
            answer(JoinGroupResponse(Errors.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
        else:
            self.coordinator.handle_join_group(request, answer)

    def _commit_offsets(
        self, request: OffsetCommitRequest, answer: Callable[[OffsetCommitResponse], None]
    ) -> None:
        if self._is_modern(request.group_id):
            self.consumer_groups.coordinator.commit_offsets(request, answer)
        else:
            self.coordinator.handle_commit_offsets(request, answer)

    def _commit_txn_offsets(self, received: Received, _host: str, answer: Answer) -> None:
        """Groups of KIP-848 keep no positions of transactions here."""

        def commit(request: TxnOffsetCommitRequest, answered: CommitCallback) -> None:
            if self._is_modern(request.group_id):
                answered(commit_error(request.partitions, Errors.INVALID_REQUEST))
            else:
                self.coordinator.handle_txn_commit_offsets(request, answered)

        self._transactions.txn_offset_commit(received, commit, answer)

    def _delete_groups(
        self, request: DeleteGroupsRequest, answer: Callable[[DeleteGroupsResponse], None]
    ) -> None:
        modern = [name for name in request.groups_names if self._is_modern(name)]
        classic = tuple(name for name in request.groups_names if name not in modern)
        results = list(self.coordinator.handle_delete_groups(DeleteGroupsRequest(classic)).results)
        for name in modern:
            self.consumer_groups.coordinator.delete_group(
                name,
                lambda error, name=name: results.append(  # type: ignore[misc]  # bound now
                    DeletableGroupResult(name, error)
                ),
            )
        answer(DeleteGroupsResponse(tuple(results)))

    def _fetch_offsets(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        if not self._is_modern(request.group_id):
            return self.coordinator.handle_fetch_offsets(request)
        answers: list[OffsetFetchResponse] = []
        self.consumer_groups.coordinator.fetch_offsets(request, answers.append)
        (response,) = answers  # reads wait for nothing
        return response

    def _offset_fetch(self, received: Received, _host: str, answer: Answer) -> None:
        responses = [
            (request.group_id, self._fetch_offsets(request))
            for request in group_requests.from_entity(received, "")
        ]
        answer(group_responses.to_entity(received.api, responses, received.version))

    def _list_groups(self, received: Received, _host: str, answer: Answer) -> None:
        module = module_of("list_groups", received.version, "response")
        states = frozenset(getattr(received.body, "states_filter", ()))
        types = frozenset(one.lower() for one in getattr(received.body, "types_filter", ()))
        groups = tuple(
            make(
                module.ListedGroup,
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type="classic",
            )
            for group in self.coordinator.manager.current_groups()
            if (not states or group.state.value in states) and (not types or "classic" in types)
        )
        modern: dict[str, str] = {}
        self.consumer_groups.coordinator.list_groups(modern.update)
        groups += tuple(
            make(
                module.ListedGroup,
                group_id=group_id,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                group_state=state,
                group_type=CONSUMER_PROTOCOL_TYPE,
            )
            for group_id, state in modern.items()
            if (not states or state in states) and (not types or CONSUMER_PROTOCOL_TYPE in types)
        )
        answer(
            make(
                module.ListGroupsResponse,
                throttle_time=NO_TIME,
                error_code=code(Errors.NONE),
                groups=groups,
            )
        )


def at_once(
    answered: Callable[[Received], Entity | None],
) -> Callable[[Received, str, Answer], None]:
    """A handler whose answer waits for nothing."""

    def handle(received: Received, _host: str, answer: Answer) -> None:
        answer(answered(received))

    return handle


def _id_of(topic: str) -> uuid.UUID:
    """A topic's id (KIP-516)."""
    return uuid.uuid5(uuid.NAMESPACE_OID, topic)


def api_versions(version: int, error: Errors, transaction_version: int = 0) -> Entity:
    """What is offered; to a version that is not, version 0 with an error (KIP-511)."""
    module = module_of("api_versions", version, "response")
    keys = tuple(
        module.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, low, high in OFFERED.values()
    )
    return make(
        module.ApiVersionsResponse,
        error_code=code(error),
        api_keys=keys,
        throttle_time=NO_TIME,
        **_features(module, transaction_version),
    )


def _features(module: Any, transaction_version: int) -> dict[str, object]:
    """What is on in the cluster (KIP-584); versions before 3 have no room for it."""
    if not hasattr(module, "SupportedFeatureKey"):
        return {}
    group_version, level = _GROUP_VERSION
    levels = {group_version: level, _TRANSACTION_VERSION: transaction_version}
    # Up to version 3 a feature whose lowest level is 0 is left out (KIP-1022): it can be disabled.
    return {
        "supported_features": tuple(
            module.SupportedFeatureKey(name=name, min_version=1, max_version=highest)
            for name, highest in ((group_version, level), (_TRANSACTION_VERSION, 2))
        ),
        "finalized_features_epoch": 0,
        "finalized_features": tuple(
            module.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.items()
            if level
        ),
    }
