"""The thread of a move, a call at a time: what it asks of its own broker, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from conformance.systems.directories.broker import TOPIC_PARTITION, TwoDirectoryBroker
from conformance.systems.protocol import ActionRefused
from impl.fetcher.leader_endpoint import ReplicaFetch
from impl.fetcher.replica_alter_log_dirs_thread import ReplicaAlterLogDirsThread
from impl.fetcher.state import ReplicaState
from impl.types import EpochData, EpochEndOffset, FetchPartitionData, TopicPartition


@dataclass(frozen=True, slots=True)
class EpochCall:
    """LocalLeaderEndPoint.fetch_epoch_end_offsets; `answers` once it was answered."""

    request: Mapping[TopicPartition, EpochData]
    answers: Mapping[TopicPartition, EpochEndOffset] | None = None


@dataclass(frozen=True, slots=True)
class FetchCall:
    """LocalLeaderEndPoint.fetch; `answers` once it was answered."""

    fetch: ReplicaFetch
    answers: Mapping[TopicPartition, FetchPartitionData] | None = None


class Mover:
    """Steps the thread of one broker process."""

    def __init__(self, broker: TwoDirectoryBroker) -> None:
        self._broker = broker
        self.call: EpochCall | FetchCall | None = None

    def truncate_to_high_watermark(self) -> None:
        """AbstractFetcherThread.maybeTruncate of a log without epochs."""
        thread = self._idle()
        partitions = thread.fetch_truncating_partitions().without_epoch
        if not partitions:
            raise ActionRefused("no log without epochs is to be truncated")
        thread.truncate_to_high_watermark(partitions)

    def send_epoch_request(self) -> None:
        """AbstractFetcherThread.maybeTruncate up to the call."""
        request = dict(self._idle().fetch_truncating_partitions().with_epoch)
        if not request:
            raise ActionRefused("no log with epochs is to be truncated")
        self.call = EpochCall(request)

    def send_fetch(self) -> None:
        """AbstractFetcherThread.maybeFetch up to the call."""
        fetch = self._idle().build_fetch()
        if fetch is None:
            raise ActionRefused("no log is ready for a fetch")
        self.call = FetchCall(ReplicaFetch(dict(fetch.partition_data), fetch.request))

    def handle(self) -> None:
        """The call itself, without the thread's lock."""
        leader, call = self._broker.mover().leader, self.call
        if call is None or call.answers is not None:
            raise ActionRefused("the thread asks nothing")
        if isinstance(call, EpochCall):
            self.call = replace(call, answers=leader.fetch_epoch_end_offsets(call.request))
        else:
            self.call = replace(call, answers=leader.fetch(call.fetch.request))

    def process(self) -> None:
        """What the thread does with the answer."""
        thread, call = self._broker.mover(), self.call
        if call is None or call.answers is None:
            raise ActionRefused("the thread was answered nothing")
        self.call = None
        if isinstance(call, EpochCall):
            thread.process_epoch_end_offsets(call.request, call.answers)
        else:
            thread.process_fetch_response(call.fetch.partition_data, call.answers)

    def next_steps(self) -> list[str]:
        """What the thread would do next, by the spec's names; changes nothing."""
        if self.call is not None:
            kind = "EpochRequest" if isinstance(self.call, EpochCall) else "Fetch"
            if self.call.answers is None:
                return [f"Handle{kind}"]
            return ["ProcessEpochResponse" if kind == "EpochRequest" else "ProcessFetchResponse"]
        thread = self._broker.moves.get_fetcher(TOPIC_PARTITION)
        state = None if thread is None else thread.fetch_state(TOPIC_PARTITION)
        if thread is None or state is None:
            return []
        if state.state is ReplicaState.FETCHING:
            return ["SendFetch"]
        knows_epoch = thread.latest_epoch(TOPIC_PARTITION) is not None
        return ["SendEpochRequest" if knows_epoch else "TruncateToHighWatermark"]

    def _idle(self) -> ReplicaAlterLogDirsThread:
        if self.call is not None:
            raise ActionRefused("the thread still waits for an answer")
        return self._broker.mover()
