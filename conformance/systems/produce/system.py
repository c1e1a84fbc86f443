"""The system under test: a partition's logs with their producer state, and a producer's sequences.

Copies of batches arrive, replicas fetch and answers leave when an action says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.errors import UserError
from conformance.systems.produce.observation import (
    PRODUCER_ID,
    answer_of,
    client_of,
    log_of,
    producer_of,
    snapshots_of,
    value_of,
)
from conformance.systems.produce.replica import ProducerReplica
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.threads import (
    InterruptibleThreads,
    StartedThreads,
    WholeSections,
    interrupted,
    take_two_threads,
)
from conformance.tla import Action, Value, make_function
from impl.errors import ApiException, Errors
from impl.producer.transaction_manager import ProducerBatch, TransactionManager
from impl.records import Record

_OF_REPLICAS: Mapping[str, Callable[[ProducerReplica], Value]] = {
    "log": log_of,
    "hw": lambda replica: replica.log.high_watermark,
    "producer": producer_of,
    "snapshots": snapshots_of,
}
_NO_OFFSET = -1


_THREADS = (
    frozenset({"Produce"}),
    frozenset({"Fetch", "Truncate"}),
    frozenset({"Expire"}),
)
"""Which actions one thread takes: a request handler's, the follower's fetcher, the scheduler's.
Each request has a handler of its own."""


class ProduceSystem(WholeSections, RewindingSystem):
    """Replicas, and a client whose requests and answers wait for an action."""

    variables = ("leader", "epoch", *_OF_REPLICAS, "answers", "client")
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        names, window = constants["Brokers"], constants["Window"]
        if not isinstance(names, frozenset) or not isinstance(window, int):
            raise UserError("Brokers must be a set, Window a number.")
        self._names = sorted(map(str, names))
        self._window = window
        self._actions: dict[str, Callable[..., None]] = {
            "Send": self._send,
            "Produce": self._produce,
            "Acknowledge": self._acknowledge,
            "Bump": self._bump,
            "Elect": self._elect,
            "Fetch": lambda f: self._replicas[f].fetch_from(self._led),
            "Truncate": self._truncate,
            "Restart": lambda b, clean: self._replicas[b].restart(clean=clean),
            "Expire": lambda b: self._replicas[b].expire(),
        }
        self._threads: StartedThreads | InterruptibleThreads = StartedThreads()
        self._interruptible = False
        self._rewinder = Rewinder(self, apart=(self._actions,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, initial: Mapping[str, Value]) -> None:
        """Empty logs; the leader is the initial state's."""
        self._rewinder.forget()
        if self._interruptible:
            self._threads = InterruptibleThreads()
        self._leader, self._epoch = str(initial["leader"]), 0
        self._replicas = {
            name: ProducerReplica(self._window, self._threads) for name in self._names
        }
        self._client = TransactionManager(PRODUCER_ID)
        self._values = 0
        self._sent: dict[tuple[int, int], ProducerBatch] = {}
        self._answers: dict[ProducerBatch, tuple[Errors, int]] = {}

    def apply(self, action: Action) -> None:
        """Let the client, the network or a broker take one step."""
        step = step_of(self._actions, action)
        step(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        return Observation(
            {
                "leader": self._leader,
                "epoch": self._epoch,
                "answers": frozenset(
                    answer_of(batch, error.name, offset)
                    for batch, (error, offset) in self._answers.items()
                ),
                "client": client_of(self._client, self._values),
                **{name: self._by_broker(value) for name, value in _OF_REPLICAS.items()},
            }
        )

    def _by_broker(self, value: Callable[[ProducerReplica], Value]) -> Value:
        return make_function({name: value(replica) for name, replica in self._replicas.items()})

    @property
    def _led(self) -> ProducerReplica:
        return self._replicas[self._leader]

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on the logs have locks at which steps can be stopped."""
        self._interruptible = True
        return True

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads take these; two requests are handled by two."""
        both = running.name == between.name == "Produce"
        return both or take_two_threads(_THREADS, running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of a broker stand still while another takes its action."""
        return interrupted(self._threads, self.apply, running, point, between)

    # ---- the client ------------------------------------------------------------------------

    def _send(self, size: int) -> None:
        self._values += 1
        value = str(self._values).encode()
        self._remember(self._client.add_in_flight_batch([Record(value)] * size))

    def _remember(self, batch: ProducerBatch) -> None:
        self._sent[batch.producer_epoch, value_of(batch)] = batch

    def _pending(self, value: int) -> ProducerBatch:
        for batch in self._client.in_flight_batches:
            if value_of(batch) == value:
                return batch
        raise ActionRefused(f"the client does not wait for batch {value}")

    def _acknowledge(self, value: int, arrives: bool) -> None:
        batch = self._pending(value)
        error, offset = self._answers.pop(batch, (Errors.UNKNOWN_SERVER_ERROR, _NO_OFFSET))
        if error is not Errors.NONE or offset >= self._led.log.high_watermark:
            raise ActionRefused(f"batch {value} is not acknowledged: {error.name} at {offset}")
        if arrives:
            self._client.handle_completed_batch(batch)

    def _bump(self, value: int) -> None:
        batch = self._pending(value)
        error, _ = self._answers[batch]
        if self._client.can_retry(error, batch):
            raise ActionRefused(f"the client sends batch {value} again after {error.name}")
        for renumbered in self._client.bump_idempotent_producer_epoch():
            self._remember(renumbered)
        self._answers.clear()

    # ---- the partition ---------------------------------------------------------------------

    def _produce(self, epoch: int, value: int) -> None:
        batch = self._sent[epoch, value]
        log = self._led.log
        try:
            info = log.append_as_leader(batch.memory_records(PRODUCER_ID), self._epoch)
            self._answers[batch] = (Errors.NONE, info.first_offset)
        except ApiException as error:
            self._answers[batch] = (error.error, _NO_OFFSET)
        if len(self._replicas) == 1:
            self._led.advance_watermark(log.log_end_offset)

    def _elect(self, name: str) -> None:
        self._leader = name
        self._epoch += 1
        self._answers.clear()

    def _truncate(self, name: str) -> None:
        replica = self._replicas[name]
        replica.log.truncate_to(replica.common_end(self._led))


def create(constants: Mapping[str, Value]) -> ProduceSystem:
    """The system for a model's constants."""
    return ProduceSystem(constants)
