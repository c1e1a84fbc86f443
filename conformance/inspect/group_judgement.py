"""Every group judged, each by the specification of its protocol."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.compute as pc

from conformance.inspect.classic_groups import ClassicGroups
from conformance.inspect.consumer_groups import ConsumerGroups
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import FindingNotes, UnjudgedSubject
from conformance.inspect.groups import (
    CLASSIC,
    CONSUMER,
    GroupLog,
    JudgedGroup,
    Topics,
    read_groups,
)
from conformance.inspect.history import MetadataHistory
from conformance.inspect.models import CLASSIC_GROUP, CONSUMER_GROUP
from conformance.inspect.reading.names import CONSUMER_OFFSETS
from conformance.modelcheck.specifications import Specifications


def judge_groups(
    whole: Evidence, evidence: Evidence, controller: MetadataHistory, specifications: Specifications
) -> tuple[JudgedGroup, ...]:
    """The groups of which `evidence` has records; `whole` has the checkpoints of all brokers."""
    topics, judged = Topics(controller), list[JudgedGroup]()
    classic: ClassicGroups | None = None
    consumer: ConsumerGroups | None = None
    for log in read_groups(evidence):
        if log.type == CLASSIC:
            classic = classic or ClassicGroups(specifications[CLASSIC_GROUP], topics)
            judged.append(classic.judge(log))
        elif log.type == CONSUMER:
            consumer = consumer or ConsumerGroups(
                specifications[CONSUMER_GROUP], topics, _cleaned(whole)
            )
            judged.append(consumer.judge(log))
        else:
            judged.append(_listed(log))
    return tuple(judged)


def _cleaned(evidence: Evidence) -> Mapping[tuple[str, int], int]:
    """By broker and partition of the offsets topic its cleaner's first dirty offset."""
    where = (pc.field("topic") == CONSUMER_OFFSETS) & (pc.field("kind") == "cleaner")
    rows = evidence.rows("checkpoints", where)
    return {(row["broker"], row["partition"]): row["offset"] for row in rows}


def _listed(log: GroupLog) -> JudgedGroup:
    """A share or streams group."""
    notes, kinds = FindingNotes(), sorted({record.type for record in log.records})
    why = f"no specification here has the protocol of its records ({', '.join(kinds)})"
    notes.unjudged.append(UnjudgedSubject(f"group {log.name}", "the group", why))
    return JudgedGroup(log.name, log.type, log.partition, log.broker, (), {}, notes)
