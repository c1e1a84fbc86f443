"""The system under test: one partition's brokers, driven by the actions of Replication.tla."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, CannotSnapshot, Turn
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
from conformance.systems.replication.failing_disk import FailingDisk
from conformance.systems.replication.live import BACK_OFF_MS, CountedWaits, LiveConnection, Network
from conformance.systems.replication.storage import StorageChecks, check_append, found_by_start
from conformance.systems.replication.view import running, stopped
from conformance.systems.rewinding import Rewinder, Snapshot
from conformance.systems.shared.replication.controller import (
    DECISIONS,
    Controller,
    OfferedSteps,
    PartitionRegistration,
)
from conformance.systems.shared.replication.fetcher_loop import FetcherLoop
from conformance.systems.shared.replication.observation import VARIABLES, ReplicationObserver
from conformance.systems.shared.replication.threads import concurrent, in_parts
from conformance.systems.shared.replication.views import BrokerView
from conformance.systems.threads import InterruptibleThreads, StartedThreads
from conformance.tla import Action, Fn, Value
from impl.disk import MemoryDisk, Surviving, bytes_of
from impl.errors import Errors, KafkaStorageException
from impl.log import Log
from impl.real_disk import ShadowedDisk
from impl.replica_manager import ReplicaManager
from impl.types import ProtocolConfig

PROTOCOLS = {
    "Kip320": ProtocolConfig(truncation_on_fetch=False),
    "TruncateOnFetch": ProtocolConfig(truncation_on_fetch=True),
}
"""The implementation's switch for each protocol of the spec that it implements."""


