"""Which worker was at which stage when: where a run's time went, as one drawing."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.events import OWN_PROCESS
from conformance.report.collect import Report, Span

_WIDTH, _ROW, _GAP = 1000.0, 18.0, 2.0
_NAME_WIDTH = 70.0
"""To the left of the lanes."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One span as a rectangle, in the drawing's units; `told` says it in words."""

    kind: str
    description: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Lane:
    """One worker's row. `busy` is the share of the whole time in which it had work, in percent."""

    worker: str
    y: float
    busy: float


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Spans in lanes, one for each worker."""

    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    kinds: tuple[tuple[str, float], ...]
    """Each stage's name and how many seconds its spans took together."""
    width: float
    height: float
    names: float = _NAME_WIDTH
    """The width of the workers' names, to the left of the drawing."""


def time_line(report: Report) -> TimeLine | None:
    """The drawing of a run; None where there is nothing to see, as of a run with one stage."""
    spans = sorted(report.spans, key=lambda span: (span.start, -span.end))
    if len(spans) < 2:
        return None
    whole = max(report.seconds, *(span.end for span in spans), 0.001)
    lanes = [(worker, lane) for worker in _workers(spans) for lane in _lanes(spans, worker)]
    scale, height = _WIDTH / whole, len(lanes) * (_ROW + _GAP)
    bars = [
        _bar(span, number * (_ROW + _GAP), scale)
        for number, (_, lane) in enumerate(lanes)
        for span in lane
    ]
    rows = [
        Lane(worker, number * (_ROW + _GAP), _busy(lane, whole))
        for number, (worker, lane) in enumerate(lanes)
    ]
    return TimeLine(
        tuple(rows), tuple(bars), tuple(_ticks(whole, scale)), _kinds(spans), _WIDTH, height
    )


def _busy(lane: list[Span], whole: float) -> float:
    return round(100 * sum(span.end - span.start for span in lane) / whole, 1)


def _workers(spans: list[Span]) -> list[str]:
    """The command's own process first, then the others by their kind and number."""

    def order(worker: str) -> tuple[bool, str, int]:
        kind, _, number = worker.rpartition(" ")
        return (worker != OWN_PROCESS, kind, int(number) if number.isdecimal() else 0)

    return sorted({span.worker for span in spans}, key=order)


def _lanes(spans: list[Span], worker: str) -> list[list[Span]]:
    """The worker's spans in order. Hundredths of a second overlap; more than that is not hidden:
    a span that begins while the one before still runs gets a further lane of this worker."""
    lanes: list[list[Span]] = []
    for span in (span for span in spans if span.worker == worker):
        free = next((lane for lane in lanes if lane[-1].end <= span.start + 0.05), None)
        if free is None:
            lanes.append([span])
        else:
            free.append(span)
    return lanes


def _bar(span: Span, y: float, scale: float) -> Bar:
    seconds = span.end - span.start
    text = (
        f"{span.stage} {span.subject}".strip()
        + f": {seconds:.1f} s, from {span.start:.1f} s, by {span.worker}"
    )
    width = max(0.5, seconds * scale)
    return Bar(span.stage, text, round(span.start * scale, 1), y, round(width, 1), _ROW)


def _ticks(whole: float, scale: float) -> list[tuple[float, str]]:
    step = next((s for s in (1, 5, 15, 30, 60, 300, 900, 3600) if whole / s <= 12), 14_400)
    return [(round(at * scale, 1), f"{at} s") for at in range(0, int(whole) + 1, step)]


def _kinds(spans: list[Span]) -> tuple[tuple[str, float], ...]:
    totals: dict[str, float] = {}
    for span in spans:
        totals[span.stage] = totals.get(span.stage, 0.0) + span.end - span.start
    return tuple((name, round(total, 1)) for name, total in totals.items())
