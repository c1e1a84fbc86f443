"""One client of a workload: `python -m conformance.workload.client JOB`.

JOB is a file of JSON: where the brokers are, the instance's plan, its log, and what the log's
first line says. SIGTERM makes it close in order after the operation that it is at; SIGKILL is its
death.
`java/Workload.java` does the same with Kafka's own client.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from conformance.kafka.clients import StopSignal
from conformance.workload.log import CONFIGURE, HistoryLog, key_of, sent
from conformance.workload.plan import (
    END,
    STUCK_AFTER_REFUSAL,
    ClientRole,
    InstancePlan,
    PlannedAction,
    PlannedRecord,
    PlannedStep,
    ProducerKind,
    partitions_of,
)
from conformance.workload.ports import (
    ClientPort,
    ClientProblem,
    ConsumerPort,
    DeliveryReport,
    Partition,
    PolledRecord,
    ProducerPort,
)

POLL_S = 0.3
"""How long a poll waits for records."""
DRAIN_S = 60.0
"""How long a final reader reads on: longer than a dead transaction may stay open."""


class ClientJob(msgspec.Struct, frozen=True):
    """What the process is given."""

    bootstrap: str
    plan: InstancePlan
    log: str
    configured: dict[str, str | bool | int]


Port = TypeVar("Port", bound=ClientPort)


class StopFlag(Protocol):
    """Becomes true when the client is to end."""

    def __bool__(self) -> bool:
        """Whether it is."""


class WorkloadClient:
    """Takes the steps of a plan with one library, and logs what comes of them."""

    def __init__(self, job: ClientJob, log: HistoryLog, ended: StopFlag) -> None:
        self._job, self._plan, self._log, self._ended = job, job.plan, log, ended
        self._producer: ProducerPort | None = None
        self._consumer: ConsumerPort | None = None
        self._positions: dict[Partition, int] = {}
        """Where to commit: behind what was polled of the partitions that it has."""
        self._read: dict[Partition, int] = {}
        """Of a reader the next offset."""
        self._gathered: list[PolledRecord] | None = None
        """What was polled for a transaction, while one is made."""

    def run(self) -> None:
        """Take all steps, or those until it is told to stop; then close."""
        if self._plan.role in {ClientRole.READER, ClientRole.FINAL_READER}:
            self._assign()
        elif self._plan.role is ClientRole.TRANSFORMER:
            self._subscribe()
        for step in self._plan.steps:
            self._rest(step.rest)
            if self._ended:
                break
            self._take(step)
        self._close()

    def _take(self, step: PlannedStep) -> None:
        match step.do:
            case PlannedAction.SEND:
                self._send(step.records)
            case PlannedAction.TRANSACTION:
                self._transaction(step.records, commits=step.commits)
            case PlannedAction.TRANSFORM:
                self._transform(step)
            case PlannedAction.POLL:
                self._poll(step.most)
            case PlannedAction.COMMIT:
                self._commit()
            case PlannedAction.FETCH:
                self._fetch()
            case PlannedAction.SEEK:
                self._seek(step.most)
            case PlannedAction.SUBSCRIBE:
                self._subscribe()
            case PlannedAction.FENCE:
                self._fence(step.ids)
            case PlannedAction.DRAIN:
                self._drain(step.most)

    # --- ports ------------------------------------------------------------------------------------

    def _until_made(self, make: Callable[[], Port]) -> Port | None:
        """A port; made again while brokers are away. None if the client is to end."""
        while not self._ended:
            try:
                return make()
            except ClientProblem:
                time.sleep(0.2)
        return None

    def _with_producer(self) -> ProducerPort | None:
        if self._producer is None:
            self._producer = self._until_made(
                lambda: producer_of(self._plan.library)(self._job.bootstrap, self._plan)
            )
        return self._producer

    def _with_consumer(self) -> ConsumerPort | None:
        if self._consumer is None:
            self._consumer = self._until_made(
                lambda: consumer_of(self._plan.library)(self._job.bootstrap, self._plan)
            )
        return self._consumer

    def _rest(self, seconds: float) -> None:
        port = self._consumer or self._producer
        if port is None:
            time.sleep(seconds)
        else:
            port.rest(seconds)

    def _renew_producer(self) -> None:
        """A producer that has failed for good is replaced."""
        if self._producer is not None:
            with suppress(ClientProblem):
                self._producer.close()
        self._producer = None
        self._log.renew()

    def _close(self) -> None:
        for port in (self._consumer, self._producer):
            if port is not None:
                error = ""
                try:
                    port.close()
                except ClientProblem as problem:
                    error = str(problem)
                self._log.event("close", kind="info" if error else "ok", error=error)

    # --- producers --------------------------------------------------------------------------------

    def _send(self, records: Sequence[PlannedRecord]) -> None:
        """Those of the closer are sent until all are acknowledged."""
        if (producer := self._with_producer()) is None:
            return
        operation = self._log.begin("send", sent=_sent(records))
        try:
            answers = producer.send(records)
        except ClientProblem as problem:
            operation.end("info", error=str(problem))
            self._renew_producer()
            answers = [DeliveryReport(False)] * len(records)
        else:
            operation.end_in_parts(*_parts(records, answers))
            if self._is_stuck_after(answers):
                self._renew_producer()
        missing = [r for r, a in zip(records, answers, strict=True) if not a.acknowledged]
        if missing and self._plan.role is ClientRole.CLOSER and not self._ended:
            # Another value: what has no answer may be there, and a value is sent once.
            self._rest(0.3)
            self._send([msgspec.structs.replace(r, value=f"{r.value}-again") for r in missing])

    def _is_stuck_after(self, answers: Sequence[DeliveryReport]) -> bool:
        return (
            self._plan.kind is ProducerKind.IDEMPOTENT
            and self._plan.library in STUCK_AFTER_REFUSAL
            and any(answer.refused for answer in answers)
        )

    def _transaction(self, records: Sequence[PlannedRecord], *, commits: bool) -> None:
        if (producer := self._with_producer()) is None:
            return
        operation = self._log.begin("txn", sent=_sent(records))
        attempt = _Attempt(producer)
        attempt.make(records, {}, None, commits=commits)
        operation.end(attempt.outcome, sent=_sent(records, attempt.answers), error=attempt.error)
        if attempt.is_over:
            self._renew_producer()

    def _transform(self, step: PlannedStep) -> None:
        """Poll, and send what was polled on in a transaction with the positions."""
        consumer, producer = self._with_consumer(), self._with_producer()
        if consumer is None or producer is None:
            return
        self._gathered = []
        self._poll(step.most)
        gathered, self._gathered = self._gathered, None
        if not gathered:
            return
        records = [
            PlannedRecord(self._plan.output, r.partition, f"{step.value}-{place}")
            for place, r in enumerate(gathered)
        ]
        positions = {(r.topic, r.partition): r.offset + 1 for r in gathered}
        operation = self._log.begin("txn", sent=_sent(records))
        attempt = _Attempt(producer)
        attempt.make(records, positions, consumer, commits=step.commits)
        operation.end(
            attempt.outcome,
            sent=_sent(records, attempt.answers),
            polled=_polled(gathered),
            committed=_positions(positions),
            group=self._plan.group,
            error=attempt.error,
        )
        if attempt.is_over:
            self._renew_producer()
        if attempt.outcome != "ok":
            self._back_to(gathered)

    def _back_to(self, gathered: Sequence[PolledRecord]) -> None:
        """After a transaction that did not commit: what it had read is read again."""
        first: dict[Partition, int] = {}
        for record in gathered:
            first.setdefault((record.topic, record.partition), record.offset)
        for partition, offset in first.items():
            self._seek_to(partition, offset)

    def _fence(self, ids: Sequence[str]) -> None:
        """A producer of each transactional id: what the dead have left open is aborted."""
        for transactional_id in ids:
            plan = msgspec.structs.replace(self._plan, transactional_id=transactional_id)
            make = producer_of(plan.library)
            producer = self._until_made(partial(make, self._job.bootstrap, plan))
            if producer is not None:
                with suppress(ClientProblem):
                    producer.close()

    # --- consumers --------------------------------------------------------------------------------

    def polled(self, records: Sequence[PolledRecord]) -> None:
        """See `ConsumerListener`."""
        for record in records:
            partition = record.topic, record.partition
            self._positions[partition] = self._read[partition] = record.offset + 1
        if self._gathered is None:
            self._log.event("poll", polled=_polled(records))
        else:
            self._gathered += records

    def assigned(self, partitions: Sequence[Partition]) -> None:
        """See `ConsumerListener`."""
        if self._gathered:  # before this, so it is logged before this
            self._log.event("poll", polled=_polled(self._gathered))
            self._gathered = []
        kept = set(partitions)
        self._positions = {p: at for p, at in self._positions.items() if p in kept}
        self._log.event("assign", assigned=[key_of(*partition) for partition in partitions])

    def _subscribe(self) -> None:
        if (consumer := self._with_consumer()) is None:
            return
        self.assigned(())
        self._log.event("subscribe")
        with suppress(ClientProblem):
            consumer.subscribe(self._plan.topics, self)

    def _assign(self) -> None:
        if (consumer := self._with_consumer()) is None:
            return
        everything = partitions_of(self._plan)
        self._until_made(lambda: _done(consumer, lambda: consumer.assign(everything)))
        self.assigned(everything)

    def _poll(self, most: int) -> bool:
        """Whether the consumer could be asked."""
        if (consumer := self._with_consumer()) is None:
            return False
        try:
            consumer.poll(most, POLL_S, self)
        except ClientProblem as problem:
            self._log.event("poll", kind="info", error=str(problem))
        return True

    def _commit(self) -> None:
        if (consumer := self._with_consumer()) is None or not self._positions:
            return
        positions = dict(self._positions)
        fields = {"committed": _positions(positions), "group": self._plan.group}
        operation = self._log.begin("commit", **fields)
        try:
            consumer.commit(positions)
        except ClientProblem as problem:
            operation.end("info", **fields, error=str(problem))
        else:
            operation.end("ok", **fields)

    def _fetch(self) -> None:
        if (consumer := self._with_consumer()) is None:
            return
        start = time.monotonic_ns()
        try:
            positions = consumer.fetch(partitions_of(self._plan))
        except ClientProblem:
            return
        self._log.event("fetch", start=start, fetched=_positions(positions), group=self._plan.group)

    def _seek(self, back: int) -> None:
        for partition, position in sorted(self._read.items()):
            self._seek_to(partition, max(0, position - back))

    def _seek_to(self, partition: Partition, offset: int) -> None:
        assert self._consumer is not None
        try:
            self._consumer.seek(partition, offset)
        except ClientProblem:
            return  # it is another member's by now
        self._positions.pop(partition, None)
        self._log.event("seek", moved=[key_of(*partition)])

    def _drain(self, most: int) -> None:
        """Read until the last value of each partition has come."""
        open_ = set(partitions_of(self._plan))
        until = time.monotonic() + DRAIN_S
        while open_ and not self._ended and time.monotonic() < until:
            gathered: list[PolledRecord] = []
            self._gathered = gathered
            if not self._poll(most):
                return
            self._gathered = None
            if gathered:
                self._log.event("poll", polled=_polled(gathered))
            open_ -= {(r.topic, r.partition) for r in gathered if r.value.startswith(END)}


class _Attempt:
    """A transaction, and what is known of its outcome."""

    def __init__(self, producer: ProducerPort) -> None:
        self._producer = producer
        self.answers: list[DeliveryReport] = []
        self.outcome = "info"
        self.error = ""
        self.is_over = False
        """Whether the producer cannot make another one."""

    def make(
        self,
        records: Sequence[PlannedRecord],
        positions: Mapping[Partition, int],
        consumer: ConsumerPort | None,
        *,
        commits: bool,
    ) -> None:
        """Send and commit, or abort: also where something failed."""
        tried = False
        try:
            self._producer.begin()
            self.answers = self._producer.send(records)
            failed = [answer.error for answer in self.answers if not answer.acknowledged]
            if failed:
                raise ClientProblem(failed[0])
            if consumer is not None:
                self._producer.send_offsets(positions, consumer)
            if commits:
                tried = True
                self._producer.commit()
                self.outcome = "ok"
                return
        except ClientProblem as problem:
            self.error = str(problem)
        try:
            self._producer.abort()
        except ClientProblem as problem:
            self.error = self.error or str(problem)
            self.is_over = True
        else:
            # A commit that was tried may have been decided, whatever was answered then.
            self.outcome = "info" if tried else "fail"


def _done(port: ConsumerPort, call: Callable[[], None]) -> ConsumerPort:
    call()
    return port


def _sent(
    records: Sequence[PlannedRecord], answers: Sequence[DeliveryReport] = ()
) -> list[dict[str, object]]:
    offsets = [answer.offset for answer in answers] or [None] * len(records)
    return [
        sent(r.topic, r.partition, r.value, offset)
        for r, offset in zip(records, offsets, strict=True)
    ]


def _parts(
    records: Sequence[PlannedRecord], answers: Sequence[DeliveryReport]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The records of each outcome, as a line."""
    pairs = list(zip(records, answers, strict=True))
    for outcome in ("ok", "fail", "info"):
        chosen = [(r, a) for r, a in pairs if _outcome(r, a) == outcome]
        if chosen:
            fields: dict[str, object] = {"sent": _sent(*map(list, zip(*chosen, strict=True)))}
            errors = {} if outcome == "ok" else {"error": chosen[0][1].error}
            yield outcome, {**fields, **errors}


