"""The brokers of one partition, their disks, and what is under way between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.systems.protocol import ActionRefused
from conformance.systems.replication.broker import (
    LOG_DIRECTORY,
    RECORD,
    TOPIC_PARTITION,
    Broker,
    BrokerSettings,
    CrashableDisk,
    MakeRequests,
)
from conformance.systems.replication.channel import FetchChannel, LeaderConnection
from conformance.systems.replication.live import CountedWaits
from conformance.systems.shared.replication.controller import Controller
from conformance.systems.shared.replication.model import PartitionModel
from conformance.systems.threads import InterruptibleThreads, StartedThreads
from conformance.tla import Value
from impl.disk import Surviving, bytes_of
from impl.log import Log
from impl.network import BlockingSend


class ReplicationCluster:
    """Brokers on disks of their own, the controller, and each follower's round trip.

    `brokers` holds a stopped broker as a process that has loaded its disk, and hears nothing.
    """

    def __init__(
        self,
        model: PartitionModel,
        settings: BrokerSettings,
        make_disk: Callable[[str], CrashableDisk],
        make_requests: MakeRequests | None = None,
    ) -> None:
        self.model = model
        self.settings = settings
        self.controller = Controller(model, counts_partition_epochs=model.two_step)
        self.concurrency: StartedThreads | InterruptibleThreads | CountedWaits = StartedThreads()
        self.connect: Callable[[int], BlockingSend] = LeaderConnection
        self.is_interruptible = False
        self.brokers: dict[int, Broker] = {}
        self.online: dict[int, bool] = {}
        self.channels: dict[int, FetchChannel] = {}
        self.offline_logs: dict[int, Log] = {}
        """Of brokers whose log directory is offline: what the next process finds there."""
        self._make_disk = make_disk
        self._make_requests = make_requests

    def reset(self, initial: Mapping[str, Value]) -> None:
        """New brokers with empty logs, in the first leader epoch; only `Init` can be set up.

        `Init` lies after the followers' first round, which truncates nothing.
        """
        if self.is_interruptible:
            self.concurrency = InterruptibleThreads()
        self.end_threads()
        first = self.controller.reset(initial)
        self.brokers = {
            broker: self._start(broker, 0, self._make_disk(name))
            for name, broker in self.model.ids.items()
        }
        self.online = dict.fromkeys(self.brokers, True)
        self.channels = {broker: self._channel(broker) for broker in self.brokers}
        self.offline_logs = {}
        for broker_id, broker in self.brokers.items():
            broker.receive_leader_and_isr(first.leader_epoch)
            if broker_id != first.leader:
                self.channels[broker_id].truncate_to_high_watermark()

    def end_threads(self) -> None:
        """End the fetchers that wait in the middle of a turn."""
        for channel in self.channels.values():
            channel.end()

    # ---- processes -------------------------------------------------------------------------

    def broker(self, name: str) -> Broker:
        """The broker's process, or what the disk of a stopped one holds."""
        return self.brokers[self.model.ids[name]]

    def runs(self, broker: int, epoch: int) -> bool:
        """Whether the broker's process is the one of this broker epoch."""
        return self.online[broker] and self.brokers[broker].epoch == epoch

    def log(self, broker_id: int) -> Log:
        """The broker's log; of a stopped broker, as it would be loaded from its disk."""
        if broker_id in self.offline_logs:
            return self.offline_logs[broker_id]
        broker = self.brokers[broker_id]
        partition = broker.partition
        if partition is not None and partition.log is not None:
            return partition.log
        return broker.replica_manager.log_manager.get_or_create_log(TOPIC_PARTITION)

    def crash(self, broker_id: int, log_end: int, high_watermark: int) -> None:
        """The process and the machine die: of the log only what lies below `log_end` survives."""
        broker = self.brokers[broker_id]
        broker.checkpoint_high_watermark(high_watermark)
        disk = broker.disk
        disk.crash(_surviving(self.log(broker_id), log_end))
        self.online[broker_id] = False
        self.controller.online.discard(broker_id)
        self.channels[broker_id].drop()
        self.brokers[broker_id] = self._loaded(broker_id, broker.epoch, disk)

    def restart(self, broker_id: int) -> None:
        """A new process on the same disk."""
        epoch = self.controller.restart(broker_id)
        self.online[broker_id] = True
        self.brokers[broker_id] = self._loaded(broker_id, epoch, self.brokers[broker_id].disk)

    def _loaded(self, broker_id: int, epoch: int, disk: CrashableDisk) -> Broker:
        """A process on what the disk holds.

        Until it hears of the partition, its high watermark is what the checkpoint says: a
        broker reads it when the first LeaderAndIsr makes the Partition.
        """
        broker = self._start(broker_id, epoch, disk)
        log = broker.replica_manager.log_manager.get_or_create_log(TOPIC_PARTITION)
        log.update_high_watermark(broker.checkpointed_high_watermark())
        return broker

    def _start(self, broker: int, epoch: int, disk: CrashableDisk) -> Broker:
        return Broker(
            broker,
            epoch,
            disk,
            self.controller,
            self.settings,
            self.connect,
            self.concurrency,
            self._make_requests,
        )

    # ---- round trips -----------------------------------------------------------------------

    def _channel(self, broker: int) -> FetchChannel:
        return FetchChannel(lambda: self.brokers[broker], lambda epoch: self.runs(broker, epoch))

    def channels_by_name(self) -> Mapping[str, FetchChannel]:
        """Each follower's round trip."""
        return {name: self.channels[broker] for name, broker in self.model.ids.items()}

    def parked_at(self, follower: str) -> str:
        """The leader at which the follower's fetch waits. Raises ActionRefused if it does not."""
        channel = self.channels[self.model.ids[follower]]
        if channel.trip is None or not channel.is_parked:
            raise ActionRefused("no fetch of this follower waits")
        return self.model.names[channel.trip.leader - 1]

    def lose_parked_at(self, leader: str) -> None:
        """The broker's process is gone, and with it what it knew of the fetches that waited."""
        for channel in self.channels.values():
            if channel.trip is not None and channel.trip.leader == self.model.ids[leader]:
                channel.unpark()


def _surviving(log: Log, log_end: int) -> Surviving:
    """Loses the log's tail from an offset on; checkpoints and directory entries survive.

    Of the first batch that is lost one half is left: who starts on it has to cut it off.
    """
    left = sum(batch.size_in_bytes for batch in log.batches() if batch.base_offset < log_end)
    torn = RECORD.size_in_bytes // 2 if log_end < log.log_end_offset else 0
    return bytes_of({f"{LOG_DIRECTORY}/{TOPIC_PARTITION}/{0:020d}.log": left + torn})
