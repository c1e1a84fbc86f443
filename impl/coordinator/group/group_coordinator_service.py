"""The group coordinator as request handlers see it: checks first, then an event of the shard.

Source: GroupCoordinatorService. One runtime stands for the offsets topic: it has one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar, cast

from ...clock import Clock
from ...errors import Errors
from ...group.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from ..coordinator_executor import (
    CoordinatorExecutorImpl,
    ExecutorService,
    SameThreadExecutor,
)
from ..coordinator_loader import CoordinatorLoader
from ..coordinator_runtime import CoordinatorEventProcessor, CoordinatorRuntime, CoordinatorTimer
from ..coordinator_shard import CoordinatorResult, CoordinatorShard
from ..coordinator_timer import EventBasedCoordinatorTimer
from ..partition_writer import PartitionWriter
from ..timeline import SnapshotRegistry
from .assignors import PartitionAssignor, RangeAssignor, TopicsImage, UniformAssignor
from .config import ConsumerGroupConfig
from .consumer_group_manager import ConsumerGroupManager
from .group_coordinator_shard import GroupCoordinatorShard
from .member import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
)
from .messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
from .offset_metadata_manager import OffsetMetadataManager

ASSIGNORS: tuple[PartitionAssignor, ...] = (UniformAssignor(), RangeAssignor())
"""The default of group.consumer.assignors: the first is for who asks for none."""
_ResponseT = TypeVar("_ResponseT")


class GroupCoordinatorService:
    """Consumer groups on one broker. A callback is called once, at once or later."""

    def __init__(
        self,
        writer: PartitionWriter,
        loader: CoordinatorLoader,
        processor: CoordinatorEventProcessor,
        timer: CoordinatorTimer,
        clock: Clock,
        topics: TopicsImage,
        config: ConsumerGroupConfig | None = None,
        assignors: Sequence[PartitionAssignor] = ASSIGNORS,
        executor: ExecutorService | None = None,
    ) -> None:
        self._config = config or ConsumerGroupConfig()
        self._topics = topics
        self._assignors = assignors
        self._clock = clock
        self.runtime = CoordinatorRuntime(self._shard, writer, loader, processor, timer, clock)
        self.timer = EventBasedCoordinatorTimer(timer, self.runtime.schedule_write_operation)
        self.executor = CoordinatorExecutorImpl(
            executor or SameThreadExecutor(), self.runtime.schedule_write_operation
        )

    def _shard(self, registry: SnapshotRegistry) -> CoordinatorShard:
        groups = ConsumerGroupManager(
            registry,
            self._config,
            self._topics,
            self._assignors,
            self.timer,
            self._clock,
            self.executor,
        )
        offsets = OffsetMetadataManager(registry, self._config, groups, self._topics, self._clock)
        return GroupCoordinatorShard(groups, offsets)

    def on_election(self, leader_epoch: int) -> None:
        """This broker leads the offsets topic: load what it holds."""
        self.runtime.schedule_load_operation(leader_epoch)

    def on_new_metadata_image(
        self, topic_names: Collection[str], *, has_new_topics: bool = False
    ) -> None:
        """Topics with these names have come, gone or changed; `has_new_topics`: some have come."""
        self._read(
            "UpdateImage",
            lambda shard, _offset: shard.groups.on_metadata_update(
                topic_names, has_new_topics=has_new_topics
            ),
            lambda _response: None,
            lambda _error, _text: None,
        )

    # ---- requests ----------------------------------------------------------------------------

    def consumer_group_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        done: Callable[[ConsumerGroupHeartbeatResponse], None],
    ) -> None:
        """A sign of life. All of its records are one atomic write."""
        invalid = self._invalid(request)
        if invalid is not None:
            done(invalid)
            return
        self._write(
            "ConsumerGroupHeartbeat",
            lambda shard: shard.groups.consumer_group_heartbeat(request),
            done,
            lambda error, text: ConsumerGroupHeartbeatResponse(error, error_message=text),
        )

    def commit_offsets(
        self, request: OffsetCommitRequest, done: Callable[[OffsetCommitResponse], None]
    ) -> None:
        """Answered when the offsets are committed."""
        self._write(
            "OffsetCommit",
            lambda shard: shard.offsets.commit_offset(request),
            done,
            lambda error, _text: OffsetCommitResponse(
                tuple(
                    OffsetCommitResponsePartition(part.topic_partition, error)
                    for part in request.partitions
                )
            ),
        )

    def fetch_offsets(
        self, request: OffsetFetchRequest, done: Callable[[OffsetFetchResponse], None]
    ) -> None:
        """What is committed."""
        self._read(
            "OffsetFetch",
            lambda shard, offset: shard.offsets.fetch_offsets(request, offset),
            done,
            lambda error, _text: OffsetFetchResponse(error),
        )

    def describe_group(self, group_id: str, done: Callable[[DescribedConsumerGroup], None]) -> None:
        """The group as it is committed."""
        self._read(
            "ConsumerGroupDescribe",
            lambda shard, offset: shard.groups.describe(group_id, offset),
            done,
            lambda error, _text: DescribedConsumerGroup(error, group_id),
        )

    def list_groups(self, done: Callable[[dict[str, str]], None]) -> None:
        """The state of each group, by group id."""
        self._read(
            "ListGroups",
            lambda shard, offset: {
                group_id: group.state(offset).value
                for group_id, group in shard.groups.groups(offset).items()
            },
            done,
            lambda _error, _text: {},
        )

    def delete_group(self, group_id: str, done: Callable[[Errors], None]) -> None:
        """Only a group without members can be deleted."""
        self._write(
            "DeleteGroups",
            lambda shard: shard.delete_group(group_id),
            done,
            lambda error, _text: error,
        )

    def has_group(self, group_id: str) -> bool:
        """Whether there is a consumer group with this id."""
        context = self.runtime.context
        if context is None or context.coordinator is None:
            return False
        return _of_groups(context.coordinator.shard).groups.group(group_id) is not None

    # ---- events ------------------------------------------------------------------------------

    def _write(
        self,
        name: str,
        operation: Callable[[GroupCoordinatorShard], CoordinatorResult],
        done: Callable[[_ResponseT], None],
        refusal: Callable[[Errors, str], _ResponseT],
    ) -> None:
        self.runtime.schedule_write_operation(
            name, lambda shard: operation(_of_groups(shard)), _answering(done, refusal)
        )

    def _read(
        self,
        name: str,
        operation: Callable[[GroupCoordinatorShard, int], _ResponseT],
        done: Callable[[_ResponseT], None],
        refusal: Callable[[Errors, str], _ResponseT],
    ) -> None:
        self.runtime.schedule_read_operation(
            name,
            lambda shard, offset: operation(_of_groups(shard), offset),
            _answering(done, refusal),
        )

    # ---- checks ------------------------------------------------------------------------------

    def _invalid(
        self, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse | None:
        """throwIfConsumerGroupHeartbeatRequestIsInvalid: what is refused whatever the state is."""
        reason = _reason_against(request)
        if reason:
            return ConsumerGroupHeartbeatResponse(Errors.INVALID_REQUEST, error_message=reason)
        names = {assignor.name for assignor in self._assignors}
        if request.server_assignor is not None and request.server_assignor not in names:
            return ConsumerGroupHeartbeatResponse(
                Errors.UNSUPPORTED_ASSIGNOR,
                error_message=f"{request.server_assignor} is none of {', '.join(sorted(names))}",
            )
        return None


def _reason_against(request: ConsumerGroupHeartbeatRequest) -> str:
    """What the request lacks; empty if nothing."""
    for name in ("member_id", "group_id", "instance_id", "rack_id"):
        if getattr(request, name) == "":
            return f"{name} must not be empty"
    epoch = request.member_epoch
    if epoch == JOIN_GROUP_MEMBER_EPOCH:
        return _reason_against_join(request)
    if epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and request.instance_id is None:
        return "a member without instance_id cannot leave for a while"
    if epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        return f"there is no member epoch {epoch}"
    return ""


def _reason_against_join(request: ConsumerGroupHeartbeatRequest) -> str:
    if request.rebalance_timeout_ms == -1:
        return "who joins says its rebalance_timeout_ms"
    if request.topic_partitions is None or request.topic_partitions:
        return "who joins owns no partitions, and says so"
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "who joins says what it subscribes to"
    return ""


def _of_groups(shard: CoordinatorShard) -> GroupCoordinatorShard:
    assert isinstance(shard, GroupCoordinatorShard), "the builder makes these"
    return shard


def _answering(
    done: Callable[[_ResponseT], None], refusal: Callable[[Errors, str], _ResponseT]
) -> Callable[[Exception | None, object], None]:
    """A completion that answers an error in the response's own form."""

    def completed(error: Exception | None, response: object) -> None:
        if error is None:
            done(cast("_ResponseT", response))
        else:
            done(refusal(Errors.for_exception(error), str(error)))

    return completed
