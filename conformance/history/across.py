"""Transactions across partitions: visible in part, or reading from each other in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import rustworkx

from conformance.history.arrays import Array
from conformance.history.partition import TransactionFact
from conformance.history.rows import READ, SENT
from conformance.history.situations import HistoryFact, HistorySituation, SituationKind

MOST_IN_CIRCLE = 10
"""Transactions of a circle that is judged: the formula ranges over their subsets. A shortest circle
is looked for; a longer one than this is inconclusive."""


def unknown_transactions(facts: Iterable[TransactionFact]) -> Iterator[HistorySituation]:
    """A situation for each transaction of unknown outcome: its values, with one read of each."""
    by_order: dict[int, list[TransactionFact]] = {}
    for fact in facts:
        by_order.setdefault(fact.order, []).append(fact)
    for _, parts in sorted(by_order.items()):
        yield HistorySituation(SituationKind.TRANSACTION, _proving(parts))


def _proving(parts: Sequence[TransactionFact]) -> tuple[HistoryFact, ...]:
    """A value that was read, which proves the commit, and those that nobody read."""
    facts: list[HistoryFact] = []
    read = next((part for part in parts if part.read), None)
    if read is not None and read.read is not None:
        facts += [read.sent, read.read]
    for part in parts:
        if part.read is None:
            facts += [part.sent, *([part.passed] if part.passed else [])]
    return tuple(dict.fromkeys(facts))


def circles(reads_from: Array) -> list[tuple[int, ...]]:
    """Of each strongly connected set of transactions a shortest circle, as orders.

    Nearly all transactions read from earlier lines. A circle needs one that reads from a later
    line, and lies within the lines that such readings span. So the graph is built of those alone.
    """
    if not len(reads_from):
        return []
    readers, senders = reads_from[:, 0], reads_from[:, 1]
    back = readers < senders
    if not back.any():
        return []
    begins, ends = _merged(readers[back], senders[back])
    span_of = [np.searchsorted(begins, orders, side="right") - 1 for orders in (readers, senders)]
    inside = (span_of[0] == span_of[1]) & (span_of[0] >= 0)
    inside &= (readers <= ends[span_of[0]]) & (senders <= ends[span_of[1]])
    edges = reads_from[inside]
    nodes = np.unique(edges)
    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from([int(node) for node in nodes])
    pairs = np.searchsorted(nodes, edges)
    graph.add_edges_from_no_data([(int(a), int(b)) for a, b in pairs])
    components = rustworkx.strongly_connected_components(graph)
    return sorted(_shortest(graph, part) for part in components if len(part) > 1)


def _merged(begins: Array, ends: Array) -> tuple[Array, Array]:
    """Spans that overlap, as one."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    first = np.ones(len(begins), bool)
    first[1:] = begins[1:] > ends[:-1]
    last = np.concatenate((np.flatnonzero(first)[1:] - 1, [len(begins) - 1]))
    return begins[first], ends[last]


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


def circle_situation(facts: Iterable[HistoryFact], circle: Sequence[int]) -> HistorySituation:
    """The values by which the transactions of a circle read from each other."""
    own = [fact for fact in facts if fact.order in set(circle)]
    sent = {(f.key, f.value or ""): f for f in own if f.kind == SENT and f.value is not None}
    chosen: list[HistoryFact] = []
    for reader, sender in zip(circle, (*circle[1:], circle[0]), strict=True):
        for fact in own:
            origin = sent.get((fact.key, fact.value or ""))
            if fact.kind == READ and fact.order == reader and origin and origin.order == sender:
                chosen += [origin, fact]
                break
    return HistorySituation(SituationKind.CIRCLE, tuple(dict.fromkeys(chosen)))
