"""One broker's request handlers over a group coordinator: what KafkaApis does for a consumer.

The coordinator is real, the topics are empty: their partitions exist, their offsets are 0, a fetch
waits its time and brings nothing. That is all that a consumer needs to join a group and stay in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kio.static.primitive import Records

from ..clock import Clock
from ..concurrency import NoConcurrency
from ..disk import MemoryDisk
from ..errors import Errors
from ..group.config import GroupConfig
from ..group.find_coordinator import find_coordinator
from ..group.group_coordinator import GroupCoordinator, seeded_ids
from ..group.offsets_topic import LocalOffsetsTopic
from ..scheduler import ImmediateScheduler
from ..types import BrokerEndPoint
from . import group_requests, group_responses
from .entities import (
    NO_TIME,
    Entity,
    Received,
    in_milliseconds,
    make,
    module_of,
)
from .group_responses import code

Answer = Callable[[Entity], None]
"""Called once with the response's body, at once or later."""
Delay = Callable[[int, Callable[[], None]], None]
"""Runs a function so many milliseconds later."""

_NO_RECORDS = Records(b"")
"""As Kafka answers a fetch that brings nothing: no bytes, but not null."""
CLUSTER_ID = "kconform"
_UNKNOWN_AUTHORIZED_OPERATIONS = -(2**31)

