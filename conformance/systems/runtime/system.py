"""The system under test: the coordinator runtime of each broker that may lead the partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from conformance.errors import UserError
from conformance.systems.protocol import Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.runtime.elections import PlayedElections
from conformance.systems.runtime.groups import CoordinatedGroup
from conformance.systems.runtime.observation import (
    RuntimeBroker,
    ShardView,
    listener_of,
    log_of,
    roles_of,
    shard_of,
    state_of,
    tenure_of,
)
from conformance.systems.runtime.partition import (
    PendingLoads,
    PendingTimeouts,
    QueuedEvents,
    Replica,
)
from conformance.systems.runtime.store import StoredValues
from conformance.systems.runtime.transactional import TransactionalValues
from conformance.tla import Action, Value, make_function
from impl.clock import Clock, MockClock
from impl.coordinator.coordinator_runtime import (
    Completion,
    CoordinatorRuntime,
    EndOfTransaction,
    TransactionalWriter,
    WriteOperation,
)
from impl.coordinator.coordinator_shard import CoordinatorResult, CoordinatorShard
from impl.coordinator.timeline import SnapshotRegistry
from impl.errors import Errors

_PRODUCER_EPOCH = 0
_OF_BROKERS: Mapping[str, Callable[[RuntimeBroker], Value]] = {
    "log": log_of,
    "hw": lambda broker: broker.replica.log.high_watermark,
    "roles": roles_of,
    "state": state_of,
    "tenure": tenure_of,
    "loads": lambda broker: broker.loads.epochs,
    "shard": shard_of,
    "listener": listener_of,
}


class ModelShard(ShardView, Protocol):
    """A shard in a model: how it is made, what writes of it do, and how it looks."""

    max_message_bytes: int

    def build(self, registry: SnapshotRegistry) -> CoordinatorShard:
        """A fresh shard (ShardBuilder)."""

    def operation(self, shard: CoordinatorShard, kind: Value, number: int) -> CoordinatorResult:
        """What a write of that kind and number gives. Raises what its caller is told."""


ShardMaker = Callable[[Clock], ModelShard]


class RuntimeSystem(RewindingSystem):
    """Brokers whose events, appends, loads and watermarks wait for an action."""

    variables = ("leader", "epoch", "deleted", *_OF_BROKERS, "answers")
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        names, most = constants["Brokers"], constants["MaxBatch"]
        if not isinstance(names, frozenset) or not isinstance(most, int):
            raise UserError("Brokers must be a set, MaxBatch a number.")
        self._names = sorted(map(str, names))
        self._make_shard = self._shard_maker(constants, most)
        self._actions: dict[str, Callable[..., None]] = {
            "Write": self._write,
            "TransactionalWrite": self._write_in_transaction,
            "CompleteTransaction": self._complete_transaction,
            "FlushBatch": self._flush,
            "TimeOut": self._time_out,
            "AdvanceWatermark": lambda b, offset: self._of(b).replica.advance_watermark(offset),
            "Replicate": lambda b: self._elections.replicate(b),
            "ApplyWatermark": lambda b: self._of(b).events.run("HighWatermarkUpdate"),
            "Elect": lambda b: self._elections.elect(b),
            "DeleteTopic": lambda: self._elections.delete_topic(),
            "RunRole": lambda b: self._elections.run_role(b),
            "CompleteLoad": lambda b, epoch: self._elections.complete_load(b, epoch),
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Empty logs that nobody leads."""
        self._rewinder.forget()
        self._clock = MockClock(0)
        self._shard = self._make_shard(self._clock)
        self._answers: list[str] = []
        self._brokers = {name: self._broker(name) for name in self._names}
        self._elections = PlayedElections(self._brokers)

    @staticmethod
    def _shard_maker(constants: Mapping[str, Value], max_batch: int) -> ShardMaker:
        # Of these shards only that of groups has members, and so a first epoch.
        if "FirstEpoch" in constants:
            return CoordinatedGroup
        stores = TransactionalValues if "Producers" in constants else StoredValues
        return lambda _clock: stores(max_batch)

    def _broker(self, _name: str) -> RuntimeBroker:
        replica = Replica(self._shard.max_message_bytes)
        events, timer = QueuedEvents(), PendingTimeouts()
        loads = PendingLoads(replica, lambda: tenure_of(broker))
        runtime = CoordinatorRuntime(self._shard.build, replica, loads, events, timer, self._clock)
        broker = RuntimeBroker(replica, events, loads, timer, runtime, self._shard)
        return broker

    def apply(self, action: Action) -> None:
        """Let a client, the log, the controller or a queued event take one step."""
        step = step_of(self._actions, action)
        step(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        return Observation(
            {
                "leader": self._elections.leader,
                "epoch": self._elections.epoch,
                "deleted": self._elections.is_deleted,
                "answers": tuple(self._answers),
                **{name: self._by_broker(value) for name, value in _OF_BROKERS.items()},
            }
        )

    def _by_broker(self, value: Callable[[RuntimeBroker], Value]) -> Value:
        return make_function({name: value(broker) for name, broker in self._brokers.items()})

    def _of(self, name: str) -> RuntimeBroker:
        return self._brokers[name]

    # ---- writes ----------------------------------------------------------------------------

    def _write(self, name: str, kind: Value, result: str) -> None:
        """Queue a write and run its event."""
        self._run(
            name,
            result,
            lambda runtime, number: runtime.schedule_write_operation(
                str(number), self._operation(kind, number), self._answering(number)
            ),
        )

    def _write_in_transaction(self, name: str, producer: int, kind: Value, result: str) -> None:
        self._run(
            name,
            result,
            lambda runtime, number: runtime.schedule_transactional_write_operation(
                str(number),
                str(producer),
                TransactionalWriter(producer, _PRODUCER_EPOCH),
                self._operation(kind, number),
                self._answering(number),
            ),
        )

    def _complete_transaction(self, name: str, producer: int, end: str, result: str) -> None:
        self._run(
            name,
            result,
            lambda runtime, number: runtime.schedule_transaction_completion(
                str(number),
                TransactionalWriter(producer, _PRODUCER_EPOCH),
                EndOfTransaction(end == "COMMIT"),
                self._answering(number),
            ),
        )

    def _run(
        self, name: str, result: str, schedule: Callable[[CoordinatorRuntime, int], None]
    ) -> None:
        """Run the event that is queued. Its number is its time and its name."""
        broker = self._of(name)
        self._clock.sleep(1)
        number = self._clock.milliseconds()
        self._answers.append("none")
        broker.replica.expect(result)
        broker.timer.current = number
        schedule(broker.runtime, number)
        broker.events.run(str(number))

    def _operation(self, kind: Value, number: int) -> WriteOperation:
        return lambda shard: self._shard.operation(shard, kind, number)

    def _answering(self, number: int) -> Completion:
        return lambda error, _response: self._answer(number, error)

    def _answer(self, number: int, error: Exception | None) -> None:
        if error is None:
            answer = "ok"
        else:
            timed_out = Errors.for_exception(error) is Errors.REQUEST_TIMED_OUT
            answer = "timeout" if timed_out else "error"
        self._answers[number - 1] = answer

    def _flush(self, name: str, result: str) -> None:
        broker = self._of(name)
        broker.replica.expect(result)
        broker.events.run_all("FlushBatch")

    def _time_out(self, number: int) -> None:
        broker = next(b for b in self._brokers.values() if b.timer.has(number))
        broker.timer.fire(number)
        broker.events.run("OperationTimeout")
