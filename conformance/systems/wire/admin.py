"""What a test needs of a broker besides its groups: a topic to commit offsets of, a list of groups,
a log that refuses an append for a moment."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID

from kio.schema.errors import ErrorCode

from conformance.errors import UserError
from conformance.kafka.entities import Entity, make, milliseconds, module_of, newest
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.wire.port import CLIENT_ID, Port

OFFSETS_TOPIC = "__consumer_offsets"
_TOPIC_SECONDS = 30.0
_SETTLED_SECONDS = 10.0
_TOPIC, _SET = 2, 0
"""IncrementalAlterConfigs: the type of the resource, and the operation."""
_MORE_REPLICAS_THAN_THERE_ARE = 9


_NO_TOPIC_ID = UUID(int=0)
NOBODY = (-1, "", None)
"""Generation, member id and instance id of a consumer outside groups."""


def make_topic(
    port: Port,
    name: str,
    partitions: int,
    *,
    replicas: int | None = None,
    configs: Mapping[str, str] | None = None,
) -> UUID | None:
    """Create a topic, wait until its partitions have leaders, and give its id (KIP-516; zero before
    CreateTopics 7); None if the broker cannot. Raises UserError if it refuses.

    `replicas`: None leaves their number to the broker.
    """
    if not (port.offers("create_topics") and port.offers("metadata")):
        return None
    module = module_of("create_topics", port.versions["create_topics"], "request")
    topic = make(
        module.CreatableTopic,
        name=name,
        num_partitions=partitions,
        replication_factor=replicas or (-1 if port.versions["create_topics"] >= 4 else 1),
        assignments=(),
        configs=tuple(
            make(module.CreatableTopicConfig, name=key, value=value)
            for key, value in (configs or {}).items()
        ),
    )
    wait = milliseconds(int(_TOPIC_SECONDS * 1000))
    request = make(module.CreateTopicsRequest, topics=(topic,), timeout=wait, validate_only=False)
    (result,) = port.ask_body(request, 2 * _TOPIC_SECONDS).topics
    if result.error_code:
        raise UserError(
            f"The broker at {port.address} does not create the topic {name}: "
            f"{error_name(result.error_code)}. Allow it; a gate can leave out the models whose "
            "members commit offsets."
        )
    until = time.monotonic() + _TOPIC_SECONDS
    while not has_leaders(port, name, partitions):
        if time.monotonic() > until:
            raise SystemFailed(f"The topic {name} has no leaders after {_TOPIC_SECONDS:.0f} s")
        time.sleep(0.05)
    return getattr(result, "topic_id", None) or _NO_TOPIC_ID


def has_leaders(port: Port, name: str, partitions: int) -> bool:
    """Whether the topic is there, and each of so many partitions has a leader."""
    topic = _topic_metadata(port, name, creates=False)
    return not topic.error_code and _led(topic) == partitions


def auto_created_topic(port: Port, name: str, partitions: int) -> UUID:
    """The id of a topic that a broker makes when it is asked for its metadata (zero before Metadata
    10). UserError if it makes none, or one of fewer partitions."""
    until = time.monotonic() + _TOPIC_SECONDS
    while True:
        topic = _topic_metadata(port, name, creates=True)
        if not topic.error_code and _led(topic) >= partitions:
            return getattr(topic, "topic_id", None) or _NO_TOPIC_ID
        if time.monotonic() > until:
            raise UserError(
                f"The broker at {port.address} offers no CreateTopics, and its metadata show no "
                f"topic {name} of {partitions} partitions: let it create topics automatically "
                "(auto.create.topics.enable, num.partitions), or leave these models out."
            )
        time.sleep(0.05)


def _topic_metadata(port: Port, name: str, *, creates: bool) -> Entity:
    module = module_of("metadata", port.versions["metadata"], "request")
    request = make(
        module.MetadataRequest,
        topics=(make(module.MetadataRequestTopic, name=name),),
        allow_auto_topic_creation=creates,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    (topic,) = port.ask_body(request).topics
    return topic


def _led(topic: Entity) -> int:
    """How many of its partitions have a leader."""
    return sum(not part.error_code and part.leader_id >= 0 for part in topic.partitions)


def delete_topics(port: Port, names: tuple[str, ...]) -> None:
    """Delete them, if the broker lets us."""
    if port.offers("delete_topics"):
        module = module_of("delete_topics", port.versions["delete_topics"], "request")
        wait = milliseconds(int(_TOPIC_SECONDS * 1000))
        request = make(module.DeleteTopicsRequest, topic_names=names, timeout=wait)
        port.ask_body(request, 2 * _TOPIC_SECONDS, at_once=False)


def delete_groups(port: Port, group_ids: tuple[str, ...]) -> list[ErrorCode]:
    """Delete groups without members; UNSUPPORTED_VERSION if the broker deletes none."""
    if not port.offers("delete_groups"):
        return [ErrorCode.unsupported_version] * len(group_ids)
    kind = newest("delete_groups", "request").DeleteGroupsRequest
    return [result.error_code for result in port.ask(make(kind, groups_names=group_ids)).results]


def delete_group(port: Port, group_id: str) -> ErrorCode:
    """The same of one group."""
    (error,) = delete_groups(port, (group_id,))
    return error


def describe_group(port: Port, group_id: str) -> Entity:
    """A group as DescribeGroups tells of it."""
    kind = newest("describe_groups", "request").DescribeGroupsRequest
    request = make(kind, groups=(group_id,), include_authorized_operations=False)
    (group,) = port.ask(request).groups
    return group


def fetch_offsets(
    port: Port, group_id: str, topic: str, partitions: Iterable[int]
) -> tuple[ErrorCode, dict[int, int]]:
    """The group's offsets, as one sees them who is no member; -1: none."""
    module = newest("offset_fetch", "request")
    asked = make(
        module.OffsetFetchRequestTopics, name=topic, partition_indexes=tuple(sorted(partitions))
    )
    group = make(module.OffsetFetchRequestGroup, group_id=group_id, topics=(asked,))
    (answer,) = port.ask(
        make(module.OffsetFetchRequest, groups=(group,), require_stable=False)
    ).groups
    committed = {
        int(partition.partition_index): int(partition.committed_offset)
        for report in answer.topics
        if report.name == topic
        for partition in report.partitions
    }
    return answer.error_code, committed


