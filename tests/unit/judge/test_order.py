"""Which events may come next: one chain per process, messages and clocks between them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from conformance.errors import DataError
from conformance.judge.events import Clock, Event
from conformance.judge.order import Cut, Guarantee, Order, order_of


def on(process: str, source: str = "", **further: object) -> Event:
    return replace(Event(process=process, source=source or process), **further)  # type: ignore[arg-type]


def linearisations(order: Order, count: int) -> list[list[int]]:
    """Every order in which the events may have happened."""
    found: list[list[int]] = []

    def go(cut: Cut, path: list[int]) -> None:
        if len(path) == count:
            found.append(path)
        for event in order.ready(cut):
            go(order.after(cut, event), [*path, event])

    go(order.start, [])
    return found


def test_a_total_order_has_one_linearisation() -> None:
    events = [on("a"), on("b"), on("a")]
    assert linearisations(order_of(events, Guarantee.TOTAL), 3) == [[0, 1, 2]]


def test_of_two_processes_every_interleaving_is_possible() -> None:
    events = [on("a"), on("a"), on("b"), on("b")]
    found = linearisations(order_of(events, Guarantee.PROCESS), 4)
    assert len(found) == 6
    assert all(path.index(0) < path.index(1) and path.index(2) < path.index(3) for path in found)


def test_what_sent_a_message_came_before_what_received_it() -> None:
    sent, received = frozenset(["m"]), frozenset(["m", "from elsewhere"])
    events = [on("b", received=received), on("b"), on("a"), on("a", sent=sent)]
    assert linearisations(order_of(events, Guarantee.PROCESS), 4) == [[2, 3, 0, 1]]


def test_sequence_numbers_order_a_process_whatever_the_file_says() -> None:
    events = [on("a", sequence=2), on("a", sequence=1)]
    assert linearisations(order_of(events, Guarantee.PROCESS), 2) == [[1, 0]]
    with pytest.raises(DataError, match="sequence number 2"):
        order_of([on("a", sequence=2), on("a", sequence=2)], Guarantee.PROCESS)


@pytest.mark.parametrize(
    ("times", "skew", "count"),
    [((1.0, 2.0), 0.5, 1), ((1.0, 2.0), 1.0, 2), ((2.0, 1.0), 0.0, 1), ((1.0, 1.1), 0.0, 2)],
)
def test_clocks_order_what_is_further_apart_than_they_may_be_wrong(
    times: tuple[float, float], skew: float, count: int
) -> None:
    events = [on(name, clock=Clock(time, 0.1)) for name, time in zip("ab", times, strict=True)]
    found = linearisations(order_of(events, Guarantee.CLOCKS, skew), 2)
    assert len(found) == count
    if times[0] > times[1]:
        assert found == [[1, 0]]
    assert len(linearisations(order_of(events, Guarantee.PROCESS), 2)) == 2


def test_a_cycle_is_told_with_the_events_on_it() -> None:
    events = [
        on("a", "a:1", received=frozenset(["y"])),
        on("a", "a:2", sent=frozenset(["x"])),
        on("b", "b:1", received=frozenset(["x"])),
        on("b", "b:2", sent=frozenset(["y"])),
    ]
    with pytest.raises(DataError, match="before the other") as told:
        order_of(events, Guarantee.PROCESS)
    assert all(place in str(told.value) for place in ("a:1", "a:2", "b:1", "b:2"))
    with pytest.raises(DataError, match="sent twice"):
        order_of([on("a", sent=frozenset("x")), on("b", sent=frozenset("x"))], Guarantee.PROCESS)
