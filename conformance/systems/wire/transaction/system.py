"""Drives any broker's transactions through its port, along TransactionsAtPort.tla's actions.

The producer's instances are ours, and a new transactional id begins a test. Where the specification
lets a request have an effect it goes out, and its answer is waited for; where it lets the broker go
on, nothing is done. Seen are the answers, and what `look` asks for while nothing is under way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.deviations.tolerance import Tolerance
from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, Observation, SystemFailed, step_of
from conformance.systems.shared.transaction.instance import (
    NO_EPOCH,
    Instance,
    TransactionBatch,
    instance_of,
)
from conformance.systems.wire.address import Address
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.pace import Pace
from conformance.systems.wire.port import COORDINATOR_SECONDS, TRANSACTION_KEY, Port
from conformance.systems.wire.security import Security
from conformance.systems.wire.transaction.look import Look, Origin, Place
from conformance.systems.wire.transaction.reach import MARKERS, SPECIFICATION, lacking
from conformance.systems.wire.transaction.requests import (
    DUPLICATE,
    NONE,
    TransactionRequests,
)
from conformance.tla import Action, Value, make_function

_CONCURRENT = "CONCURRENT_TRANSACTIONS"
_FIRST = "a"
"""The instance that has its epoch at the start."""
_NEXT_EPOCH = 1
_BY_HAND = frozenset({"RepeatMarker", "RefuseMarker"})
_STABLE_SECONDS = 5.0
_RETRY_SECONDS = 0.01
_APPENDED, _ACKNOWLEDGED, _COMPLETED = "BrokerAppends", "BrokerAcknowledges", "BrokerCompletes"


@dataclass(frozen=True, slots=True)
class _Decision:
    """Which way a transaction ends, and the epoch of its markers."""

    epoch: int
    commits: bool


class WireTransactionSystem:
    """One transactional id of a broker at a time; a new one for each test."""

    variables = ("clients", "coordinators", "log", "highWatermark", "reads", "producers")
    sometimes = frozenset({"coordinators", "log", "highWatermark", "reads", "producers"})
    """While the broker goes on nothing is seen; of offsets' partitions there is no log."""

    def __init__(
        self,
        constants: Mapping[str, Value],
        address: Address,
        security: Security,
        tolerance: Tolerance,
    ) -> None:
        self.tolerance = tolerance
        self.lanes = address.groups
        self._is_version_2 = constants["Version2"] is True
        self._clients = _names(constants["Clients"])
        (self._coordinator_name,) = _names(constants["Coordinators"])
        offsets = _names(constants["OffsetsPartitions"])
        self._data = [name for name in _names(constants["Partitions"]) if name not in offsets]
        self._offsets = offsets
        self._broker = WireBroker(address, security)
        if reason := lacking(self._broker.entry, constants):
            raise UserError(
                f"The broker at {address} cannot be driven by {SPECIFICATION}: {reason}."
            )
        self._pace = Pace(address)
        self._requests = self._new_topic()
        self._open: tuple[str, Port] | None = None
        """The id of the last test, which may have left a transaction open."""
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
            "RepeatMarker": lambda p, t, _e: self._mark_again(p, t, refused=False),
            "RefuseMarker": lambda p, t, _e: self._mark_again(p, t, refused=True),
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

    def _new_topic(self) -> TransactionRequests:
        count = max(len(self._data), 1)
        topic = self._broker.make_topic(count)
        assert topic is not None, "CreateTopics is among what was demanded"
        requests = TransactionRequests(self._broker.entry, *topic, count, self._is_version_2)
        until = time.monotonic() + COORDINATOR_SECONDS
        while True:  # a broker hears of its own topics late
            try:
                self._broker.entry.ask_body(requests.fetch([0] * count, committed=False))
                Look.bounds(requests)
                return requests
            except SystemFailed:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A transactional id that nobody has used; the logs begin where the last test's end."""
        self._leave_behind()
        self._pace.begin()
        self._broker.entry.slowest = 0.0
        self._id = self._broker.new_group_id()
        self._group = f"{self._id}-offsets"
        self._coordinator = self._broker.ports.at(
            *self._broker.entry.find_coordinator(self._id, TRANSACTION_KEY)
        )
        self._producer_id, epoch = self._new_epoch(self._id, self._coordinator)
        self._open = (self._id, self._coordinator)
        self._instances = dict.fromkeys(self._clients, Instance())
        self._instances[_FIRST] = Instance().with_epoch(epoch)
        self._origin = Origin(client=_FIRST)
        self._is_quiet, self._last_of_broker, self._begun = True, "", 0
        self._batches: dict[tuple[str, int, int], TransactionBatch] = {}
        self._ends: dict[tuple[int, bool], int] = {}
        """The epoch of each EndTxn, by transaction and outcome."""
        self._given: dict[str, int] = {}
        self._added: set[tuple[str, int, str]] = set()
        self._answered: dict[int, int] = {}
        self._written: set[TransactionBatch] = set()
        self._decision = _Decision(0, commits=False)
        self._markers: dict[tuple[str, int], _Decision] = {}
        places = {name: Place(self._requests.topic, index) for index, name in enumerate(self._data)}
        self._look = Look(
            self._requests,
            self._coordinator,
            self._id,
            self._producer_id,
            places,
            self._offsets,
            self._group,
        )

    def _new_epoch(self, transactional_id: str, port: Port) -> tuple[int, int]:
        """As a client asks for it: again while a transaction is being ended."""
        until = time.monotonic() + COORDINATOR_SECONDS
        while True:
            error, producer_id, epoch = self._requests.init_producer_id(port, transactional_id)
            if error == NONE:
                return producer_id, epoch
            if error not in _AGAIN or time.monotonic() > until:
                raise SystemFailed(f"InitProducerId was answered {error}")
            time.sleep(_RETRY_SECONDS)

    def _leave_behind(self) -> None:
        """Nothing stays open; partitions where something hangs are given up."""
        if self._open is None:
            return
        self._new_epoch(*self._open)
        self._open = None
        until = time.monotonic() + _STABLE_SECONDS
        while not Look.is_stable(self._requests):
            if time.monotonic() > until:
                self._requests = self._new_topic()
                return
            time.sleep(_RETRY_SECONDS)

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        self._pace.step()
        last = self._last_of_broker
        step_of(self._steps, action)(*action.args)
        self._is_quiet = self._is_quiet or action.name == last != _COMPLETED
        self._pace.window = self.patience

    def observe(self) -> Observation:
        """The instances, and what is seen while nothing is under way."""
        clients = make_function({name: instance_of(i) for name, i in self._instances.items()})
        if not self._is_quiet:
            return Observation({"clients": clients})
        started = time.monotonic()
        seen = self._look.values(self._coordinator_name, self._origin)
        self._pace.looked_at, self._pace.seen_at = started, time.monotonic()
        return Observation({"clients": clients, **seen})

    # ---- the instances ---------------------------------------------------------------------

    def _begin(self, client: str) -> None:
        self._begun += 1
        self._instances[client] = self._instances[client].begin(self._begun)

    def _send(self, client: str, partition: str) -> None:
        batch = self._instances[client].next_batch(partition)
        self._batches[batch.partition, batch.txn, batch.sequence] = batch
        self._instances[client] = self._instances[client].send(batch)

    def _end(self, client: str, commits: bool) -> None:
        instance = self._instances[client]
        self._ends[instance.txn, commits] = instance.epoch
        self._instances[client] = instance.end(commits=commits)

    def _take_producer_id(self, client: str, _coordinator: str) -> None:
        if client not in self._given:
            raise ActionRefused(f"{client} was given no epoch")
        self._instances[client] = self._instances[client].with_epoch(self._given.pop(client))

    def _take_added(self, client: str, _coordinator: str, partition: str) -> None:
        """Who has no answer yet asks once more."""
        instance = self._instances[client]
        if (client, instance.txn, partition) not in self._added:
            self._expect("AddPartitionsToTxn", self._add(client, partition))
        self._instances[client] = instance.with_added(partition)

    def _take_end(self, client: str, _coordinator: str) -> None:
        """Who has no answer yet asks once more."""
        instance = self._instances[client]
        if instance.txn not in self._answered:
            self._ask_for_end(instance.txn, instance.commits)
        epoch = self._answered[instance.txn] if self._is_version_2 else NO_EPOCH
        self._instances[client] = instance.ended(epoch, self._written.__contains__)

    # ---- requests that have an effect ------------------------------------------------------

    def _under_way(self, until: str) -> None:
        """A request has begun what the broker goes on with, up to this step."""
        self._look.forget()
        self._is_quiet, self._last_of_broker = False, until

    def _expect(self, request: str, error: str) -> None:
        if error != NONE:
            raise ActionRefused(f"{request} was answered {error}")

    def _request_producer_id(self, _coordinator: str, client: str) -> None:
        self._under_way(_ACKNOWLEDGED)
        error, producer_id, epoch = self._requests.init_producer_id(self._coordinator, self._id)
        self._expect("InitProducerId", error)
        if producer_id != self._producer_id:
            raise ActionRefused(f"InitProducerId gave another producer id, {producer_id}")
        self._given[client] = epoch
        self._origin = Origin(client=client)

    def _request_fence(self, _coordinator: str) -> None:
        """InitProducerId; whoever sends it, must ask again."""
        self._decision = _Decision(self._look.epoch + _NEXT_EPOCH, commits=False)
        self._under_way(_COMPLETED)
        error, _, _ = self._requests.init_producer_id(self._coordinator, self._id)
        if error != _CONCURRENT:
            raise ActionRefused(f"InitProducerId in an open transaction was answered {error}")
        self._origin = replace(self._origin, client="none", request=0)

    def _add(self, client: str, partition: str) -> str:
        producer = (self._producer_id, self._instances[client].epoch)
        if partition in self._offsets:
            return self._requests.add_offsets(self._coordinator, self._id, producer, self._group)
        return self._requests.add_partition(
            self._coordinator, self._id, producer, self._data.index(partition)
        )

    def _request_partition(self, _coordinator: str, client: str, partition: str) -> None:
        self._goes_on_with(self._instances[client].txn)
        self._under_way(_ACKNOWLEDGED)
        self._expect("AddPartitionsToTxn", self._add(client, partition))
        self._added.add((client, self._instances[client].txn, partition))

    def _goes_on_with(self, txn: int) -> None:
        """The transaction begins with its first partition."""
        is_open = self._look.state == "Ongoing"
        self._origin = Origin(txn=self._origin.txn if is_open else txn)

    def _request_end(self, _coordinator: str, txn: int, commits: bool) -> None:
        epoch = self._ends[txn, commits]
        bump = _NEXT_EPOCH if self._is_version_2 else 0
        self._decision = _Decision(epoch + bump, commits)
        is_open = self._look.state == "Ongoing"
        self._under_way(_COMPLETED)
        self._ask_for_end(txn, commits)
        self._origin = Origin(txn=self._origin.txn if is_open else 0, request=txn)

    def _ask_for_end(self, txn: int, commits: bool) -> None:
        producer = (self._producer_id, self._ends[txn, commits])
        error, epoch = self._requests.end(self._coordinator, self._id, producer, commits=commits)
        self._expect("EndTxn", error)
        self._answered[txn] = epoch

    def _produce(self, partition: str, txn: int, sequence: int, *, first: bool) -> None:
        """The first batch of a partition is verified."""
        batch = self._batches[partition, txn, sequence]
        if first and self._is_version_2:
            self._goes_on_with(txn)
        self._under_way(_APPENDED)
        self._is_quiet = not first
        self._expect("Produce", self._write(batch))
        self._written.add(batch)

    def _write(self, batch: TransactionBatch) -> str:
        if batch.partition not in self._offsets:
            index = self._data.index(batch.partition)
            return self._requests.produce(self._id, self._producer_id, batch, index)
        return self._requests.commit_offset(
            self._coordinator,
            self._id,
            self._producer_id,
            batch.epoch,
            self._group,
            Look.position_of(batch),
        )

    # ---- requests that come too late, or once more -----------------------------------------

    def _again(self, request: str, error: str, *, refused: bool) -> None:
        self._look.forget()
        if refused == (error in (NONE, DUPLICATE)):
            raise ActionRefused(f"{request} was answered {error}")

    def _end_again(self, txn: int, commits: bool, *, refused: bool) -> None:
        producer = (self._producer_id, self._ends[txn, commits])
        error, _ = self._requests.end(self._coordinator, self._id, producer, commits=commits)
        self._again("EndTxn", error, refused=refused)

    def _refuse_partition(self, _coordinator: str, client: str, partition: str) -> None:
        self._again("AddPartitionsToTxn", self._add(client, partition), refused=True)

    def _produce_again(self, partition: str, txn: int, sequence: int, *, refused: bool) -> None:
        batch = self._batches[partition, txn, sequence]
        self._again("Produce", self._write(batch), refused=refused)

    def _mark_again(self, partition: str, txn: int, *, refused: bool) -> None:
        """The marker as its coordinator has sent it, on a connection of ours."""
        decision = self._markers[partition, txn]
        error = self._requests.write_marker(
            self._look.place_of(partition),
            (self._producer_id, decision.epoch),
            self._look.coordinator_epoch,
            commits=decision.commits,
        )
        self._again("WriteTxnMarkers", error, refused=refused)
        if not refused:
            self._look.note_marker(partition, txn)

    # ---- the broker goes on ----------------------------------------------------------------

    def _marker_is_written(self, partition: str, txn: int, _coordinator_epoch: int) -> None:
        self._markers[partition, txn] = self._decision
        self._look.note_marker(partition, txn)

    def _completes(self, _coordinator: str) -> None:
        """The completion is appended; then nothing is left."""
        self._last_of_broker = _ACKNOWLEDGED

    # ---- Patient, Closeable ----------------------------------------------------------------

    def foresee(self, actions: Sequence[Action]) -> str:
        """There are no timers; but not every broker lets us write markers."""
        if not self._broker.entry.offers(MARKERS) and any(a.name in _BY_HAND for a in actions):
            return "the broker does not offer WriteTxnMarkers"
        return ""

    def be_alone(self) -> None:
        """Look for longer: nobody waits for this test to end."""
        self._pace.be_alone()

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again: markers are written by themselves."""
        return self._pace.patience

    def look_again(self, seconds: float) -> Mapping[str, Value]:
        """Observe after a pause that doubles each time."""
        time.sleep(min(seconds, self._pace.next_pause()))
        self._look.forget()
        return self.observe()

    @property
    def late(self) -> str:
        """Whether too little time was left for what was looked for."""
        return self._pace.slow(self._broker.entry.slowest)

    def close(self) -> None:
        """Delete what was made, and close the connections."""
        with self._broker.closing():
            self._leave_behind()


_AGAIN = frozenset(
    {
        _CONCURRENT,
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
    }
)


def _nothing(*_args: object) -> None:
    """The broker does it by itself."""


def _names(names: Value) -> list[str]:
    assert isinstance(names, frozenset), "TypeOK of the specification"
    return sorted(map(str, names))