def commit_request(
    group_id: str,
    topic: str,
    offsets: Mapping[int, int],
    membership: tuple[int, str, str | None] = NOBODY,
) -> Entity:
    """An OffsetCommit of one topic; `membership`: generation or epoch, member id, instance id."""
    module = newest("offset_commit", "request")
    partitions = tuple(
        make(
            module.OffsetCommitRequestPartition,
            partition_index=partition,
            committed_offset=offset,
            committed_metadata="",
        )
        for partition, offset in sorted(offsets.items())
    )
    generation, member_id, instance = membership
    return make(
        module.OffsetCommitRequest,
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=(make(module.OffsetCommitRequestTopic, name=topic, partitions=partitions),),
    )


def listed_state(port: Port, group_id: str) -> str | None:
    """The group's state as ListGroups tells it: "" if it does not (before version 4), None if it
    does not list the group."""
    module = module_of("list_groups", port.versions["list_groups"], "request")
    answer = port.ask_body(make(module.ListGroupsRequest, states_filter=(), types_filter=()))
    if answer.error_code:
        raise SystemFailed(f"ListGroups was answered {error_name(answer.error_code)}")
    for group in answer.groups:
        if group.group_id == group_id:
            return str(getattr(group, "group_state", ""))
    return None


# ---- a log that refuses an append -------------------------------------------------------------


@contextmanager
def refusing_appends(port: Port, probe: str) -> Iterator[None]:
    """While this lasts, the offsets topic has fewer replicas than min.insync.replicas demands.

    `probe` is a group id of ours: its commits show when the broker has heard of a change.
    """
    _demand_replicas(port, _MORE_REPLICAS_THAN_THERE_ARE)
    try:
        _await_commit(port, probe, refused=True)
        yield
    finally:
        _demand_replicas(port, 1)
        _await_commit(port, probe, refused=False)


def _demand_replicas(port: Port, count: int) -> None:
    module = module_of(
        "incremental_alter_configs", port.versions["incremental_alter_configs"], "request"
    )
    config = make(
        module.AlterableConfig,
        name="min.insync.replicas",
        config_operation=_SET,
        value=str(count),
    )
    resource = make(
        module.AlterConfigsResource,
        resource_type=_TOPIC,
        resource_name=OFFSETS_TOPIC,
        configs=(config,),
    )
    request = make(
        module.IncrementalAlterConfigsRequest, resources=(resource,), validate_only=False
    )
    (answer,) = port.ask_body(request, 2 * _TOPIC_SECONDS).responses
    if answer.error_code:
        raise UserError(
            f"The broker at {port.address} does not let min.insync.replicas of {OFFSETS_TOPIC} be "
            f"set: {error_name(answer.error_code)}. Leave out store-failures."
        )


def commit(port: Port, probe: str) -> ErrorCode:
    """Commit an offset as a consumer outside groups, and tell what that is answered: NONE once the
    offsets topic has taken it and replicated it."""
    (topic,) = port.ask(commit_request(probe, OFFSETS_TOPIC, {0: 0})).topics
    error: ErrorCode = topic.partitions[0].error_code
    return error


def _await_commit(port: Port, probe: str, *, refused: bool) -> None:
    until = time.monotonic() + _SETTLED_SECONDS
    while True:
        error = commit(port, probe)
        if (error is not ErrorCode.none) == refused:
            return
        if time.monotonic() > until:
            raise SystemFailed(
                f"{CLIENT_ID}'s commits are still answered {error_name(error)}, "
                f"{_SETTLED_SECONDS:.0f} s after min.insync.replicas of {OFFSETS_TOPIC} was changed"
            )
        time.sleep(0.01)
