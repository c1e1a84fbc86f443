"""Drives any broker's idempotent produce through its port, along IdempotentProduce.tla's actions.

The producer is ours, and a new producer id begins a test. Its batches go out as raw Produce
requests: with acks=all those with odd values, with acks=1 the others. Seen are the answers, and
after each of them the log (Fetch), the high watermark (ListOffsets) and the producer's entry
(DescribeProducers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conformance.deviations.tolerance import Tolerance
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.shared.produce.window import SPECIFICATION
from conformance.systems.wire.address import Address
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.produce.producer import SentBatch, WireProducer
from conformance.systems.wire.produce.reach import lacking
from conformance.systems.wire.produce.requests import LoggedBatch, ProducerPartition
from conformance.systems.wire.security import Security
from conformance.tla import Action, Fn, Value, make_function

_ALL, _LEADER = -1, 1
"""What `acks` may be where an answer comes."""
_NONE = "NONE"
_NO_ENTRY = Fn({"epoch": -1, "batches": ()})


class WireProduceSystem:
    """One producer of a broker at a time; a new one for each test."""

    variables = ("log", "hw", "producer", "answers", "client")
    sometimes = frozenset({"producer"})
    """DescribeProducers names the last batch, and not those before it."""
    late = ""
    patience = 0.0
    """A request is answered once it is handled, so nothing is worth to be looked at again."""

    def __init__(
        self,
        constants: Mapping[str, Value],
        address: Address,
        security: Security,
        tolerance: Tolerance,
    ) -> None:
        self.tolerance = tolerance
        self.lanes = address.groups
        names = constants["Brokers"]
        assert isinstance(names, frozenset), "TypeOK of the specification"
        (self._name,) = names
        self._broker = WireBroker(address, security)
        self._broker.require(SPECIFICATION, lacking(self._broker.entry))
        topic = self._broker.require_topic(1)
        self._partition = ProducerPartition(self._broker.entry, *topic)
        self._partition.await_leader()
        self._steps: Mapping[str, Callable[..., None]] = {
            "Send": lambda size: self._client.send(size),
            "Produce": self._produce,
            "Acknowledge": self._acknowledge,
            "Bump": self._bump,
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A producer id that nobody has used; its log begins where the last test's ends."""
        self._client = WireProducer()
        self._answers: dict[tuple[int, int], tuple[str, int]] = {}
        self._producer = self._partition.new_producer_id()
        self._base = self._partition.latest()
        self._look()

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        step_of(self._steps, action)(*action.args)

    def observe(self) -> Observation:
        """What the last answers have shown."""
        client = self._client
        answers = frozenset(
            Fn({"epoch": epoch, "seq": seq, "error": error, "offset": offset})
            for (epoch, seq), (error, offset) in self._answers.items()
        )
        known: dict[Value, Value] = {
            "epoch": client.epoch,
            "next": client.next,
            "lastAcked": client.last_acked,
            "pending": tuple(map(_sent, client.pending)),
            "values": client.values,
        }
        return Observation({**self._seen, "answers": answers, "client": Fn(known)})

    # ---- steps -----------------------------------------------------------------------------

    def _produce(self, epoch: int, value: int) -> None:
        batch = self._client.sent[epoch, value]
        acks = _ALL if value % 2 else _LEADER
        error, offset = self._partition.produce(self._producer, batch, acks)
        if error == _NONE:
            offset -= self._base
        self._answers[batch.epoch, batch.seq] = error, offset
        self._look()

    def _acknowledge(self, value: int, arrives: bool) -> None:
        batch = self._client.waiting(value)
        error, _ = self._answers.pop((batch.epoch, batch.seq), ("no answer", -1))
        if error != _NONE:
            raise ActionRefused(f"batch {value} is not acknowledged: {error}")
        if arrives:
            self._client.complete(batch)

    def _bump(self, value: int) -> None:
        batch = self._client.waiting(value)
        error, _ = self._answers.get((batch.epoch, batch.seq), ("no answer", -1))
        self._client.bump(batch, error)
        self._answers.clear()

    # ---- what is seen ----------------------------------------------------------------------

    def _look(self) -> None:
        """Ask for all that an append can have changed."""
        partition = self._partition
        watermark = partition.latest()
        log = tuple(
            batch
            for batch in partition.fetch(self._base, self._producer)
            if batch.offset >= self._base
        )
        shown: dict[str, Value] = {
            "log": tuple(_logged(batch, self._base) for batch in log),
            "hw": watermark - self._base,
        }
        if partition.port.offers("describe_producers"):
            entry = self._entry(log)
            if entry is not None:
                shown["producer"] = entry
        self._seen = {name: make_function({self._name: value}) for name, value in shown.items()}

    def _entry(self, log: Sequence[LoggedBatch]) -> Value | None:
        """The producer's entry; None if it has batches before the last one, which nobody shows."""
        described = self._partition.describe(self._producer[0])
        if described is None:
            return _NO_ENTRY
        epoch, last = described[0] - self._producer[1], described[1]
        written = [batch for batch in log if batch.sent.epoch == epoch]
        if written and written[-1].sent.last == last:
            if len(written) > 1:
                return None
            first, offset = written[0].sent.seq, written[0].offset - self._base
        else:  # it is not the log's last batch: shown as it is, for no state is so
            first, offset = last, -1
        known = Fn({"first": first, "last": last, "offset": offset})
        return Fn({"epoch": epoch, "batches": (known,)})

    # ---- Patient, Closeable ----------------------------------------------------------------

    def foresee(self, _actions: Sequence[Action]) -> str:
        """Every path can be driven: there are no timers."""
        return ""

    def be_alone(self) -> None:
        """It makes no difference."""

    def look_again(self, _seconds: float) -> Mapping[str, Value]:
        """Observe once more."""
        self._look()
        return self.observe()

    def close(self) -> None:
        """Delete the topic, and close the connections."""
        with self._broker.closing():
            pass


def _sent(batch: SentBatch) -> Value:
    return Fn({"epoch": batch.epoch, "seq": batch.seq, "size": batch.size, "value": batch.value})


def _logged(batch: LoggedBatch, base: int) -> Value:
    sent = batch.sent
    return Fn(
        {
            "epoch": sent.epoch,
            "seq": sent.seq,
            "size": sent.size,
            "value": sent.value,
            "offset": batch.offset - base,
            "leaderEpoch": batch.leader_epoch,
        }
    )
