"""The logs of a partition side by side: one lane for each replica, one column between two cuts."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from html import escape

from conformance.inspect.abstraction import ReplicaState
from conformance.printable import printable

_COLUMN, _LANE, _LEFT, _TOP = 104, 40, 92, 28
_COLUMNS = 9
"""Columns that are drawn; the rest is left out on both sides."""
_COLOURS = 8


def logs(
    states: Mapping[str, ReplicaState],
    watermarks: Mapping[str, int | None],
    focus: tuple[int, int] | None = None,
) -> str:
    """An SVG. `focus` are the offsets that it is about; the newest columns if there are none."""
    cuts = _cuts(states, focus)
    if len(cuts) < 2:
        cuts = (cuts[0] if cuts else 0, (cuts[0] if cuts else 0) + 1)
    width = _LEFT + _COLUMN * (len(cuts) - 1) + 70
    height = _TOP + _LANE * len(states) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="logs side by side" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        *_focus(cuts, focus, height),
        *_scale(cuts),
    ]
    for number, (name, state) in enumerate(states.items()):
        parts += _lane(_TOP + _LANE * number, name, state, watermarks[name], cuts)
    return "".join((*parts, "</svg>"))


def _cuts(states: Mapping[str, ReplicaState], focus: tuple[int, int] | None) -> tuple[int, ...]:
    result = set() if focus is None else set(focus)
    for state in states.values():
        result |= {state.start, state.end}
        result |= {edge for run in state.runs for edge in (run.start, run.end)}
    every = sorted(result)
    if len(every) <= _COLUMNS + 1:
        return tuple(every)
    middle = len(every) if focus is None else bisect_left(every, focus[0])
    begin = max(0, min(middle - _COLUMNS // 2, len(every) - _COLUMNS - 1))
    return tuple(every[begin : begin + _COLUMNS + 1])


def _x(cuts: tuple[int, ...], offset: int) -> float:
    """Between two cuts in proportion; outside at the edge."""
    if offset <= cuts[0]:
        return _LEFT
    for number, (low, high) in enumerate(itertools.pairwise(cuts)):
        if offset <= high:
            return _LEFT + _COLUMN * (number + (offset - low) / (high - low))
    return _LEFT + _COLUMN * (len(cuts) - 1)


def _focus(cuts: tuple[int, ...], focus: tuple[int, int] | None, height: int) -> Iterator[str]:
    if focus is not None:
        left, right = _x(cuts, focus[0]), _x(cuts, focus[1])
        yield (
            f'<rect class="focus" x="{left:g}" y="18" width="{max(right - left, 3):g}" '
            f'height="{height - 26}"/>'
        )


def _scale(cuts: tuple[int, ...]) -> Iterator[str]:
    for number, offset in enumerate(cuts):
        x = _LEFT + _COLUMN * number
        yield f'<text class="dim" x="{x}" y="13" text-anchor="middle">{offset}</text>'


def _lane(
    y: float, name: str, state: ReplicaState, watermark: int | None, cuts: tuple[int, ...]
) -> Iterator[str]:
    shown = escape(printable(name if len(name) <= 10 else f"{name[:9]}…"))
    yield f'<text x="4" y="{y + 20}">{shown}</text>'
    right = _LEFT + _COLUMN * (len(cuts) - 1)
    yield f'<rect class="absent" x="{_LEFT}" y="{y + 5}" width="{right - _LEFT}" height="20"/>'
    for run in state.runs:
        if run.end <= cuts[0] or run.start >= cuts[-1]:
            continue
        left, end = _x(cuts, run.start), _x(cuts, run.end)
        colour = f"ep{run.epoch % _COLOURS}"
        yield (
            f'<rect class="run {colour}" x="{left:g}" y="{y + 5}" width="{end - left:g}" '
            f'height="20"/>'
        )
        if end - left >= 26:
            label = f"epoch {run.epoch}" if end - left >= 70 else f"{run.epoch}"
            yield (
                f'<text class="on" x="{(left + end) / 2:g}" y="{y + 19}" '
                f'text-anchor="middle">{label}</text>'
            )
    if watermark is not None and cuts[0] <= watermark <= cuts[-1]:
        x = _x(cuts, watermark)
        yield f'<line class="hw" x1="{x:g}" y1="{y + 1}" x2="{x:g}" y2="{y + 29}"/>'
        yield f'<text class="hwt" x="{x + 4:g}" y="{y + 5}">hw {watermark}</text>'
