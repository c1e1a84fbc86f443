"""Commit and fetch of offsets: requests, and every error code of their answers.

Source: ConsumerCoordinator.OffsetCommitResponseHandler (KAFKA-8487) and OffsetFetchResponseHandler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from impl.errors import Errors, KafkaException
from impl.group.client.abstract_coordinator import AbstractCoordinator
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.coordinator_finder import coordinator_not_available
from impl.group.client.errors import (
    CommitFailedException,
    RebalanceInProgressException,
    TopicAuthorizationException,
    UnstableOffsetCommitException,
    exception_of,
)
from impl.group.client.generation import NO_GENERATION, Generation, MemberState
from impl.group.client.network_client import ConsumerNetworkClient
from impl.group.client.request_future import RequestFuture
from impl.group.client.subscription_state import OffsetAndMetadata, SubscriptionState
from impl.group.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
)
from impl.types import TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

_MAY_HAVE_ANOTHER_OWNER = (
    "the commit cannot be completed: the member is not part of an active group, and its "
    "partitions may have another owner. Poll more often or raise max.poll.interval.ms"
)
_REBALANCING = "the commit cannot be completed: the group rebalances. Poll, then commit again"


class OffsetCommitter(AbstractCoordinator):
    """The part of ConsumerCoordinator that sends OffsetCommit and OffsetFetch."""

    def __init__(
        self,
        config: GroupRebalanceConfig,
        network: ConsumerNetworkClient,
        runtime: MemberRuntime,
        subscriptions: SubscriptionState,
    ) -> None:
        super().__init__(config, network, runtime)
        self.subscriptions = subscriptions

    # Commit.

    def send_offset_commit_request(self, offsets: Offsets) -> RequestFuture[None]:
        """Commit positions in the current generation; fails at once outside a stable one."""
        if not offsets:
            return RequestFuture.of(None)
        if self.coordinator_unknown():
            return RequestFuture.failure(coordinator_not_available())
        generation = self._generation_for_commit()
        if generation is None:
            return RequestFuture.failure(self._commit_failure())
        request = OffsetCommitRequest(
            self.config.group_id,
            tuple(
                OffsetCommitRequestPartition(tp, o.offset, o.leader_epoch, o.metadata)
                for tp, o in offsets.items()
            ),
            generation.generation_id,
            generation.member_id,
            self.config.group_instance_id,
        )
        return self.send_to_coordinator(
            request, OffsetCommitResponse, self.on_offset_commit_response, generation
        )

    def _generation_for_commit(self) -> Generation | None:
        if self.subscriptions.has_auto_assigned_partitions:
            return self.generation_if_stable()
        return NO_GENERATION

    def _commit_failure(self) -> Exception:
        if self.rebalance_in_progress:
            return RebalanceInProgressException(_REBALANCING)
        return CommitFailedException(_MAY_HAVE_ANOTHER_OWNER)

    def on_offset_commit_response(
        self, response: OffsetCommitResponse, sent: Generation, future: RequestFuture[None]
    ) -> None:
        """Complete, or fail with the first error; missing authorisations are collected."""
        unauthorized = []
        for partition in response.partitions:
            if partition.error_code == Errors.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.append(partition.topic_partition.topic)
            elif partition.error_code != Errors.NONE:
                future.fail(self._on_commit_error(partition.error_code, sent))
                return
        if unauthorized:
            future.fail(TopicAuthorizationException(", ".join(sorted(set(unauthorized)))))
        else:
            future.complete(None)

    def _on_commit_error(self, error: Errors, sent: Generation) -> Exception:
        match error:
            case (
                Errors.COORDINATOR_NOT_AVAILABLE | Errors.NOT_COORDINATOR | Errors.REQUEST_TIMED_OUT
            ):
                self.mark_coordinator_unknown(error.name)
                return exception_of(error)
            case Errors.FENCED_INSTANCE_ID:
                return self._on_commit_fenced(sent)
            case Errors.REBALANCE_IN_PROGRESS:
                # The member is still in its generation: join again, reset nothing (KAFKA-8487).
                self.request_rejoin("offset commit failed since group is already rebalancing")
                return RebalanceInProgressException(_REBALANCING)
            case Errors.UNKNOWN_MEMBER_ID | Errors.ILLEGAL_GENERATION:
                return self._on_commit_of_old_generation(error, sent)
            case _ if error in _PLAIN_COMMIT_ERRORS:
                return exception_of(error)
            case _:
                return KafkaException(f"Unexpected error in commit: {error.name}")

    def _on_commit_fenced(self, sent: Generation) -> Exception:
        if self.generation_unchanged(sent):
            return exception_of(Errors.FENCED_INSTANCE_ID)
        if self.state is MemberState.PREPARING_REBALANCE:
            return RebalanceInProgressException(_REBALANCING)
        return CommitFailedException(_MAY_HAVE_ANOTHER_OWNER)

    def _on_commit_of_old_generation(self, error: Errors, sent: Generation) -> Exception:
        with self.lock:
            if (
                not self.generation_unchanged(sent)
                and self.state is MemberState.PREPARING_REBALANCE
            ):
                return RebalanceInProgressException(_REBALANCING)
            self.reset_generation_on_response_error("OffsetCommit", error)
            return CommitFailedException(_MAY_HAVE_ANOTHER_OWNER)

    # Fetch.

    def send_offset_fetch_request(
        self, partitions: Iterable[TopicPartition]
    ) -> RequestFuture[dict[TopicPartition, OffsetAndMetadata]]:
        """Ask for committed positions; those never committed are missing from the value."""
        request = OffsetFetchRequest(self.config.group_id, tuple(partitions), require_stable=True)
        return self.send_to_coordinator(
            request, OffsetFetchResponse, self.on_offset_fetch_response, self.generation
        )

    def on_offset_fetch_response(
        self,
        response: OffsetFetchResponse,
        _sent: Generation,
        future: RequestFuture[dict[TopicPartition, OffsetAndMetadata]],
    ) -> None:
        """Complete with the positions, or fail."""
        error = response.error_code
        if error != Errors.NONE:
            future.fail(self._on_fetch_error(error))
            return
        failure = _partition_failure(response.partitions)
        if failure is not None:
            future.fail(failure)
            return
        future.complete(
            {
                p.topic_partition: OffsetAndMetadata(
                    p.committed_offset, p.committed_leader_epoch, p.metadata
                )
                for p in response.partitions
                if p.committed_offset >= 0
            }
        )

    def _on_fetch_error(self, error: Errors) -> Exception:
        if error in (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE):
            self.mark_coordinator_unknown(error.name)
            return exception_of(error)
        if error in (Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.GROUP_AUTHORIZATION_FAILED):
            return exception_of(error)
        return KafkaException(f"Unexpected error in fetch offset response: {error.name}")


_PLAIN_COMMIT_ERRORS = frozenset(
    {
        Errors.GROUP_AUTHORIZATION_FAILED,
        Errors.OFFSET_METADATA_TOO_LARGE,
        Errors.INVALID_COMMIT_OFFSET_SIZE,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def _partition_failure(partitions: Iterable[OffsetFetchResponsePartition]) -> Exception | None:
    """The failure of a whole fetch by its partitions: missing rights before open transactions."""
    unauthorized, unstable = set(), set()
    for partition in partitions:
        match partition.error_code:
            case Errors.NONE:
                pass
            case Errors.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.add(partition.topic_partition.topic)
            case Errors.UNSTABLE_OFFSET_COMMIT:
                unstable.add(str(partition.topic_partition))
            case Errors.UNKNOWN_TOPIC_OR_PARTITION:
                return KafkaException(f"{partition.topic_partition} does not exist")
            case error:
                return KafkaException(f"Unexpected error in fetch offset response: {error.name}")
    if unauthorized:
        return TopicAuthorizationException(", ".join(sorted(unauthorized)))
    if unstable:
        return UnstableOffsetCommitException(", ".join(sorted(unstable)))
    return None
