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

from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.jars import chosen_jars
from conformance.kafka.schemas import Schemas
from conformance.kafka.tap import TapRule, TapThread
from conformance.kafka.tapped import tapped
from conformance.workload.log import CONFIGURE, HistoryLog
from conformance.workload.ports import REQUEST_MS
from experiments.scripted_transactions import (
    TOPIC,
    ScriptedTransactions,
    print_judgement,
    read_to_the_end,
    record,
)

PARTITIONS = 2
LATE_S = 3.0 * REQUEST_MS / 1000
"""By then the client has given up its connection and committed on another one."""
RULE = TapRule("delay", api="EndTxn", direction="request", seconds=LATE_S, times=1)


def made(kafka: str, output: Path) -> None:
    """Write the history: the first transaction is committed twice, the second is aborted after the
    late request."""
    jars = chosen_jars(kafka, None)
    schemas = Schemas.of(jars.classpath)
    ends, links = tapped([1])
    with ExitStack() as stack:
        late = threading.Event()

        def write(message: Mapping[str, object]) -> None:
            if message.get("rule") == RULE.action:
                late.set()

        def arrives() -> None:
            late.wait(60.0)
            time.sleep(1.0)  # the coordinator handles it, and writes markers

        taps = stack.enter_context(TapThread(schemas, links, write))
        cluster = Cluster(jars, output / "work", ClusterSettings(), schemas=schemas, endpoints=ends)
        stack.enter_context(cluster)
        cluster.create_topic(TOPIC, partitions=PARTITIONS)
        taps.add_rules([RULE])
        with HistoryLog(output / "transactions.ndjson", "transactions") as log:
            log.event(CONFIGURE, configured={"transaction_version": 1})
            transactions = ScriptedTransactions(cluster.bootstrap, log, PARTITIONS)
            transactions.run(record(0, "first"), commits=True)
            transactions.run(record(0, "second"), arrives, record(1, "third"), commits=False)
            transactions.close()
        read_to_the_end(cluster.bootstrap, output, PARTITIONS)


def main() -> None:
    """Make the history and judge it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.4.0")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True)
    made(options.kafka, options.output)
    for version in (2, 1):
        print_judgement(options.output, version)


if __name__ == "__main__":
    main()
