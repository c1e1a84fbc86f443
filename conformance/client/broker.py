"""What the loop answers as a broker to requests that the specification does not know.

The client has to find one broker, its topic, records in it and the positions that it committed.
All of it is made up here: no group exists but in the specification's states.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.primitive import Records

from conformance.client.logs import LEADER_EPOCH, Partition, RecordLogs
from conformance.client.subject import PARTITIONS
from conformance.kafka.entities import (
    NEWEST,
    NO_TIME,
    Entity,
    Received,
    in_milliseconds,
    in_version,
    make,
    module_of,
    newest,
)

Answer = Callable[[Entity], None]
"""Called once with the response's body, at once or later."""
Delay = Callable[[int, Callable[[], None]], None]
"""Runs a function so many milliseconds later."""

OFFERED: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
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
        "create_topics": (19, 2, 5),
        "delete_groups": (42, 0, 2),
    }
)
"""The APIs that are answered: key, lowest and highest version."""

_BROKER = 0
_RECORDS_AFTER_MS = 100
"""So long a fetch waits for records: a consumer reads without pause else."""
_BATCH = 3
"""Records of a batch: so many that positions are within one, too."""
_CLUSTER_ID = "kconform"
_UNKNOWN_OPERATIONS = -(2**31)
"""Of authorized operations that nobody has asked for."""


