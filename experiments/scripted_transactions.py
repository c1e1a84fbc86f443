"""Two transactions of one producer, and what is read of them: histories of a few operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from conformance.history.declaration import declared_histories
from conformance.history.judgement import HistoryJudgement
from conformance.history.rules import Answer, HistoryFormulas
from conformance.workload.client import ClientJob, WorkloadClient, producer_of
from conformance.workload.log import CONFIGURE, HistoryLog, sent
from conformance.workload.plan import (
    ClientRole,
    InstancePlan,
    PlannedAction,
    PlannedRecord,
    PlannedStep,
    ProducerKind,
)
from conformance.workload.ports import ProducerPort
from experiments.workload_runs import judgement_of

TOPIC = "orders"


def instance(role: ClientRole, partitions: int, *steps: PlannedStep) -> InstancePlan:
    """A client of confluent-kafka."""
    transactional = role is ClientRole.TRANSACTIONS
    return InstancePlan(
        process=str(role),
        client=str(role),
        role=role,
        kind=ProducerKind.TRANSACTIONAL if transactional else ProducerKind.IDEMPOTENT,
        library="confluent-kafka",
        starts=0.0,
        dies=None,
        steps=steps,
        topics=(TOPIC,),
        partitions=partitions,
        transactional_id="scripted" if transactional else "",
    )


def record(partition: int, value: str) -> PlannedRecord:
    """A record of the topic."""
    return PlannedRecord(TOPIC, partition, value)


class ScriptedTransactions:
    """A producer whose transactions are written down, and their log."""

    def __init__(self, bootstrap: str, log: HistoryLog, partitions: int) -> None:
        plan = instance(ClientRole.TRANSACTIONS, partitions)
        self._producer: ProducerPort = producer_of(plan.library)(bootstrap, plan)
        self._log = log

    def run(self, *steps: PlannedRecord | Callable[[], None], commits: bool) -> None:
        """A transaction: each record is sent and acknowledged, each function called, in turn."""
        records = [step for step in steps if isinstance(step, PlannedRecord)]
        operation = self._log.begin("txn", sent=[_sent(each) for each in records])
        self._producer.begin()
        acknowledged = []
        for step in steps:
            if isinstance(step, PlannedRecord):
                (answer,) = self._producer.send([step])
                acknowledged.append(_sent(step, answer.offset))
            else:
                step()
        if commits:
            self._producer.commit()
        else:
            self._producer.abort()
        operation.end("ok" if commits else "fail", sent=acknowledged)

    def close(self) -> None:
        """Close the producer."""
        self._producer.close()


def _sent(record: PlannedRecord, offset: int | None = None) -> Mapping[str, object]:
    return sent(record.topic, record.partition, record.value, offset)


def read_to_the_end(bootstrap: str, output: Path, partitions: int) -> None:
    """A last record in each partition, and a consumer that reads up to it."""
    last = tuple(record(partition, f"end-{partition}") for partition in range(partitions))
    _run_here(
        instance(ClientRole.CLOSER, partitions, PlannedStep(0.0, PlannedAction.SEND, last)),
        bootstrap,
        output,
    )
    drain = PlannedStep(0.0, PlannedAction.DRAIN, most=100)
    _run_here(instance(ClientRole.FINAL_READER, partitions, drain), bootstrap, output)


def _run_here(plan: InstancePlan, bootstrap: str, output: Path) -> None:
    """A client of a workload, in this process."""
    path = output / f"{plan.process}.ndjson"
    job = ClientJob(bootstrap, plan, str(path), {"isolation": plan.isolation})
    with HistoryLog(path, plan.process) as log:
        log.event(CONFIGURE, configured=job.configured)
        WorkloadClient(job, log, False).run()


def print_judgement(output: Path, version: int) -> HistoryJudgement:
    """What is said of the histories in a folder under a version of the protocol."""
    (history,) = declared_histories(
        sorted(output.glob("*.ndjson")), {"transaction_version": version}
    )
    judgement = judgement_of(history.files, HistoryFormulas.of(history.configuration))
    print(f"judged as transaction.version {version}: {judgement.verdict}")
    for tally in judgement.tallies.values():
        for answer in (Answer.BROKEN, Answer.ALLOWED):
            if tally.answers[answer] and tally.rule.decides:
                values = {str(fact.value) for fact in tally.cases[answer][0].facts}
                print(f"  {answer}: {tally.rule.name}, of {', '.join(sorted(values))}")
    return judgement
