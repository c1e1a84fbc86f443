"""Transactions across partitions: visible in part, or reading from each other in a circle.

What partitions know of transactions lies in files by bucket of transactions, so each bucket is one
item of work. Circles are looked for among the few readings that may be part of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import rustworkx

from conformance.history.arrays import Array, distinct_groups, numbers_of
from conformance.history.columns import (
    EXAMPLES,
    CountedSituations,
    PartitionRows,
    SituationCounts,
)
from conformance.history.neighbours import PartitionContext
from conformance.history.rows import READ, SENT
from conformance.history.shuffle import by_key, read_part, together
from conformance.history.situations import HistorySituation, SituationFact, SituationKind
from conformance.history.values import PASSES, READINGS, READS, SENDS, TRANSACTION_ROWS

MOST_IN_CIRCLE = 10
"""Transactions of a circle that is judged: the formula ranges over their subsets. A shortest circle
is looked for; a longer one than this is inconclusive."""
MOST_READINGS = 2_000_000
"""Readings that may be part of a circle and are looked at, about 300 MB of them; more are
inconclusive."""
NO_SPANS = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class TransactionTask:
    """What all buckets of transactions have in common."""

    unknown: tuple[Path, ...]
    readings: tuple[Path, ...]
    context: PartitionContext


@dataclass(frozen=True, slots=True)
class TransactionBucket:
    """What is asked of the transactions of a bucket."""

    situations: tuple[CountedSituations, ...]
    readers: int
    """Transactions that read what others sent."""


def judge_transactions(task: TransactionTask, bucket: int) -> TransactionBucket:
    """The transactions of unknown outcome, and how many have read from others."""
    counts = SituationCounts()
    rows = together(read_part(task.unknown, bucket), TRANSACTION_ROWS)
    if len(rows):
        _count_unknown(rows, task.context, counts)
    readers = [
        numbers_of(piece.column("reader")).copy() for piece in read_part(task.readings, bucket)
    ]
    return TransactionBucket(counts(), len(np.unique(np.concatenate([NO_SPANS[:, 0], *readers]))))


def _count_unknown(rows: pa.Table, context: PartitionContext, counts: SituationCounts) -> None:
    """A situation for each transaction: its values, with one read of each."""
    sends = rows.filter(pa.array(numbers_of(rows.column("role")) == SENDS))
    orders, groups = np.unique(numbers_of(sends.column("of")), return_inverse=True)
    of_row = numbers_of(rows.column("of"))

    def example(group: int) -> HistorySituation:
        own = rows.filter(pa.array(of_row == orders[group])).unify_dictionaries()
        return HistorySituation(SituationKind.TRANSACTION, _proving(_parts(own, context)))

    traits = numbers_of(sends.column("trait")).astype(np.int64)
    for alike, count, chosen in distinct_groups(groups.astype(np.int64), traits, EXAMPLES):
        counts.add(SituationKind.TRANSACTION, alike, count, map(example, chosen.tolist()))


Part = dict[int, SituationFact]
"""What is known of a value, by role."""


def _parts(rows: pa.Table, context: PartitionContext) -> list[Part]:
    """Of each value of a transaction what is known, in the order in which they were sent."""
    parts: dict[tuple[str, int], Part] = {}
    for key, own in by_key(rows):
        roles = numbers_of(own.column("role"))
        partition = PartitionRows(key, own, context)
        for row, number in enumerate(partition.copy_for.tolist()):
            parts.setdefault((key, number), {})[int(roles[row])] = partition.fact(row)
    return sorted(parts.values(), key=lambda part: part[SENDS].place)


def _proving(parts: Sequence[Part]) -> tuple[SituationFact, ...]:
    """A value that was read, which proves the commit, and those that nobody read."""
    facts: list[SituationFact] = []
    read = next((part for part in parts if READS in part), None)
    if read is not None:
        facts += [read[SENDS], read[READS]]
    for part in parts:
        if READS not in part:
            facts += [part[role] for role in (SENDS, PASSES) if role in part]
    return tuple(dict.fromkeys(facts))


# --- circles ------------------------------------------------------------------------------------


def spans_back(readings: pa.Table) -> Array:
    """The spans of time that lie between a reader's end and a later one of whom it has read.

    Nearly all transactions have read from such as ended earlier. A circle needs others too, and
    lies within the time that those span.
    """
    reader, sender = (numbers_of(readings.column(name)) for name in ("reader_time", "sender_time"))
    back = reader <= sender
    return merged(np.stack((reader[back], sender[back]), axis=1))


def merged(spans: Array) -> Array:
    """Spans that overlap, as one; in their order."""
    if not len(spans):
        return NO_SPANS
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    begins, ends = spans[:, 0], np.maximum.accumulate(spans[:, 1])
    first = np.ones(len(begins), bool)
    first[1:] = begins[1:] > ends[:-1]
    last = np.concatenate((np.flatnonzero(first)[1:] - 1, [len(begins) - 1]))
    return np.stack((begins[first], ends[last]), axis=1)


def readings_within(task: TransactionTask, spans: Array, bucket: int) -> Array:
    """Pairs of orders, at most one more than `MOST_READINGS`: of readings within one span."""
    pairs = [NO_SPANS]
    for piece in read_part(task.readings, bucket):
        reader, sender, reader_time, sender_time = (
            numbers_of(piece.column(name)) for name in READINGS.names
        )
        span = np.searchsorted(spans[:, 0], reader_time, side="right") - 1
        inside = (span >= 0) & (reader_time <= spans[span, 1])
        inside &= span == np.searchsorted(spans[:, 0], sender_time, side="right") - 1
        inside &= sender_time <= spans[span, 1]
        pairs.append(np.stack((reader[inside], sender[inside]), axis=1))
        if sum(map(len, pairs)) > MOST_READINGS:
            break
    return np.unique(np.concatenate(pairs), axis=0)[: MOST_READINGS + 1]


def circles(readings: Array) -> list[tuple[int, ...]]:
    """Of each strongly connected set of transactions a shortest circle, as orders."""
    nodes = np.unique(readings)
    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from([int(node) for node in nodes])
    pairs = np.searchsorted(nodes, readings)
    graph.add_edges_from_no_data([(int(a), int(b)) for a, b in pairs])
    components = rustworkx.strongly_connected_components(graph)
    return sorted(_shortest(graph, part) for part in components if len(part) > 1)


def _shortest(graph: rustworkx.PyDiGraph, component: Sequence[int]) -> tuple[int, ...]:
    """The shortest circle through its first transaction that has one."""
    inside = set(component)
    start = min(component, key=lambda node: int(graph[node]))
    before = {start: -1}
    queue = [start]
    for node in queue:
        for target in sorted(graph.successor_indices(node)):
            if target == start:
                path = []
                while node != -1:
                    path.append(int(graph[node]))
                    node = before[node]
                return tuple(reversed(path))
            if target in inside and target not in before:
                before[target] = node
                queue.append(target)
    raise AssertionError("a strongly connected component has a circle through each of its nodes")


def circle_situation(facts: Iterable[SituationFact], circle: Sequence[int]) -> HistorySituation:
    """The values by which the transactions of a circle read from each other."""
    own = [fact for fact in facts if fact.order in set(circle)]
    sent = {(f.key, f.value or ""): f for f in own if f.kind == SENT and f.value is not None}
    chosen: list[SituationFact] = []
    for reader, sender in zip(circle, (*circle[1:], circle[0]), strict=True):
        for fact in own:
            origin = sent.get((fact.key, fact.value or ""))
            if fact.kind == READ and fact.order == reader and origin and origin.order == sender:
                chosen += [origin, fact]
                break
    return HistorySituation(SituationKind.CIRCLE, tuple(dict.fromkeys(chosen)))


def operation_facts(
    parts: Iterable[Path], orders: frozenset[int], bucket: int
) -> Iterator[SituationFact]:
    """What these operations sent and read in a bucket."""
    wanted = np.array(sorted(orders), np.int64)
    for piece in read_part(parts, bucket):
        own = np.isin(numbers_of(piece.column("order")), wanted)
        own &= numbers_of(piece.column("kind")) <= READ
        for row in piece.filter(pa.array(own)).to_pylist():
            yield SituationFact(
                row["kind"],
                row["order"],
                row["place"],
                row["process"],
                row["key"],
                row["value"],
                row["offset"],
                row["outcome"],
                row["transactional"],
            )