class LoopBroker:
    """The broker's side. It listens at `host` and `port`; one event loop drives it."""

    def __init__(self, host: str, port: int, delay: Delay) -> None:
        self._host, self._port = host, port
        self._delay = delay
        self.logs = RecordLogs(_BATCH)
        self._topics: dict[str, int] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._positions: dict[str, dict[Partition, int]] = {}
        """Committed offsets, by group."""
        self._handlers: Mapping[str, Callable[[Received], Entity]] = {
            "api_versions": lambda received: api_versions(received.version, ErrorCode.none),
            "metadata": self._metadata,
            "create_topics": self._create_topics,
            "list_offsets": self._list_offsets,
            "fetch": self._fetch,
            "find_coordinator": self._find_coordinator,
            "offset_fetch": self._offset_fetch,
            "list_groups": self._list_groups,
            "describe_groups": self._describe_groups,
            "delete_groups": self._delete_groups,
        }

    def handle(self, received: Received, answer: Answer) -> None:
        """Answer a request of an offered API and version, at once or when it is due."""
        if received.api == "fetch":
            wait = min(in_milliseconds(received.body.max_wait), _RECORDS_AFTER_MS)
            self._delay(wait, lambda: answer(self._fetch(received)))
        else:
            answer(self._handlers[received.api](received))

    def commit(self, group_id: str, offsets: Iterable[tuple[str, int, int]]) -> None:
        """Keep positions: topic, partition, offset."""
        positions = self._positions.setdefault(group_id, {})
        positions.update({(topic, partition): offset for topic, partition, offset in offsets})

    # ---- the cluster -----------------------------------------------------------------------

    def _metadata(self, received: Received) -> Entity:
        module = module_of("metadata", received.version, "response")
        asked = received.body.topics
        # Version 0 asks for all topics by naming none.
        everything = asked is None or (received.version == 0 and not asked)
        names = list(self._topics) if everything else [self._name(topic) for topic in asked]
        broker = make(
            module.MetadataResponseBroker,
            node_id=_BROKER,
            host=self._host,
            port=self._port,
            rack=None,
        )
        return make(
            module.MetadataResponse,
            throttle_time=NO_TIME,
            brokers=(broker,),
            cluster_id=_CLUSTER_ID,
            controller_id=_BROKER,
            topics=tuple(self._topic(name, module) for name in names),
            error_code=ErrorCode.none,
            cluster_authorized_operations=_UNKNOWN_OPERATIONS,
        )

    def _name(self, asked: Any) -> str | uuid.UUID:
        """A topic's name, given by name or by id (KIP-516); of an unknown id the id itself."""
        name: str | None = getattr(asked, "name", None) or getattr(asked, "topic", None)
        return name or self._names.get(asked.topic_id, asked.topic_id)

    def _topic(self, name: str | uuid.UUID, module: Any) -> Entity:
        """A topic that is asked for by its name is made."""
        known = isinstance(name, str)
        partitions: tuple[Entity, ...] = ()
        if isinstance(name, str):
            self._names[_id_of(name)] = name
            count = self._topics.setdefault(name, PARTITIONS)
            partitions = tuple(_led(index, module) for index in range(count))
        return make(
            module.MetadataResponseTopic,
            error_code=ErrorCode.none if known else ErrorCode.unknown_topic_id,
            name=name if known else None,
            topic_id=_id_of(name) if isinstance(name, str) else name,
            is_internal=False,
            partitions=partitions,
            topic_authorized_operations=_UNKNOWN_OPERATIONS,
        )

    def _create_topics(self, received: Received) -> Entity:
        module = module_of("create_topics", received.version, "response")
        results = tuple(
            self._created(topic, module, only_validate=received.body.validate_only)
            for topic in received.body.topics
        )
        return make(module.CreateTopicsResponse, throttle_time=NO_TIME, topics=results)

    def _created(self, topic: Any, module: Any, *, only_validate: bool) -> Entity:
        exists = topic.name in self._topics
        if not exists and not only_validate:
            self._topics[topic.name] = max(topic.num_partitions, 1)
        return make(
            module.CreatableTopicResult,
            name=topic.name,
            error_code=ErrorCode.topic_already_exists if exists else ErrorCode.none,
            error_message=None,
            topic_config_error_code=ErrorCode.none,
            num_partitions=self._topics.get(topic.name, -1),
            replication_factor=1,
            configs=(),
        )

    # ---- partitions ------------------------------------------------------------------------

    def _list_offsets(self, received: Received) -> Entity:
        module = module_of("list_offsets", received.version, "response")
        topics = tuple(
            module.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    self._offset(topic.name, partition, module) for partition in topic.partitions
                ),
            )
            for topic in received.body.topics
        )
        return make(module.ListOffsetsResponse, throttle_time=NO_TIME, topics=topics)

    def _offset(self, topic: str, asked: Any, module: Any) -> Entity:
        return make(
            module.ListOffsetsPartitionResponse,
            partition_index=asked.partition_index,
            error_code=ErrorCode.none,
            timestamp=-1,
            offset=self.logs.offset_for((topic, asked.partition_index), asked.timestamp),
            leader_epoch=LEADER_EPOCH,
        )

    def _fetch(self, received: Received) -> Entity:
        module = module_of("fetch", received.version, "response")
        topics = tuple(
            make(
                module.FetchableTopicResponse,
                topic=getattr(topic, "topic", None),
                topic_id=getattr(topic, "topic_id", None),
                partitions=tuple(
                    self._read(self._name(topic), partition, module)
                    for partition in topic.partitions
                ),
            )
            for topic in received.body.topics
        )
        return make(
            module.FetchResponse,
            throttle_time=NO_TIME,
            error_code=ErrorCode.none,
            session_id=0,
            responses=topics,
        )

    def _read(self, topic: str | uuid.UUID, asked: Any, module: Any) -> Entity:
        error, records, end = ErrorCode.unknown_topic_id, b"", -1
        if isinstance(topic, str):
            partition = (topic, int(asked.partition))
            error, records = self.logs.read(partition, asked.fetch_offset)
            end = self.logs.end(partition)
        return make(
            module.PartitionData,
            partition_index=asked.partition,
            error_code=error,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=0,
            aborted_transactions=None,
            preferred_read_replica=-1,
            records=Records(records),  # no bytes, but not null, for a fetch that brings nothing
        )

    # ---- groups ----------------------------------------------------------------------------

    def _find_coordinator(self, received: Received) -> Entity:
        asked = in_version(received.body, NEWEST["find_coordinator"])
        module = newest("find_coordinator", "response")
        coordinators = tuple(
            make(
                module.Coordinator,
                key=key,
                node_id=_BROKER,
                host=self._host,
                port=self._port,
                error_code=ErrorCode.none,
                error_message=None,
            )
            for key in asked.coordinator_keys
        )
        return in_version(
            make(module.FindCoordinatorResponse, throttle_time=NO_TIME, coordinators=coordinators),
            received.version,
        )

    def _offset_fetch(self, received: Received) -> Entity:
        asked = in_version(received.body, NEWEST["offset_fetch"])
        module = newest("offset_fetch", "response")
        groups = tuple(self._committed(group, module) for group in asked.groups)
        body = make(module.OffsetFetchResponse, throttle_time=NO_TIME, groups=groups)
        return in_version(body, received.version)

    def _committed(self, asked: Any, module: Any) -> Entity:
        """Of the partitions that are named; of all, if none is."""
        positions = self._positions.get(asked.group_id, {})
        wanted: dict[str, list[int]] = {}
        if asked.topics is None:
            for topic, partition in sorted(positions):
                wanted.setdefault(topic, []).append(partition)
        else:
            wanted = {topic.name: list(topic.partition_indexes) for topic in asked.topics}
        topics = tuple(
            module.OffsetFetchResponseTopics(
                name=topic,
                partitions=tuple(
                    make(
                        module.OffsetFetchResponsePartitions,
                        partition_index=index,
                        committed_offset=positions.get((topic, index), -1),
                        committed_leader_epoch=-1,
                        metadata="",
                        error_code=ErrorCode.none,
                    )
                    for index in indexes
                ),
            )
            for topic, indexes in wanted.items()
        )
        return make(
            module.OffsetFetchResponseGroup,
            group_id=asked.group_id,
            topics=topics,
            error_code=ErrorCode.none,
        )

    def _list_groups(self, received: Received) -> Entity:
        module = module_of("list_groups", received.version, "response")
        states = frozenset(getattr(received.body, "states_filter", ()))
        types = frozenset(name.lower() for name in getattr(received.body, "types_filter", ()))
        shown = (not states or "Empty" in states) and (not types or "classic" in types)
        groups = tuple(
            make(
                module.ListedGroup,
                group_id=group_id,
                protocol_type="",
                group_state="Empty",
                group_type="classic",
            )
            for group_id in (self._positions if shown else ())
        )
        return make(
            module.ListGroupsResponse,
            throttle_time=NO_TIME,
            error_code=ErrorCode.none,
            groups=groups,
        )

    def _describe_groups(self, received: Received) -> Entity:
        """As a coordinator that has nothing but their positions."""
        module = module_of("describe_groups", received.version, "response")
        groups = tuple(
            make(
                module.DescribedGroup,
                error_code=ErrorCode.none,
                group_id=group_id,
                group_state="Empty" if group_id in self._positions else "Dead",
                protocol_type="",
                protocol_data="",
                members=(),
            )
            for group_id in received.body.groups
        )
        return make(module.DescribeGroupsResponse, throttle_time=NO_TIME, groups=groups)

    def _delete_groups(self, received: Received) -> Entity:
        module = module_of("delete_groups", received.version, "response")
        results = []
        for group_id in received.body.groups_names:
            known = self._positions.pop(group_id, None) is not None
            error = ErrorCode.none if known else ErrorCode.group_id_not_found
            results.append(module.DeletableGroupResult(group_id=group_id, error_code=error))
        return make(module.DeleteGroupsResponse, throttle_time=NO_TIME, results=tuple(results))


def _led(index: int, module: Any) -> Entity:
    """A partition that the one broker leads."""
    return make(
        module.MetadataResponsePartition,
        error_code=ErrorCode.none,
        partition_index=index,
        leader_id=_BROKER,
        leader_epoch=LEADER_EPOCH,
        replica_nodes=(_BROKER,),
        isr_nodes=(_BROKER,),
        offline_replicas=(),
    )


def _id_of(topic: str) -> uuid.UUID:
    """A topic's id (KIP-516)."""
    return uuid.uuid5(uuid.NAMESPACE_OID, topic)


def api_versions(version: int, error: ErrorCode) -> Entity:
    """What is offered; to a version that is not, version 0 with an error (KIP-511)."""
    module = module_of("api_versions", version, "response")
    keys = tuple(
        module.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, low, high in OFFERED.values()
    )
    return make(module.ApiVersionsResponse, error_code=error, api_keys=keys, throttle_time=NO_TIME)
