"""A late EndTxn of version 1 ends the next transaction (KAFKA-17754), seen in a history alone.

    python -m experiments.late_end --kafka 4.4.0 -o DIR

librdkafka speaks version 1 of the protocol of transactions with every broker. A rule of the tap
(docs/tap.md) delays its first EndTxn; it asks again on another connection, and the transaction is
committed. The next transaction has sent its first record when the delayed request arrives, goes
on, and is aborted. The history is judged twice: as version 2, which forbids what was read, and as
what it is. The two verdicts are printed, with the operations of the finding.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from conformance.history.declaration import declared_histories
from conformance.history.rules import Answer, HistoryFormulas
from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.jars import chosen_jars
from conformance.kafka.schemas import Schemas
from conformance.kafka.tap import TapRule, TapThread
from conformance.kafka.tapped import tapped
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
from conformance.workload.ports import REQUEST_MS, ProducerPort
from experiments.workload_runs import judgement_of

TOPIC = "orders"
LATE_S = 3.0 * REQUEST_MS / 1000
"""By then the client has given up its connection and committed on another one."""
RULE = TapRule("delay", api="EndTxn", direction="request", seconds=LATE_S, times=1)


def instance(role: ClientRole, *steps: PlannedStep) -> InstancePlan:
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
        partitions=2,
        transactional_id="late" if transactional else "",
    )


def record(partition: int, value: str) -> PlannedRecord:
    """A record of the topic."""
    return PlannedRecord(TOPIC, partition, value)


class ScriptedTransactions:
    """Two transactions of one producer, and their log."""

    def __init__(self, bootstrap: str, log: HistoryLog, late: threading.Event) -> None:
        plan = instance(ClientRole.TRANSACTIONS)
        self._late = late
        self._producer: ProducerPort = producer_of(plan.library)(bootstrap, plan)
        self._log = log

    def run(self) -> None:
        """The first is committed twice; the second is aborted after the late request."""
        first = record(0, "first")
        operation = self._log.begin("txn", sent=[_sent(first)])
        self._producer.begin()
        (offset,) = [answer.offset for answer in self._producer.send([first])]
        self._producer.commit()
        operation.end("ok", sent=[_sent(first, offset)])
        second, third = record(0, "second"), record(1, "third")
        operation = self._log.begin("txn", sent=[_sent(second), _sent(third)])
        self._producer.begin()
        (at,) = [answer.offset for answer in self._producer.send([second])]
        self._late.wait(60.0)
        time.sleep(1.0)  # the coordinator handles it, and writes markers
        (later,) = [answer.offset for answer in self._producer.send([third])]
        self._producer.abort()
        operation.end("fail", sent=[_sent(second, at), _sent(third, later)])
        self._producer.close()


def _sent(record: PlannedRecord, offset: int | None = None) -> Mapping[str, object]:
    return sent(record.topic, record.partition, record.value, offset)


def made(kafka: str, output: Path) -> None:
    """Write the history."""
    jars = chosen_jars(kafka, None)
    schemas = Schemas.of(jars.classpath)
    ends, links = tapped([1])
    with ExitStack() as stack:
        late = threading.Event()

        def write(message: Mapping[str, object]) -> None:
            if message.get("rule") == RULE.action:
                late.set()

        taps = stack.enter_context(TapThread(schemas, links, write))
        cluster = Cluster(jars, output / "work", ClusterSettings(), schemas=schemas, endpoints=ends)
        stack.enter_context(cluster)
        cluster.create_topic(TOPIC, partitions=2)
        taps.add_rules([RULE])
        with HistoryLog(output / "transactions.ndjson", "transactions") as log:
            log.event(CONFIGURE, configured={"transaction_version": 1})
            ScriptedTransactions(cluster.bootstrap, log, late).run()
        last = tuple(record(partition, f"end-{partition}") for partition in (0, 1))
        run_here(
            instance(ClientRole.CLOSER, PlannedStep(0.0, PlannedAction.SEND, last)),
            cluster.bootstrap,
            output,
        )
        drain = PlannedStep(0.0, PlannedAction.DRAIN, most=100)
        run_here(instance(ClientRole.FINAL_READER, drain), cluster.bootstrap, output)


def run_here(plan: InstancePlan, bootstrap: str, output: Path) -> None:
    """A client of a workload, in this process."""
    path = output / f"{plan.process}.ndjson"
    job = ClientJob(bootstrap, plan, str(path), {"isolation": plan.isolation})
    with HistoryLog(path, plan.process) as log:
        log.event(CONFIGURE, configured=job.configured)
        WorkloadClient(job, log, False).run()


def judged(output: Path) -> None:
    """Print what is said of it."""
    for version in (2, 1):
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


def main() -> None:
    """Make the history and judge it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.4.0")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True)
    made(options.kafka, options.output)
    judged(options.output)


if __name__ == "__main__":
    main()