def _outcome(record: PlannedRecord, answer: DeliveryReport) -> str:
    """The type of a record's line: `fail` only where the broker must have refused every try.

    After another error a try without an answer may have been appended. Some producers answer
    later sends with the error of an earlier one: of those records it says nothing.
    """
    if answer.acknowledged:
        return "ok"
    return "fail" if answer.refused and record.is_oversized else "info"


def _polled(records: Sequence[PolledRecord]) -> list[dict[str, object]]:
    return [sent(r.topic, r.partition, r.value, r.offset) for r in records]


def _positions(positions: Mapping[Partition, int]) -> list[dict[str, object]]:
    return [{"key": key_of(*p), "offset": at} for p, at in sorted(positions.items())]


def producer_of(library: str) -> Callable[[str, InstancePlan], ProducerPort]:
    """The producer of a library, which is imported when it is needed."""
    match library:
        case "confluent-kafka":
            from conformance.workload.librdkafka import LibrdkafkaProducer

            return LibrdkafkaProducer
        case "kafka-python":
            from conformance.workload.kafka_python import KafkaPythonProducer

            return KafkaPythonProducer
        case _:
            from conformance.workload.aiokafka_port import AiokafkaProducer

            return AiokafkaProducer


def consumer_of(library: str) -> Callable[[str, InstancePlan], ConsumerPort]:
    """The consumer of a library."""
    match library:
        case "confluent-kafka":
            from conformance.workload.librdkafka import LibrdkafkaConsumer

            return LibrdkafkaConsumer
        case "kafka-python":
            from conformance.workload.kafka_python import KafkaPythonConsumer

            return KafkaPythonConsumer
        case _:
            from conformance.workload.aiokafka_port import AiokafkaConsumer

            return AiokafkaConsumer


def main() -> None:
    """Run one client to the end of its plan, or until a signal ends it."""
    job = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=ClientJob)
    ended = StopSignal()
    with ExitStack() as stack:
        log = stack.enter_context(HistoryLog(Path(job.log), job.plan.process))
        log.event(CONFIGURE, configured=job.configured)
        WorkloadClient(job, log, ended).run()


if __name__ == "__main__":
    main()