class ReplicationSystem:
    """Brokers on disks of their own, an environment that does what the actions say."""

    variables = VARIABLES
    repeatable = True

    def __init__(
        self,
        constants: Mapping[str, Value],
        make_disk: Callable[[str], CrashableDisk],
        *,
        min_insync_replicas: int = 1,
        make_requests: MakeRequests | None = None,
    ) -> None:
        self._make_requests = make_requests
        self._names = tuple(sorted(str(name) for name in _set(constants["Brokers"])))
        self._ids = {name: number for number, name in enumerate(self._names, 1)}
        self._all = tuple(self._ids.values())
        self._fine = constants["Fine"] is True
        # A reset to the leader's log start waits for ListOffsets with a lock held, and ends in a
        # later action: its thread cannot stand still anywhere else.
        self._resets = True in (constants["LogStartMoves"], constants["UncleanElection"])
        self._interruptible = False
        self._concurrency: StartedThreads | InterruptibleThreads | CountedWaits = StartedThreads()
        self._network: Network | None = None
        self._observer = ReplicationObserver(self._names)
        self._storage = StorageChecks()
        self._make_disk = make_disk
        self._settings = BrokerSettings(
            _protocol(constants["Protocol"]),
            two_step_isr=constants["TwoStepIsr"] is True,
            min_insync_replicas=min_insync_replicas,
        )
        self._actions = self._by_action()
        self._brokers: dict[int, Broker] = {}
        self._online: dict[int, bool] = {}
        self._channels: dict[int, FetchChannel] = {}
        self._views: dict[int, BrokerView] = {}
        self._failing = _set(constants.get("FailingBrokers", frozenset()))
        self._restarts = constants["Crashes"] is True or bool(self._failing)
        self._found: dict[int, Log] = {}
        """Of brokers whose log directory is offline: what the next process finds there."""
        self._steps = OfferedSteps(self._names, self._fine, self._settings.two_step_isr)
        self._rewinder = Rewinder(self, apart=self.remembered)

    def _by_action(self) -> dict[str, Callable[..., None]]:
        """What each action of the specification does here."""
        return {
            **{name: partial(self._decide, decision) for name, decision in DECISIONS.items()},
            "BecomeLeader": self._receive_leader_and_isr,
            "BecomeFollower": self._receive_leader_and_isr,
            "UpdateIsr": self._receive_leader_and_isr,
            "AppendAsLeader": self._append_as_leader,
            "AdvanceLogStartOffset": self._advance_log_start_offset,
            "ExpandIsr": self._expand_isr,
            "ShrinkIsr": self._shrink_isr,
            "SubmitExpandIsr": self._expand_isr,
            "SubmitShrinkIsr": self._shrink_isr,
            "HandleAlterPartition": self._handle_alter_partition,
            "ProcessAlterPartition": self._process_alter_partition,
            "TruncateToHighWatermark": self._truncate_to_high_watermark,
            "SendEpochRequest": self._send_epoch_request,
            "SendFetch": self._send_fetch,
            "HandleEpochRequest": self._handle,
            "HandleFetch": self._handle,
            "HandleListOffsets": self._handle,
            "ProcessEpochResponse": self._process,
            "ProcessFetchResponse": self._process,
            "ProcessListOffsetsResponse": self._process,
            "LoseMessage": self._lose_message,
            "EpochRoundTrip": self._epoch_round_trip,
            "FetchRoundTrip": self._fetch_round_trip,
            "ListOffsetsRoundTrip": self._list_offsets_round_trip,
            "Crash": self._crash,
            "Restart": self._restart,
            "FailToAppend": self._fail_to_append,
            "FailToLead": self._fail_to_lead,
            "FailToProcess": self._fail_to_process,
            "FailToCheckpoint": self._fail_to_checkpoint,
            "RefuseDecision": self._refuse_decision,
            "StartAgain": self._start_again,
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, initial: Mapping[str, Value]) -> None:
        """New brokers with empty logs, in the first leader epoch; only `Init` can be set up.

        `Init` lies after the followers' first round, which truncates nothing.
        """
        self._rewinder.forget()
        if self._interruptible:
            self._concurrency = InterruptibleThreads()
        first = cast("Fn", initial["registration"])
        leader, epoch = self._ids[str(first["leader"])], cast("int", first["leaderEpoch"])
        self._controller = Controller(
            self._all,
            PartitionRegistration(leader, epoch, frozenset(self._all), 0),
            counts_partition_epochs=self._settings.two_step_isr,
        )
        self._brokers = {
            broker: self._start(broker, 0, self._disk(name)) for name, broker in self._ids.items()
        }
        self._online = dict.fromkeys(self._all, True)
        self.end_threads()
        self._channels = {broker: self._channel(broker) for broker in self._all}
        self._views = {}
        self._found = {}
        self._storage.forget()
        for broker_id, broker in self._brokers.items():
            broker.receive_leader_and_isr(epoch)
            if broker_id != leader:
                self._channels[broker_id].truncate_to_high_watermark()

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        ids = self._ids
        for arg in action.args:
            if isinstance(arg, str):
                self._views.pop(ids[arg], None)
        self._actions[action.name](
            *[ids[arg] if isinstance(arg, str) else arg for arg in action.args]
        )

    def observe(self) -> Mapping[str, Value]:
        """The observed variables as the brokers' objects have them now.

        Brokers are read again when an action has named them: no two share an object, so code of
        another broker has not run.
        """
        self._concurrency.demand_started()
        views = self._views
        for broker in self._all:
            if broker not in views:
                views[broker] = self._view(broker)
        return self._observer.observe(
            self._controller.registration, tuple([views[broker] for broker in self._all])
        )

    # ---- Snapshots -------------------------------------------------------------------------

    @property
    def remembered(self) -> tuple[object, ...]:
        """What is true in every state: not a part of any snapshot."""
        return (self._observer, self._storage.started_on, self._actions)

    def snapshot(self) -> Snapshot:
        """The brokers, their disks in memory, the controller and what is under way."""
        if any(channel.waits for channel in self._channels.values()):
            raise CannotSnapshot("a fetcher waits for an answer to ListOffsets")
        return self._rewinder.take()

    def restore(self, snapshot: Snapshot) -> None:
        """All of it as it was."""
        self.end_threads()
        self._rewinder.restore(snapshot)

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What brokers start by themselves: ISR changes and the fetchers' next requests."""
        return self._steps.kinds

    def offers(self) -> frozenset[Action]:
        """The ISR changes that leaders would propose, the requests that fetchers would send."""
        running = [broker for broker in self._all if self._online[broker]]
        return frozenset(step for broker in running for step in self._offered_by(broker))

    def _offered_by(self, broker: int) -> list[Action]:
        channel = self._channels[broker]
        steps = channel.next_steps()
        leader = channel.leader() if steps and not self._fine else None
        runs = leader is not None and self._online[leader]
        requests = self._steps.requests(broker, steps, leader, leader_runs=runs)
        return [*requests, *self._isr_changes(self._brokers[broker])]

    def _isr_changes(self, broker: Broker) -> list[Action]:
        """Changes that the leader would propose and, if that is one step, the controller take."""
        two_step = self._steps.two_step
        if two_step and broker.alter_partition is not None:
            return []  # AlterPartitionManager has one item of a partition in flight
        return [
            self._steps.isr_change(change, broker.id, follower)
            for change, follower, proposed in broker.proposals()
            if two_step or self._controller.accepts(proposed)
        ]

    def _view(self, broker_id: int) -> BrokerView:
        broker, trip = self._brokers[broker_id], self._channels[broker_id].trip
        look = running if self._online[broker_id] else stopped
        log = self._log(broker_id)
        # Of an interrupted step the state is judged; what is offline is not what the files hold.
        if not (self._interruptible or broker_id in self._found):
            self._storage.check(broker, log)
        return look(broker, log, trip, self._all)

    def _log(self, broker_id: int) -> Log:
        """The broker's log; of a stopped broker, as it would be loaded from its disk."""
        if broker_id in self._found:
            return self._found[broker_id]
        broker = self._brokers[broker_id]
        partition = broker.partition
        if partition is not None and partition.log is not None:
            return partition.log
        return broker.replica_manager.log_manager.get_or_create_log(TOPIC_PARTITION)

    def _disk(self, name: str) -> CrashableDisk:
        disk = self._make_disk(name)
        return FailingDisk(disk, LOG_DIRECTORY) if name in self._failing else disk

    def _channel(self, broker: int) -> FetchChannel:
        return FetchChannel(lambda: self._brokers[broker], lambda epoch: self.runs(broker, epoch))

    def _start(self, broker: int, epoch: int, disk: CrashableDisk) -> Broker:
        network = self._network
        connect = LeaderConnection if network is None else partial(LiveConnection, network=network)
        return Broker(
            broker,
            epoch,
            disk,
            self._controller,
            self._settings,
            connect,
            self._concurrency,
            self._make_requests,
        )

    # ---- for what is built on it -----------------------------------------------------------

    def runs(self, broker: int, epoch: int) -> bool:
        """Whether the broker's process is the one of this broker epoch."""
        return self._online[broker] and self._brokers[broker].epoch == epoch

    def broker(self, name: str) -> Broker:
        """The broker's process, or what the disk of a stopped one holds."""
        return self._brokers[self._ids[name]]

    def channels(self) -> Mapping[str, FetchChannel]:
        """Each follower's round trip."""
        return {name: self._channels[broker] for name, broker in self._ids.items()}

    def parked_at(self, follower: str) -> str:
        """The leader at which the follower's fetch waits; refused if it does not."""
        channel = self._channels[self._ids[follower]]
        if channel.trip is None or not channel.is_parked:
            raise ActionRefused("no fetch of this follower waits")
        return self._names[channel.trip.leader - 1]

    def lose_parked_at(self, leader: str) -> None:
        """The broker's process is gone, and with it what it knew of the fetches that waited."""
        for channel in self._channels.values():
            if channel.trip is not None and channel.trip.leader == self._ids[leader]:
                channel.unpark()

    def end_threads(self) -> None:
        """End the fetchers that wait in the middle of a turn."""
        for channel in self._channels.values():
            channel.end()

    def look_again(self) -> None:
        """An action has changed brokers that it does not name."""
        self._views.clear()

    # ---- Looping ---------------------------------------------------------------------------

    loop = FetcherLoop()

    @property
    def threads(self) -> tuple[str, ...]:
        """Every broker has a fetcher, as long as it follows."""
        return self._names

    def make_looping(self) -> bool:
        """From the next reset on leaders answer fetchers at once, and errors are waited out."""
        if self._fine:
            self._network = Network(self._handlers)
            self._concurrency = CountedWaits()
            self._settings = replace(self._settings, fetch_back_off_ms=BACK_OFF_MS)
        return self._fine

    def take_turn(self, thread: str, *, lost: bool) -> Turn:
        """AbstractFetcherThread.doWork of this broker's fetcher, once."""
        follower, network, waits = self._ids[thread], self._network, self._concurrency
        fetcher = self._brokers[follower].fetcher()
        if fetcher is None or network is None or not isinstance(waits, CountedWaits):
            raise ActionRefused("no fetcher follows the partition")
        network.lost, waits.count = lost, 0
        network.asked.clear()
        fetcher.do_work()
        self._views.clear()  # the leader's too
        return Turn(tuple(network.asked), waits.count > 0, self.backs_off(thread))

    def backs_off(self, thread: str) -> bool:
        """Whether the partition is delayed in the fetcher."""
        broker = self._brokers[self._ids[thread]]
        fetcher = broker.fetcher() if self._online[broker.id] else None
        state = None if fetcher is None else fetcher.fetch_state(TOPIC_PARTITION)
        return state is not None and state.is_delayed(broker.clock.milliseconds())

    def end_back_off(self, thread: str) -> None:
        """Let the broker's clock go on by as much."""
        self._brokers[self._ids[thread]].clock.sleep(BACK_OFF_MS)

    def _handlers(self, leader: int) -> ReplicaManager | None:
        return self._brokers[leader].replica_manager if self._online[leader] else None

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on brokers have locks at which their steps can be stopped."""
        self._interruptible = not self._resets
        return self._interruptible

    @property
    def voluntary(self) -> frozenset[str]:
        """What brokers start by themselves."""
        return self.offerable

    @property
    def unconditional(self) -> frozenset[str]:
        """Nothing: a leader may stop to lead, a fetcher to follow."""
        return frozenset()

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of one broker take these."""
        return concurrent(running, between, restarts=self._restarts)

    def in_parts(self, running: Action, between: Action) -> bool:
        """Whether one is a single step of the spec that the other may see in parts."""
        return in_parts(running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of a broker stand still while another takes its action."""
        return self.interrupt_calls(lambda: self.apply(running), point, lambda: self.apply(between))

    def interrupt_calls(
        self, running: Callable[[], None], point: int, between: Callable[[], None]
    ) -> str:
        """As `interrupt`, of two calls that take steps of these brokers."""
        threads = self._concurrency
        if not isinstance(threads, InterruptibleThreads):
            raise ActionRefused("the steps of these brokers cannot be interrupted")
        return threads.interrupt(running, point, between)

    # ---- controller ------------------------------------------------------------------------

    def _decide(self, decision: Callable[..., None], *args: int) -> None:
        decision(self._controller, *args)

    def _receive_leader_and_isr(self, broker: int, epoch: int) -> None:
        answer = self._brokers[broker].receive_leader_and_isr(epoch)
        # Of two decisions that meet in an interrupted step the older one may come second.
        if answer is not Errors.NONE and not self._interruptible:
            raise ActionRefused(f"the controller is answered {answer.name}")

    # ---- leader ----------------------------------------------------------------------------

    def _append_as_leader(self, leader: int, offset: int) -> None:
        broker = self._brokers[leader]
        info = broker.replica_manager.append_records(TOPIC_PARTITION, RECORD)
        if broker.partition is not None:
            check_append(self._log(leader), info, broker.partition.leader_epoch)
        if info.first_offset != offset:
            raise ActionRefused(f"the record was appended at {info.first_offset}")

    def _advance_log_start_offset(self, leader: int, offset: int) -> None:
        answers = self._brokers[leader].replica_manager.delete_records({TOPIC_PARTITION: offset})
        if answers != {TOPIC_PARTITION: Errors.NONE}:
            raise ActionRefused(f"the client is answered {answers}")

    def _expand_isr(self, leader: int, follower: int) -> None:
        self._brokers[leader].expand_isr(follower)

    def _shrink_isr(self, leader: int, follower: int) -> None:
        self._brokers[leader].shrink_isr(follower)

    def _handle_alter_partition(self, leader: int) -> None:
        item = self._brokers[leader].alter_partition
        if item is None or item.decision is not None:
            raise ActionRefused("no AlterPartition is in flight")
        item.decision = self._controller.alter_partition(leader, item.proposed)

    def _process_alter_partition(self, leader: int) -> None:
        broker = self._brokers[leader]
        item, broker.alter_partition = broker.alter_partition, None
        if item is None:
            raise ActionRefused("no AlterPartition is in flight")
        broker.complete(item)

    # ---- round trips -----------------------------------------------------------------------

    def _truncate_to_high_watermark(self, follower: int) -> None:
        self._channels[follower].truncate_to_high_watermark()

    def _send_epoch_request(self, follower: int) -> None:
        self._channels[follower].send_epoch_request()

    def _send_fetch(self, follower: int) -> None:
        self._channels[follower].send_fetch()

    def _handle(self, leader: int, follower: int) -> None:
        self._channels[follower].handle(self._brokers[leader])

    def _process(self, follower: int) -> None:
        self._channels[follower].process()

    def _lose_message(self, follower: int) -> None:
        self._channels[follower].lose()

    def _epoch_round_trip(self, leader: int, follower: int) -> None:
        self._send_epoch_request(follower)
        self._handle(leader, follower)
        self._process(follower)

    def _fetch_round_trip(self, leader: int, follower: int) -> None:
        self._send_fetch(follower)
        self._handle(leader, follower)
        self._process(follower)

    def _list_offsets_round_trip(self, leader: int, follower: int) -> None:
        self._handle(leader, follower)
        self._process(follower)

    # ---- crashes ---------------------------------------------------------------------------

    def _crash(self, broker_id: int, log_end: int, high_watermark: int) -> None:
        """The process and the machine die: of the log only what lies below `log_end` survives."""
        broker = self._brokers[broker_id]
        broker.checkpoint_high_watermark(high_watermark)
        disk = broker.disk
        disk.crash(_surviving(self._log(broker_id), log_end))
        self._online[broker_id] = False
        self._controller.online.discard(broker_id)
        self._channels[broker_id].drop()
        self._brokers[broker_id] = self._loaded(broker_id, broker.epoch, disk)

    def _restart(self, broker_id: int) -> None:
        broker = self._brokers[broker_id]
        epoch = broker.epoch + 1
        self._online[broker_id] = True
        self._controller.online.add(broker_id)
        self._controller.broker_epochs[broker_id] = epoch
        self._brokers[broker_id] = self._loaded(broker_id, epoch, broker.disk)

    def _loaded(self, broker_id: int, epoch: int, disk: CrashableDisk) -> Broker:
        """A process on what the disk holds.

        Until it hears of the partition, its high watermark is what the checkpoint says: a
        broker reads it when the first LeaderAndIsr makes the Partition.
        """
        broker = self._start(broker_id, epoch, disk)
        log = broker.replica_manager.log_manager.get_or_create_log(TOPIC_PARTITION)
        log.update_high_watermark(broker.checkpointed_high_watermark())
        return broker

    # ---- failing disks ---------------------------------------------------------------------

    def _fail_to_append(self, leader: int, high_watermark: int) -> None:
        replicas = self._with_failing_disk(leader, high_watermark).replica_manager
        try:
            replicas.append_records(TOPIC_PARTITION, RECORD)
        except KafkaStorageException:
            self._find_log(leader)
        else:
            raise ActionRefused("an append succeeds on a disk that fails")

    def _fail_to_lead(self, broker_id: int, epoch: int, high_watermark: int) -> None:
        self._with_failing_disk(broker_id, high_watermark)
        self._refuse_decision(broker_id, epoch)
        self._find_log(broker_id)

    def _refuse_decision(self, broker_id: int, epoch: int) -> None:
        answer = self._brokers[broker_id].receive_leader_and_isr(epoch)
        if answer is not Errors.KAFKA_STORAGE_ERROR:
            raise ActionRefused(f"the controller is answered {answer.name} by a disk that fails")

    def _fail_to_process(self, follower: int, high_watermark: int) -> None:
        """Once the partition has failed, LogDirFailureHandler hears of the directory."""
        broker = self._with_failing_disk(follower, high_watermark)
        self._channels[follower].process()
        if not broker.fetcher_manager.failed_partitions.contains(TOPIC_PARTITION):
            raise ActionRefused("the fetcher goes on although its disk fails")
        broker.replica_manager.handle_log_dir_failure(LOG_DIRECTORY)
        self._find_log(follower)

    def _fail_to_checkpoint(self, broker_id: int, high_watermark: int) -> None:
        broker = self._with_failing_disk(broker_id, high_watermark)
        broker.replica_manager.checkpoint_high_watermarks()
        self._find_log(broker_id)

    def _with_failing_disk(self, broker_id: int, high_watermark: int) -> Broker:
        """From its next write on the disk fails; its checkpoint has this mark."""
        broker = self._brokers[broker_id]
        broker.checkpoint_high_watermark(high_watermark)
        if not isinstance(broker.disk, FailingDisk):
            raise ActionRefused("the disk of this broker does not fail")
        broker.disk.fail_at(1, once=False)
        return broker

    def _find_log(self, broker_id: int) -> None:
        broker = self._brokers[broker_id]
        if not broker.is_offline:
            raise ActionRefused("the log directory stays online although its disk has failed")
        self._found[broker_id] = found_by_start(broker.disk.contents(), broker.log_config)

    def _start_again(self, broker_id: int) -> None:
        disk = self._brokers[broker_id].disk
        if isinstance(disk, FailingDisk):
            disk.repair()
        del self._found[broker_id]
        self._channels[broker_id].drop()
        self._restart(broker_id)


def _surviving(log: Log, log_end: int) -> Surviving:
    """Loses the log's tail from an offset on; checkpoints and directory entries survive.

    Of the first batch that is lost one half is left: who starts on it has to cut it off.
    """
    left = sum(batch.size_in_bytes for batch in log.batches() if batch.base_offset < log_end)
    torn = RECORD.size_in_bytes // 2 if log_end < log.log_end_offset else 0
    return bytes_of({f"{LOG_DIRECTORY}/{TOPIC_PARTITION}/{0:020d}.log": left + torn})


def _set(value: Value) -> frozenset[Value]:
    if not isinstance(value, frozenset):
        raise UserError("Brokers and FailingBrokers of a model must be sets of strings.")
    return value


def _protocol(value: Value) -> ProtocolConfig:
    protocol = PROTOCOLS.get(str(value))
    if protocol is None:
        raise UserError(
            f"The implementation does not speak the protocol {value!r}: the historical variants "
            f"exist in the spec only. Replay a model of {' or '.join(PROTOCOLS)}."
        )
    return protocol


def create(constants: Mapping[str, Value]) -> ReplicationSystem:
    """The system on disks in memory, which lose in a crash what real ones would."""
    return ReplicationSystem(constants, lambda _name: MemoryDisk())


def create_on_files(constants: Mapping[str, Value]) -> FileReplicationSystem:
    """The system on real files with fsync, in a temporary folder of its own."""
    return FileReplicationSystem(constants)


_MEMORY = Path("/dev/shm")


def _scratch() -> Path:
    """TMPDIR where it is set; else files in memory: a disk's fsync takes longer than all steps.

    What is tested is which files are written, flushed, renamed and read, not how long it takes.
    """
    in_memory = "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK)
    return Path(tempfile.mkdtemp(prefix="kconform-", dir=_MEMORY if in_memory else None))


class FileReplicationSystem(ReplicationSystem):
    """The system on real files; `close` removes them."""

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._folder = _scratch()
        self._runs = 0

        def make_disk(name: str) -> CrashableDisk:
            return ShadowedDisk(self._folder / str(self._runs) / name)

        super().__init__(constants, make_disk)

    def reset(self, initial: Mapping[str, Value]) -> None:
        """New brokers on empty folders."""
        shutil.rmtree(self._folder / str(self._runs), ignore_errors=True)
        self._runs += 1
        super().reset(initial)

    def snapshot(self) -> Snapshot:
        """None: files stay as they are."""
        raise CannotSnapshot("the logs are files")

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)