OFFERED: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "fetch": (1, 4, 11),
        "list_offsets": (2, 1, 7),
        "metadata": (3, 0, 9),
        "offset_commit": (8, 2, 9),
        "offset_fetch": (9, 1, 9),
        "find_coordinator": (10, 0, 4),
        "join_group": (11, 0, 9),
        "heartbeat": (12, 0, 4),
        "leave_group": (13, 0, 5),
        "sync_group": (14, 0, 5),
        "describe_groups": (15, 0, 5),
        "list_groups": (16, 0, 5),
        "api_versions": (18, 0, 3),
        "create_topics": (19, 2, 5),
        "delete_groups": (42, 0, 2),
    }
)
"""The APIs that are answered: key, lowest and highest version."""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Where the broker listens, its topics' numbers of partitions, its group settings.

    `seed` decides the member ids. A topic that a client asks for is made with `default_partitions`.
    """

    endpoint: BrokerEndPoint
    topics: Mapping[str, int] = field(default_factory=dict)
    default_partitions: int = 1
    groups: GroupConfig = field(default_factory=GroupConfig)
    seed: int = 1


class Broker:
    """Answers requests; not thread-safe, as one event loop drives it.

    `expire_due` has to be called as time passes: it lets the coordinator's timers expire.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, delay: Delay) -> None:
        self._config = config
        self._topics = dict(config.topics)
        self._delay = delay
        concurrency = NoConcurrency()
        topic = LocalOffsetsTopic(MemoryDisk(), ImmediateScheduler(), concurrency, 1)
        self.coordinator = GroupCoordinator(
            topic,
            clock,
            unique_id=seeded_ids(config.seed),
            config=config.groups,
            concurrency=concurrency,
        )
        self.coordinator.startup()
        self.coordinator.on_election(0, 0)
        self._handlers: Mapping[str, Callable[[Received, str, Answer], None]] = {
            "api_versions": self._api_versions,
            "metadata": self._metadata,
            "create_topics": self._create_topics,
            "list_offsets": self._list_offsets,
            "fetch": self._fetch,
            "find_coordinator": self._find_coordinator,
            "list_groups": self._list_groups,
            "offset_fetch": self._offset_fetch,
        }
        self._of_group: Mapping[str, Callable[[Any, Callable[[Any], None]], None]] = {
            "join_group": self.coordinator.handle_join_group,
            "sync_group": self.coordinator.handle_sync_group,
            "heartbeat": self.coordinator.handle_heartbeat,
            "leave_group": self.coordinator.handle_leave_group,
            "offset_commit": self.coordinator.handle_commit_offsets,
            "describe_groups": lambda request, answer: answer(
                self.coordinator.handle_describe_groups(request)
            ),
            "delete_groups": lambda request, answer: answer(
                self.coordinator.handle_delete_groups(request)
            ),
        }

    def expire_due(self) -> int:
        """Let the timers expire whose time has come; return how many did."""
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

    # ---- the cluster -----------------------------------------------------------------------

    def _api_versions(self, received: Received, _host: str, answer: Answer) -> None:
        answer(api_versions(received.version, Errors.NONE))

    def _metadata(self, received: Received, _host: str, answer: Answer) -> None:
        module = module_of("metadata", received.version, "response")
        asked = received.body.topics
        # Version 0 asks for all topics by naming none.
        everything = asked is None or (received.version == 0 and not asked)
        names = list(self._topics) if everything else [one.name for one in asked]
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
                cluster_authorized_operations=_UNKNOWN_AUTHORIZED_OPERATIONS,
            )
        )

    def _topic(self, name: str, module: Any) -> Entity:
        count = self._topics.setdefault(name, self._config.default_partitions)
        node = self._config.endpoint.id
        return make(
            module.MetadataResponseTopic,
            error_code=code(Errors.NONE),
            name=name,
            is_internal=False,
            partitions=tuple(
                make(
                    module.MetadataResponsePartition,
                    error_code=code(Errors.NONE),
                    partition_index=index,
                    leader_id=node,
                    leader_epoch=0,
                    replica_nodes=(node,),
                    isr_nodes=(node,),
                    offline_replicas=(),
                )
                for index in range(count)
            ),
            topic_authorized_operations=_UNKNOWN_AUTHORIZED_OPERATIONS,
        )

    def _create_topics(self, received: Received, _host: str, answer: Answer) -> None:
        module = module_of("create_topics", received.version, "response")
        results = []
        for topic in received.body.topics:
            exists = topic.name in self._topics
            if not exists and not received.body.validate_only:
                self._topics[topic.name] = max(topic.num_partitions, 1)
            error = Errors.TOPIC_ALREADY_EXISTS if exists else Errors.NONE
            results.append(
                make(
                    module.CreatableTopicResult,
                    name=topic.name,
                    error_code=code(error),
                    error_message=None,
                    topic_config_error_code=code(Errors.NONE),
                    num_partitions=self._topics.get(topic.name, -1),
                    replication_factor=1,
                    configs=(),
                )
            )
        answer(make(module.CreateTopicsResponse, throttle_time=NO_TIME, topics=tuple(results)))

    # ---- empty partitions ------------------------------------------------------------------

    def _list_offsets(self, received: Received, _host: str, answer: Answer) -> None:
        module = module_of("list_offsets", received.version, "response")
        topics = tuple(
            module.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    make(
                        module.ListOffsetsPartitionResponse,
                        partition_index=one.partition_index,
                        error_code=code(Errors.NONE),
                        timestamp=-1,
                        offset=0,
                        leader_epoch=0,
                    )
                    for one in topic.partitions
                ),
            )
            for topic in received.body.topics
        )
        answer(make(module.ListOffsetsResponse, throttle_time=NO_TIME, topics=topics))

    def _fetch(self, received: Received, _host: str, answer: Answer) -> None:
        """Nothing ever arrives: min.bytes is never there, so max.wait passes (DelayedFetch)."""
        module = module_of("fetch", received.version, "response")
        body = received.body
        topics = tuple(
            make(
                module.FetchableTopicResponse,
                topic=topic.topic,
                partitions=tuple(
                    make(
                        module.PartitionData,
                        partition_index=one.partition,
                        error_code=code(Errors.NONE),
                        high_watermark=0,
                        last_stable_offset=0,
                        log_start_offset=0,
                        aborted_transactions=None,
                        preferred_read_replica=-1,
                        records=_NO_RECORDS,
                    )
                    for one in topic.partitions
                ),
            )
            for topic in body.topics
        )
        response = make(
            module.FetchResponse,
            throttle_time=NO_TIME,
            error_code=code(Errors.NONE),
            session_id=0,
            responses=topics,
        )
        self._delay(in_milliseconds(body.max_wait), lambda: answer(response))

    # ---- groups ----------------------------------------------------------------------------

    def _find_coordinator(self, received: Received, _host: str, answer: Answer) -> None:
        found = [
            (one.key, find_coordinator(one, 1, lambda _partition: self._config.endpoint))
            for one in group_requests.from_entity(received, "")
        ]
        answer(group_responses.to_entity(received.api, found, received.version))

    def _offset_fetch(self, received: Received, _host: str, answer: Answer) -> None:
        found = [
            (one.group_id, self.coordinator.handle_fetch_offsets(one))
            for one in group_requests.from_entity(received, "")
        ]
        answer(group_responses.to_entity(received.api, found, received.version))

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
        answer(
            make(
                module.ListGroupsResponse,
                throttle_time=NO_TIME,
                error_code=code(Errors.NONE),
                groups=groups,
            )
        )


def api_versions(version: int, error: Errors) -> Entity:
    """What is offered; to a version that is not, version 0 with an error (KIP-511)."""
    module = module_of("api_versions", version, "response")
    keys = tuple(
        module.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, low, high in OFFERED.values()
    )
    return make(
        module.ApiVersionsResponse, error_code=code(error), api_keys=keys, throttle_time=NO_TIME
    )
