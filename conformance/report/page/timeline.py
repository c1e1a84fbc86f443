"""When each stage ran, and beside what: where a run's time went, as one drawing."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.report.collect import Report, Span

_WIDTH, _ROW, _GAP = 1000.0, 18.0, 2.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One span as a rectangle, in the drawing's units; `told` says it in words."""

    kind: str
    told: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Spans in lanes: what runs at the same time is in different lanes."""

    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    kinds: tuple[tuple[str, float], ...]
    """Each stage's name and how many seconds its spans took together."""
    busy: tuple[float, ...]
    """By lane, the share of the whole time in which something ran in it, in percent."""
    width: float
    height: float


def time_line(report: Report) -> TimeLine | None:
    """The drawing of a run; None where there is nothing to see, as of a run with one stage."""
    spans = sorted(report.spans, key=lambda span: (span.start, -span.end))
    if len(spans) < 2:
        return None
    whole = max(report.seconds, *(span.end for span in spans), 0.001)
    lanes = _lanes(spans)
    scale, height = _WIDTH / whole, len(lanes) * (_ROW + _GAP)
    bars = [
        _bar(span, number * (_ROW + _GAP), scale)
        for number, lane in enumerate(lanes)
        for span in lane
    ]
    busy = [round(100 * sum(span.end - span.start for span in lane) / whole, 1) for lane in lanes]
    return TimeLine(
        tuple(bars), tuple(_ticks(whole, scale)), _kinds(spans), tuple(busy), _WIDTH, height
    )


def _lanes(spans: list[Span]) -> list[list[Span]]:
    """Each span in the first lane that is free when it starts; hundredths of a second overlap."""
    lanes: list[list[Span]] = []
    for span in spans:
        free = next((lane for lane in lanes if lane[-1].end <= span.start + 0.05), None)
        if free is None:
            lanes.append([span])
        else:
            free.append(span)
    return lanes


def _bar(span: Span, y: float, scale: float) -> Bar:
    seconds = span.end - span.start
    told = f"{span.stage} {span.subject}".strip() + f": {seconds:.1f} s, from {span.start:.1f} s"
    width = max(0.5, seconds * scale)
    return Bar(span.stage, told, round(span.start * scale, 1), y, round(width, 1), _ROW)


def _ticks(whole: float, scale: float) -> list[tuple[float, str]]:
    step = next((s for s in (1, 5, 15, 30, 60, 300, 900, 3600) if whole / s <= 12), 14_400)
    return [(round(at * scale, 1), f"{at} s") for at in range(0, int(whole) + 1, step)]


def _kinds(spans: list[Span]) -> tuple[tuple[str, float], ...]:
    totals: dict[str, float] = {}
    for span in spans:
        totals[span.stage] = totals.get(span.stage, 0.0) + span.end - span.start
    return tuple((name, round(total, 1)) for name, total in totals.items())
