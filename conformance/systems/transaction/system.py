"""The system under test: coordinators of one transactional id, and the partitions that it writes.

Driven by Transactions.tla. Requests, call-backs of appends, loads and answers wait for an action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.transaction.broker import CoordinatorBroker
from conformance.systems.transaction.instances import Instance, instance_of
from conformance.systems.transaction.observation import (
    StepOrigin,
    append_of,
    batch_of,
    coordinator_of,
    end_of,
    log_of,
    marker_of,
    record_of,
    verification_of,
)
from conformance.systems.transaction.partition import (
    PartitionLeader,
    PartitionSettings,
    TransactionBatch,
)
from conformance.systems.transaction.state_log import StateLog
from conformance.tla import Action, Value, make_function
from impl.clock import MockClock
from impl.errors import Errors, KafkaException
from impl.transaction.transaction_marker_channel_manager import TxnMarkerEntry, WriteTxnMarkers
from impl.transaction.transaction_state_manager import TransactionConfig
from impl.types import TopicPartition

OFFERABLE = frozenset(
    {
        "HandleInitProducerId",
        "BeginFence",
        "EndFence",
        "AddPartitionOfClient",
        "AddPartitionOfLeader",
        "Verify",
        "HandleEndTxn",
        "CompleteTransaction",
        "Load",
        "StartVerification",
        "AppendBatch",
        "WriteMarker",
    }
)


class TransactionSystem(RewindingSystem):
    """Coordinators, partitions, and a network that keeps requests until an action delivers them."""

    variables = (
        "leader",
        "tenure",
        "transactionLog",
        "replicated",
        "coordinators",
        "calls",
        "requests",
        "clients",
        "log",
        "highWatermark",
        "entry",
        "verifying",
    )
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._names = _names(constants, "Coordinators")
        self._client_names = _names(constants, "Clients")
        self._partition_names = _names(constants, "Partitions")
        self._offsets = _names(constants, "OffsetsPartitions")
        self._late = _names(constants, "Late")
        self._version = 2 if constants["Version2"] is True else 0
        self._max_epoch = _number(constants, "MaxEpoch")
        self._max_copies = 2 if "Marker" in self._late else 1
        self._times_out = constants["TimeOuts"] is True
        self._replicates_loads = constants["LoadIsReplicated"] is True
        self._settings = PartitionSettings(
            verifies=constants["Verification"] is True,
            version=self._version,
            strict_markers=constants["StrictMarkers"] is True,
            changes_leaders=constants["MaxLeaderChanges"] != 0,
        )
        self._actions: dict[str, tuple[Callable[..., None], Callable[..., StepOrigin]]] = {
            "TakeProducerId": (self._take_producer_id, _nobody),
            "BeginTransaction": (self._begin_transaction, _nobody),
            "TakeAdded": (self._take_added, _nobody),
            "SendBatch": (self._send_batch, _nobody),
            "EndTransaction": (self._end_transaction, _nobody),
            "TakeEnd": (self._take_end, _nobody),
            "HandleInitProducerId": (self._init_producer_id, lambda _c, i: StepOrigin(client=i)),
            "BeginFence": (self._begin_fence, _nobody),
            "EndFence": (lambda c: self._appending_task(c, "end-fence"), _nobody),
            "AddPartitionOfClient": (self._add_partition_of_client, self._of_client),
            "AddPartitionOfLeader": (self._add_partition_of_leader, self._of_batch),
            "Verify": (self._verify, _nobody),
            "HandleEndTxn": (self._handle_end_txn, lambda _c, t, _commits: StepOrigin(request=t)),
            "AcknowledgeAppend": (self._acknowledge_append, self._of_append),
            "FailAppend": (lambda c: self._state.fail(c), _nobody),
            "AcknowledgeMarker": (self._acknowledge_marker, _nobody),
            "CompleteTransaction": (
                lambda c: self._appending_task(c, "write-txn-completion"),
                _nobody,
            ),
            "Elect": (self._elect, _nobody),
            "Load": (self._load, _nobody),
            "StartVerification": (self._start_verification, _nobody),
            "AppendBatch": (self._append_batch, _nobody),
            "WriteMarker": (self._write_marker, _nobody),
            "Replicate": (lambda p: self._partitions[p].replicate(), _nobody),
            "ElectLeader": (lambda p, end: self._partitions[p].elect(end), _nobody),
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, initial: Mapping[str, Value]) -> None:
        """The first coordinator has given instance `a` its epoch."""
        self._rewinder.forget()
        self._clock = MockClock()
        self._origins: dict[int, StepOrigin] = {}
        leader = str(initial["leader"])
        self._state = StateLog(leader)
        config = TransactionConfig(transaction_version=self._version, num_partitions=1)
        self._brokers = {
            name: CoordinatorBroker(name, self._state, self._leader_of, self._clock, config)
            for name in self._names
        }
        self._partitions = {
            name: PartitionLeader(
                name, self._clock, self._settings, is_offsets=name in self._offsets
            )
            for name in self._partition_names
        }
        self._instances = {name: Instance() for name in self._client_names}
        self._begun = 0
        self._batches: frozenset[TransactionBatch] = frozenset()
        self._ends: frozenset[tuple[int, int, bool]] = frozenset()
        """Transaction, epoch, whether it commits."""
        self._markers: dict[Value, tuple[str, TxnMarkerEntry, WriteTxnMarkers, int]] = {}
        self._brokers[leader].elect(1)
        self._brokers[leader].load()
        self._tick(StepOrigin(client="a"))
        self._init_producer_id(leader, "a")
        self._acknowledge_append(leader, 1)
        self._take_producer_id("a", leader)

    def _leader_of(self, partition: TopicPartition) -> int:
        """Each partition is led by a broker of its own, so that each marker is a request."""
        return self._partition_names.index(partition.topic)

    def apply(self, action: Action) -> None:
        """Let an instance, a coordinator or a partition take one step."""
        step, origin = step_of(self._actions, action)
        self._tick(origin(*action.args))
        step(*action.args)

    def _tick(self, origin: StepOrigin) -> None:
        self._clock.sleep(1)
        self._origins[self._clock.milliseconds()] = origin

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        origins, leaders = self._origins, self._partitions.items()
        return Observation(
            {
                "leader": self._state.leader,
                "tenure": self._state.tenure,
                "transactionLog": tuple(record_of(r, origins) for r in self._state.records),
                "replicated": self._state.log.high_watermark,
                "coordinators": make_function(
                    {name: coordinator_of(b, origins) for name, b in self._brokers.items()}
                ),
                "calls": frozenset(append_of(a, origins) for a in self._state.appends),
                "requests": frozenset(
                    (
                        *map(batch_of, self._batches),
                        *(end_of(txn, epoch, commits=c) for txn, epoch, c in self._ends),
                        *self._markers,
                    )
                ),
                "clients": make_function(
                    {name: instance_of(i) for name, i in self._instances.items()}
                ),
                "log": make_function({name: log_of(p, origins) for name, p in leaders}),
                "highWatermark": make_function({name: p.log.high_watermark for name, p in leaders}),
                "entry": make_function({name: p.entry_epoch for name, p in leaders}),
                "verifying": frozenset(
                    verification_of(v) for _, p in leaders for v in p.verifications
                ),
            }
        )

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What brokers do with the requests that have arrived, and by themselves."""
        return OFFERABLE

    def offers(self) -> frozenset[Action]:
        """What they would do now: each step is tried and taken back."""
        before = self.snapshot()
        offered = set()
        for action in self._candidates():
            try:
                self.apply(action)
                offered.add(action)
            except (ActionRefused, KafkaException):
                pass
            self.restore(before)
        return frozenset(offered)

    def _candidates(self) -> Iterator[Action]:
        """Steps within the model's bounds. A batch arrives in the order of its sequences."""
        leader = self._state.leader
        for name, broker in self._brokers.items():
            yield Action("Load", (name,))
            yield from (Action("Verify", (name, p)) for p in self._partitions)
            if name == leader and broker.metadata is not None:
                yield from self._of_coordinator(name, broker.metadata.current.producer_epoch)
        for batch in self._batches:
            writer = self._partitions[batch.partition]
            args = (batch.partition, batch.txn, batch.sequence)
            if writer.has_place_for(batch):
                yield Action("AppendBatch", args)
                if writer.is_next(batch) and not writer.is_verifying(batch):
                    yield Action("StartVerification", args)
        for partition, marker, _, start in self._markers.values():
            if self._partitions[partition].copies_of(marker, start) < self._max_copies:
                txn = self._origins[start].txn
                yield Action("WriteMarker", (partition, txn, marker.coordinator_epoch))

    def _of_coordinator(self, name: str, epoch: int) -> Iterator[Action]:
        """The steps of the coordinator that leads, and knows the id with that epoch."""
        asking = [c for c, i in self._instances.items() if i.state == "Initializing"]
        open_txns = [c for c, i in self._instances.items() if i.state == "InTransaction"]
        yield from (Action(step, (name,)) for step in ("EndFence", "CompleteTransaction"))
        for partition in self._partitions:
            if self._version >= 2:
                yield Action("AddPartitionOfLeader", (name, partition))
            else:
                adding = (c for c in open_txns if partition not in self._instances[c].added)
                yield from (Action("AddPartitionOfClient", (name, c, partition)) for c in adding)
        for txn, end_epoch, commits in self._ends:
            if end_epoch + (self._version >= 2) <= self._max_epoch:
                yield Action("HandleEndTxn", (name, txn, commits))
        if epoch < self._max_epoch:
            yield from (Action("HandleInitProducerId", (name, client)) for client in asking)
            if asking or self._times_out:
                yield Action("BeginFence", (name,))

    # ---- instances -------------------------------------------------------------------------

    def _take_producer_id(self, client: str, name: str) -> None:
        epoch = self._brokers[name].producer_ids.get(client)
        if epoch is None:
            raise ActionRefused(f"{name} has given {client} no epoch")
        self._instances[client] = self._instances[client].with_epoch(epoch)

    def _begin_transaction(self, client: str) -> None:
        self._begun += 1
        self._instances[client] = self._instances[client].begin(self._begun)

    def _take_added(self, client: str, name: str, partition: str) -> None:
        instance = self._instances[client]
        topic_partition = self._partitions[partition].topic_partition
        if not self._brokers[name].has_partition(topic_partition, instance.epoch):
            raise ActionRefused(f"{partition} is not in the transaction of {client}")
        self._instances[client] = instance.with_added(partition)

    def _send_batch(self, client: str, partition: str) -> None:
        batch = self._instances[client].next_batch(partition)
        self._batches |= {batch}
        self._instances[client] = self._instances[client].send(batch)

    def _end_transaction(self, client: str, commits: bool) -> None:
        instance = self._instances[client]
        if "Produce" not in self._late:
            self._batches -= instance.sent
        self._ends |= {(instance.txn, instance.epoch, commits)}
        self._instances[client] = instance.end(commits=commits)

    def _take_end(self, client: str, name: str) -> None:
        """The answer that has come with the decision, or that to the request sent again."""
        instance, broker = self._instances[client], self._brokers[name]
        if broker.ends.get(instance.txn, (Errors.UNKNOWN_SERVER_ERROR, 0))[0] is not Errors.NONE:
            broker.end_transaction(instance.txn, instance.epoch, commits=instance.commits)
        error, epoch = broker.ends.get(instance.txn, (Errors.REQUEST_TIMED_OUT, 0))
        if error is not Errors.NONE:
            raise ActionRefused(f"{name} answers the end of {instance.txn} with {error.name}")
        if "EndTxn" not in self._late:
            self._ends -= {(instance.txn, instance.epoch, instance.commits)}
        self._instances[client] = instance.ended(epoch if self._version >= 2 else -1, self._has)

    def _has(self, batch: TransactionBatch) -> bool:
        return self._partitions[batch.partition].is_acknowledged(batch)

    # ---- coordinators ----------------------------------------------------------------------

    def _of_client(self, _name: str, client: str, _partition: str) -> StepOrigin:
        return StepOrigin(txn=self._instances[client].txn)

    def _of_batch(self, name: str, partition: str) -> StepOrigin:
        return StepOrigin(txn=self._waiting(name, partition)[0].txn)

    def _of_append(self, name: str, tenure: int) -> StepOrigin:
        """A completion is prepared as the decision is applied."""
        for append in self._state.appends:
            if (append.broker, append.tenure) == (name, tenure):
                return self._origins[append.record.txn_last_update_timestamp]
        return StepOrigin()

    def _appending_task(self, name: str, task: str) -> None:
        self._appending(lambda: self._brokers[name].tasks.run(task))

    def _init_producer_id(self, name: str, client: str) -> None:
        self._appending(lambda: self._brokers[name].init_producer_id(client))

    def _appending(self, request: Callable[[], None]) -> None:
        before = len(self._state.appends)
        request()
        if len(self._state.appends) == before:
            raise ActionRefused("the coordinator appends nothing")

    def _begin_fence(self, name: str) -> None:
        """An instance asks for an epoch; if none does, the transaction's time is over."""
        broker = self._brokers[name]
        asking = [c for c, i in self._instances.items() if i.state == "Initializing"]
        was_fenced = broker.is_fenced
        if asking:
            broker.init_producer_id(asking[0])
        else:
            broker.time_out()
        if was_fenced or not broker.is_fenced:
            raise ActionRefused(f"{name} fences no transaction")

    def _add_partition_of_client(self, name: str, client: str, partition: str) -> None:
        topic_partition = self._partitions[partition].topic_partition
        epoch = self._instances[client].epoch
        self._appending(lambda: self._brokers[name].add_partition(topic_partition, epoch))

    def _add_partition_of_leader(self, name: str, partition: str) -> None:
        batch = self._waiting(name, partition)[0]
        topic_partition = self._partitions[partition].topic_partition
        self._appending(lambda: self._brokers[name].add_partition(topic_partition, batch.epoch))

    def _verify(self, name: str, partition: str) -> None:
        leader = self._partitions[partition]
        batch = self._waiting(name, partition)[0]
        if not self._brokers[name].has_partition(leader.topic_partition, batch.epoch):
            raise ActionRefused(f"{partition} is not in the transaction of {batch}")
        leader.verify(batch)

    def _waiting(self, name: str, partition: str) -> list[TransactionBatch]:
        """The batches to ask the coordinator about; those of the epoch that it knows come first."""
        metadata = self._brokers[name].metadata
        epoch = None if metadata is None else metadata.current.producer_epoch
        waiting = [v.batch for v in self._partitions[partition].verifications if not v.is_verified]
        if not waiting:
            raise ActionRefused(f"{partition} verifies nothing")
        return sorted(waiting, key=lambda batch: (batch.epoch != epoch, batch))

    def _handle_end_txn(self, name: str, txn: int, commits: bool) -> None:
        epochs = [epoch for sent, epoch, c in self._ends if (sent, c) == (txn, commits)]
        if not epochs:
            raise ActionRefused(f"no EndTxn of transaction {txn} is on its way")
        broker = self._brokers[name]
        is_fenced = broker.is_fenced
        self._appending(lambda: broker.end_transaction(txn, epochs[0], commits=commits))
        if is_fenced:
            broker.tasks.run("end-fence")  # finds that the client was faster

    def _acknowledge_append(self, name: str, tenure: int) -> None:
        self._state.acknowledge(name, tenure)
        self._send_markers(name)

    def _send_markers(self, name: str) -> None:
        for request in self._brokers[name].sent_markers():
            for pending, marker in request.entries:
                start = pending.metadata.current.txn_start_timestamp
                for topic_partition in marker.partitions:
                    partition = topic_partition.topic
                    value = marker_of(partition, marker, self._origins[start].txn)
                    self._markers[value] = (partition, marker, request, start)

    def _acknowledge_marker(self, name: str, partition: str) -> None:
        """The partition's leader answers that the marker is replicated."""
        leader, tenure = self._partitions[partition], self._brokers[name].tenure
        replicated = leader.replicated_markers()
        for value, (marked, marker, request, start) in self._markers.items():
            is_own = marked == partition and marker.coordinator_epoch == tenure
            if is_own and (marker.producer_epoch, tenure, marker.is_commit, start) in replicated:
                self._brokers[name].complete_markers(request)
                if "Marker" not in self._late:
                    del self._markers[value]
                return
        raise ActionRefused(f"{partition} has no marker of {name}")

    def _elect(self, name: str, end: int) -> None:
        self._state.elect(name, end)
        if "Marker" not in self._late:
            self._markers.clear()
        self._brokers[name].elect(self._state.tenure)

    def _load(self, name: str) -> None:
        self._brokers[name].load()
        if self._replicates_loads:
            self._state.replicate(self._state.log.log_end_offset)
        self._send_markers(name)

    # ---- partitions ------------------------------------------------------------------------

    def _batch(self, partition: str, txn: int, sequence: int) -> TransactionBatch:
        for batch in self._batches:
            if (batch.partition, batch.txn, batch.sequence) == (partition, txn, sequence):
                return batch
        raise ActionRefused(f"no batch {sequence} of transaction {txn} is on its way")

    def _start_verification(self, partition: str, txn: int, sequence: int) -> None:
        batch = self._batch(partition, txn, sequence)
        self._partitions[partition].start_verification(batch)

    def _append_batch(self, partition: str, txn: int, sequence: int) -> None:
        self._partitions[partition].append(self._batch(partition, txn, sequence))

    def _write_marker(self, partition: str, txn: int, coordinator_epoch: int) -> None:
        for marked, marker, _, start in self._markers.values():
            is_it = self._origins[start].txn == txn and marked == partition
            if is_it and marker.coordinator_epoch == coordinator_epoch:
                self._partitions[partition].write_marker(marker, start)
                return
        raise ActionRefused(f"no marker of transaction {txn} is on its way to {partition}")


def _number(constants: Mapping[str, Value], name: str) -> int:
    number = constants[name]
    if not isinstance(number, int):
        raise UserError(f"{name} must be a number.")
    return number


def _nobody(*_args: object) -> StepOrigin:
    return StepOrigin()


def _names(constants: Mapping[str, Value], name: str) -> list[str]:
    names = constants[name]
    if not isinstance(names, frozenset):
        raise UserError(f"{name} must be a set.")
    return sorted(map(str, names))
