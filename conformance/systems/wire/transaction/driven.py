"""One transactional id of a broker: what its instances have sent, and the requests of the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from conformance.systems.protocol import ActionRefused, step_of
from conformance.systems.shared.transaction.instance import (
    NO_EPOCH,
    Instance,
    TransactionBatch,
    instance_of,
)
from conformance.systems.wire.topic import expect
from conformance.systems.wire.transaction.forged import ForgedRequests
from conformance.systems.wire.transaction.look import DrivenId, Look, RecordOrigin
from conformance.systems.wire.transaction.requests import (
    CONCURRENT,
    DUPLICATE,
    NONE,
    TransactionRequests,
)
from conformance.tla import Action, Value, make_function

_FIRST = "a"
"""The instance that has its epoch at the start."""
_NEXT_EPOCH = 1
_APPENDED, _ACKNOWLEDGED, _COMPLETED = "BrokerAppends", "BrokerAcknowledges", "BrokerCompletes"


@dataclass(frozen=True, slots=True)
class _EndDecision:
    """Which way a transaction ends, and the epoch of its markers."""

    epoch: int
    commits: bool


@dataclass(slots=True)
class _SentRequests:
    """What was sent and answered. EndTxn is known by its transaction and outcome, a batch by its
    partition, transaction and sequence, a marker by its partition and transaction."""

    batches: dict[tuple[str, int, int], TransactionBatch] = field(default_factory=dict)
    written: set[TransactionBatch] = field(default_factory=set)
    ends: dict[tuple[int, bool], int] = field(default_factory=dict)
    """The epoch that it is sent with."""
    answered: dict[int, int] = field(default_factory=dict)
    """The epoch that the end of a transaction was answered."""
    given: dict[str, int] = field(default_factory=dict)
    added: set[tuple[str, int, str]] = field(default_factory=set)
    markers: dict[tuple[str, int], _EndDecision] = field(default_factory=dict)
    decision: _EndDecision = _EndDecision(0, commits=False)


class DrivenTransaction:
    """Of one test. The requests go out as the steps say; their answers are waited for."""

    def __init__(
        self,
        requests: TransactionRequests,
        driven: DrivenId,
        look: Look,
        clients: Sequence[str],
        data: Sequence[str],
        offsets: Sequence[str],
    ) -> None:
        self._requests = requests
        self._driven = driven
        self._forged = ForgedRequests(requests, driven)
        self.look = look
        self._data, self._offsets = data, offsets
        self._instances = dict.fromkeys(clients, Instance())
        self._instances[_FIRST] = Instance().with_epoch(0)
        self.origin = RecordOrigin(client=_FIRST)
        self.is_quiet, self._last_of_broker, self._begun = True, "", 0
        self._notes = _SentRequests()
        self._steps: Mapping[str, Callable[..., None]] = {
            "Begins": self._begin,
            "Sends": self._send,
            "Ends": self._end,
            "TakesProducerId": self._take_producer_id,
            "TakesAdded": self._take_added,
            "TakesEnd": self._take_end,
            "RequestProducerId": self._request_producer_id,
            "RequestFence": self._request_fence,
            "RequestPartition": self._request_partition,
            "RequestEnd": self._request_end,
            "ProduceFirst": lambda p, t, s: self._produce(p, t, s, first=True),
            "Produce": lambda p, t, s: self._produce(p, t, s, first=False),
            "RepeatEnd": lambda _c, t, commits: self._end_again(t, commits, refused=False),
            "RefuseEnd": lambda _c, t, commits: self._end_again(t, commits, refused=True),
            "RefuseAddPartition": self._refuse_partition,
            "RepeatBatch": lambda p, t, s: self._produce_again(p, t, s, refused=False),
            "RefuseBatch": lambda p, t, s: self._produce_again(p, t, s, refused=True),
            "ProduceBlocked": self._produce_blocked,
            "RepeatMarker": lambda p, t, _e: self._mark_again(p, t, refused=False),
            "RefuseMarker": lambda p, t, _e: self._mark_again(p, t, refused=True),
            "RefuseForged": lambda _, kind, error: self._refuse_forged(
                self._forged.to_coordinator, kind, error
            ),
            "RefuseForgedBatch": lambda p, kind, error: self._refuse_forged(
                self._forged.to_leader, self.look.place_of(p), kind, error
            ),
            "RefuseForgedMarker": self._refuse_forged_marker,
            "BrokerWrites": self._marker_is_written,
            _COMPLETED: self._completes,
            **dict.fromkeys(
                (
                    _APPENDED,
                    _ACKNOWLEDGED,
                    "BrokerAdds",
                    "BrokerVerifies",
                    "BrokerFences",
                    "BrokerMarks",
                ),
                _nothing,
            ),
        }

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        last = self._last_of_broker
        step_of(self._steps, action)(*action.args)
        self.is_quiet = self.is_quiet or action.name == last != _COMPLETED

    def clients(self) -> Value:
        """The instances as the specification has them."""
        return make_function({name: instance_of(i) for name, i in self._instances.items()})

    # ---- the instances ---------------------------------------------------------------------

    def _begin(self, client: str) -> None:
        self._begun += 1
        self._instances[client] = self._instances[client].begin(self._begun)

    def _send(self, client: str, partition: str) -> None:
        batch = self._instances[client].next_batch(partition)
        self._notes.batches[batch.partition, batch.txn, batch.sequence] = batch
        self._instances[client] = self._instances[client].send(batch)

    def _end(self, client: str, commits: bool) -> None:
        instance = self._instances[client]
        self._notes.ends[instance.txn, commits] = instance.epoch
        self._instances[client] = instance.end(commits=commits)

    def _take_producer_id(self, client: str, _coordinator: str) -> None:
        if client not in self._notes.given:
            raise ActionRefused(f"{client} was given no epoch")
        self._instances[client] = self._instances[client].with_epoch(self._notes.given.pop(client))

    def _take_added(self, client: str, _coordinator: str, partition: str) -> None:
        """Who has no answer yet asks once more."""
        instance = self._instances[client]
        if (client, instance.txn, partition) not in self._notes.added:
            expect("AddPartitionsToTxn", self._add(client, partition))
        self._instances[client] = instance.with_added(partition)

    def _take_end(self, client: str, _coordinator: str) -> None:
        """Who has no answer yet asks once more."""
        instance = self._instances[client]
        if instance.txn not in self._notes.answered:
            self._ask_for_end(instance.txn, instance.commits)
        epoch = self._notes.answered[instance.txn] if self._requests.is_version_2 else NO_EPOCH
        self._instances[client] = instance.ended(epoch, self._notes.written.__contains__)

    # ---- requests that have an effect ------------------------------------------------------

    def _under_way(self, until: str) -> None:
        """A request has begun what the broker goes on with, up to this step."""
        self.look.forget()
        self.is_quiet, self._last_of_broker = False, until

    def _request_producer_id(self, _coordinator: str, client: str) -> None:
        self._under_way(_ACKNOWLEDGED)
        error, producer_id, epoch = self._requests.init_producer_id(
            self._driven.coordinator, self._driven.name
        )
        expect("InitProducerId", error)
        if producer_id != self._driven.producer_id:
            raise ActionRefused(f"InitProducerId gave another producer id, {producer_id}")
        self._notes.given[client] = epoch
        self.origin = RecordOrigin(client=client)

    def _request_fence(self, _coordinator: str) -> None:
        """InitProducerId; whoever sends it, must ask again."""
        self._notes.decision = _EndDecision(self.look.epoch + _NEXT_EPOCH, commits=False)
        self._under_way(_COMPLETED)
        error, _, _ = self._requests.init_producer_id(self._driven.coordinator, self._driven.name)
        if error != CONCURRENT:
            raise ActionRefused(f"InitProducerId in an open transaction was answered {error}")
        self.origin = replace(self.origin, client="none", request=0)

    def _add(self, client: str, partition: str) -> str:
        producer = (self._driven.producer_id, self._instances[client].epoch)
        if partition in self._offsets:
            return self._requests.add_offsets(
                self._driven.coordinator, self._driven.name, producer, self._driven.group_id
            )
        return self._requests.add_partition(
            self._driven.coordinator, self._driven.name, producer, self._data.index(partition)
        )

    def _request_partition(self, _coordinator: str, client: str, partition: str) -> None:
        self._goes_on_with(self._instances[client].txn)
        self._under_way(_ACKNOWLEDGED)
        expect("AddPartitionsToTxn", self._add(client, partition))
        self._notes.added.add((client, self._instances[client].txn, partition))

    def _goes_on_with(self, txn: int) -> None:
        """The transaction begins with its first partition."""
        is_open = self.look.state == "Ongoing"
        self.origin = RecordOrigin(txn=self.origin.txn if is_open else txn)

    def _request_end(self, _coordinator: str, txn: int, commits: bool) -> None:
        epoch = self._notes.ends[txn, commits]
        bump = _NEXT_EPOCH if self._requests.is_version_2 else 0
        self._notes.decision = _EndDecision(epoch + bump, commits)
        is_open = self.look.state == "Ongoing"
        self._under_way(_COMPLETED)
        self._ask_for_end(txn, commits)
        self.origin = RecordOrigin(txn=self.origin.txn if is_open else 0, request=txn)

    def _ask_for_end(self, txn: int, commits: bool) -> None:
        producer = (self._driven.producer_id, self._notes.ends[txn, commits])
        error, epoch = self._requests.end(
            self._driven.coordinator, self._driven.name, producer, commits=commits
        )
        expect("EndTxn", error)
        self._notes.answered[txn] = epoch

    def _produce(self, partition: str, txn: int, sequence: int, *, first: bool) -> None:
        """The first batch of a partition is verified."""
        batch = self._notes.batches[partition, txn, sequence]
        if first and self._requests.is_version_2:
            self._goes_on_with(txn)
        self._under_way(_APPENDED)
        self.is_quiet = not first
        expect("Produce", self._write(batch))
        self._notes.written.add(batch)

    def _write(self, batch: TransactionBatch) -> str:
        if batch.partition not in self._offsets:
            index = self._data.index(batch.partition)
            return self._requests.produce(self._driven.name, self._driven.producer_id, batch, index)
        return self._requests.commit_offset(
            self._driven.coordinator,
            self._driven.name,
            self._driven.producer_id,
            batch.epoch,
            self._driven.group_id,
            Look.position_of(batch),
        )

    # ---- requests that come too late, or once more -----------------------------------------

    def _again(self, request: str, error: str, *, refused: bool) -> None:
        self.look.forget()
        if refused == (error in (NONE, DUPLICATE)):
            raise ActionRefused(f"{request} was answered {error}")

    def _end_again(self, txn: int, commits: bool, *, refused: bool) -> None:
        producer = (self._driven.producer_id, self._notes.ends[txn, commits])
        error, _ = self._requests.end(
            self._driven.coordinator, self._driven.name, producer, commits=commits
        )
        self._again("EndTxn", error, refused=refused)

    def _refuse_partition(self, _coordinator: str, client: str, partition: str) -> None:
        self._again("AddPartitionsToTxn", self._add(client, partition), refused=True)

    def _produce_again(self, partition: str, txn: int, sequence: int, *, refused: bool) -> None:
        batch = self._notes.batches[partition, txn, sequence]
        self._again("Produce", self._write(batch), refused=refused)

    def _produce_blocked(self, partition: str, txn: int, sequence: int) -> None:
        """The broker may take the batch."""
        batch = self._notes.batches[partition, txn, sequence]
        self.look.forget()
        if self._write(batch) == NONE:
            self._notes.written.add(batch)

    def _mark_again(self, partition: str, txn: int, *, refused: bool) -> None:
        """The marker as its coordinator has sent it, on a connection of ours."""
        decision = self._notes.markers[partition, txn]
        error = self._requests.write_marker(
            self.look.place_of(partition),
            (self._driven.producer_id, decision.epoch),
            self.look.coordinator_epoch,
            commits=decision.commits,
        )
        self._again("WriteTxnMarkers", error, refused=refused)
        if not refused:
            self.look.note_marker(partition, txn)

    # ---- requests that no client sends -----------------------------------------------------

    def _refuse_forged(self, send: Callable[..., None], *arguments: object) -> None:
        self.look.forget()
        send(*arguments, self.look.epoch)

    def _refuse_forged_marker(self, partition: str, _kind: str, error: str) -> None:
        self.look.forget()
        self._forged.marker(
            self.look.place_of(partition), error, self.look.epoch, self.look.coordinator_epoch
        )

    # ---- the broker goes on ----------------------------------------------------------------

    def _marker_is_written(self, partition: str, txn: int, _coordinator_epoch: int) -> None:
        self._notes.markers[partition, txn] = self._notes.decision
        self.look.note_marker(partition, txn)

    def _completes(self, _coordinator: str) -> None:
        """The completion is appended; then nothing is left."""
        self._last_of_broker = _ACKNOWLEDGED


def _nothing(*_args: object) -> None:
    """The broker does it by itself."""
