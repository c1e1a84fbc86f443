"""Which events happened before which: one chain per process, and what joins the chains."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, pairwise

import networkx as nx

from conformance.errors import DataError
from conformance.judge.events import Event

Cut = tuple[int, ...]
"""The number of events of each chain that have happened, a set closed under happened-before."""


class Guarantee(StrEnum):
    """The meaning of the order in which a recorder wrote."""

    TOTAL = "total"
    """The events happened in the order in which they were written."""
    PROCESS = "process"
    """Each process's events did; others are ordered by messages only."""
    CLOCKS = "clocks"
    """As `process`, and two readings of clocks that are far enough apart order events too."""


@dataclass(frozen=True, slots=True)
class Order:
    """The events as chains. `needs[e]` is the least cut after which event `e` may happen."""

    chains: tuple[tuple[int, ...], ...]
    needs: tuple[Cut, ...]
    places: tuple[tuple[int, int], ...]
    """Of each event, its chain and its place there."""

    @property
    def start(self) -> Cut:
        """The cut before all events."""
        return (0,) * len(self.chains)

    def ready(self, cut: Cut) -> Sequence[int]:
        """The events that may happen next."""
        if len(self.chains) == 1:
            return self.chains[0][cut[0] : cut[0] + 1]
        return [
            chain[done]
            for chain, done in zip(self.chains, cut, strict=True)
            if done < len(chain) and self._may_follow(cut, chain[done])
        ]

    def _may_follow(self, cut: Cut, event: int) -> bool:
        return all(have >= want for have, want in zip(cut, self.needs[event], strict=True))

    def after(self, cut: Cut, event: int) -> Cut:
        """The cut once the event has happened too."""
        chain, place = self.places[event]
        return (*cut[:chain], place + 1, *cut[chain + 1 :])


def order_of(events: Sequence[Event], guarantee: Guarantee, skew: float = 0.0) -> Order:
    """The order that a guarantee gives; `skew` is how far two processes' clocks may differ.

    DataError names the events of a cycle: they cannot all have happened before each other.
    """
    if guarantee is Guarantee.TOTAL:
        return total(len(events))
    chains = _chains(events)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(events)))
    for chain in chains:
        nx.add_path(graph, chain)
    graph.add_edges_from(_messages(events))
    if guarantee is Guarantee.CLOCKS:
        graph.add_edges_from(_readings(events, chains, skew))
    return _ordered(events, chains, graph)


@lru_cache(maxsize=64)
def total(events: int) -> Order:
    """The total order of a number of events, the order in which they were written."""
    numbers = range(events)
    return Order((tuple(numbers),), tuple((n,) for n in numbers), tuple((0, n) for n in numbers))


def _chains(events: Sequence[Event]) -> tuple[tuple[int, ...], ...]:
    chains: dict[str, list[int]] = {}
    for number, event in enumerate(events):
        chains.setdefault(event.process, []).append(number)
    for chain in chains.values():
        sequences = [events[number].sequence for number in chain]
        if None not in sequences:
            chain.sort(key=lambda number: events[number].sequence or 0)
            _check_sequences(events, chain)
    return tuple(map(tuple, chains.values()))


def _check_sequences(events: Sequence[Event], chain: Sequence[int]) -> None:
    for first, other in pairwise(chain):
        if events[first].sequence == events[other].sequence:
            raise DataError(
                f"two events of process {events[first].process!r} have the sequence number "
                f"{events[first].sequence}: {events[first].source} and {events[other].source}"
            )


def _messages(events: Sequence[Event]) -> Iterator[tuple[int, int]]:
    senders: dict[str, int] = {}
    for number, event in enumerate(events):
        for message in event.sent:
            if message in senders:
                raise DataError(
                    f"the message {message} is sent twice, by {events[senders[message]].source} "
                    f"and {event.source}"
                )
            senders[message] = number
    for number, event in enumerate(events):
        for message in event.received:
            if message in senders:  # else it was sent where nobody looked
                yield senders[message], number


def _readings(
    events: Sequence[Event], chains: Sequence[Sequence[int]], skew: float
) -> Iterator[tuple[int, int]]:
    """For each event and each other chain, the last event there that was certainly earlier."""
    for chain in chains:
        ends = [_ended(events[number]) for number in chain]
        # The earliest end from each place on: it never falls, so it can be searched.
        earliest = list(accumulate(reversed(ends), min))[::-1]
        for later, event in enumerate(events):
            if event.clock is None or event.process == events[chain[0]].process:
                continue
            begin = event.clock.time - event.clock.uncertainty - skew
            place = bisect_left(earliest, begin) - 1
            if place >= 0:
                yield chain[place], later


def _ended(event: Event) -> float:
    clock = event.clock
    return float("inf") if clock is None else clock.time + clock.uncertainty


def _ordered(
    events: Sequence[Event], chains: tuple[tuple[int, ...], ...], graph: nx.DiGraph[int]
) -> Order:
    places = {n: (c, p) for c, chain in enumerate(chains) for p, n in enumerate(chain)}
    needs: dict[int, list[int]] = {}
    try:
        for number in nx.topological_sort(graph):
            needed = [0] * len(chains)
            for before in graph.predecessors(number):
                chain, place = places[before]
                merged = map(max, needed, needs[before])
                needed = list(merged)
                needed[chain] = max(needed[chain], place + 1)
            needs[number] = needed
    except nx.NetworkXUnfeasible:
        raise _cycle(events, graph) from None
    numbers = range(len(events))
    return Order(chains, tuple(tuple(needs[n]) for n in numbers), tuple(places[n] for n in numbers))


def _cycle(events: Sequence[Event], graph: nx.DiGraph[int]) -> DataError:
    numbers = [edge[0] for edge in nx.find_cycle(graph)]
    listed = "; ".join(f"{events[n]} ({events[n].source or n})" for n in numbers[:10])
    return DataError(f"these events would each have happened before the other: {listed}")
