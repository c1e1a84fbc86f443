"""Draws a scene as SVG: time runs downwards, a lane per process, messages are arrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape as escaped

from conformance.printable import printable
from conformance.story.picture import Sign
from conformance.story.scene import NOBODY, Arrow, LaneCell, Pill, Scene, SceneRow, Strip

_LEFT = 46
_LANE = 150
_WIDEST = 52
"""Characters of a text in a lane; longer ones are cut, and whole in the tooltip."""
_HEAD = 30
_BOX = 20
_STRIP = 26
_PILL = 17
_GAP = 14
_CELL = 17
_OVER = 12
"""The distance by which a box extends to the left of its lane."""
_NOTE = 16
_LONGEST_NOTE = 150
"""Characters of a line below the drawing; longer ones are cut, and whole in the tooltip."""
_COLOURS = 8
_TEXT = 6.1
_LARGE = 6.8
"""Widths of a character of the small and the usual font, in units of the drawing."""

STYLE = """
.kc-svg{font:11px ui-monospace,"DejaVu Sans Mono",Menlo,monospace;background:var(--bg,#fff)}
.kc-svg text{fill:var(--fg,#1c2430)}
.kc-svg .lane{stroke:var(--dim,#5c6877);stroke-width:1.2}
.kc-svg .leads{stroke:var(--accent,#0b5cad);stroke-width:4}
.kc-svg .down{stroke-dasharray:2 5}
.kc-svg .name{font-weight:700;font-size:13px}
.kc-svg .box{fill:var(--card,#f6f8fa);stroke:var(--dim,#5c6877)}
.kc-svg .election .box{stroke:var(--accent,#0b5cad);stroke-width:2}
.kc-svg .crash .box,.kc-svg .loss .box,.kc-svg .bad .box{stroke:var(--fail,#c62828);stroke-width:2}
.kc-svg .restart .box{stroke:var(--pass,#1a7f37);stroke-width:2}
.kc-svg .n{fill:var(--dim,#5c6877)}
.kc-svg .small{font-size:10px;paint-order:stroke;stroke:var(--bg,#fff);stroke-width:3px;
stroke-linejoin:round}
.kc-svg .arrow{stroke:var(--msg,#7a4fb5);stroke-width:1.5;fill:none}
.kc-svg .head{fill:var(--msg,#7a4fb5)}
.kc-svg .pending,.kc-svg .lost{stroke-dasharray:5 4}
.kc-svg .carried{fill:var(--msg,#7a4fb5)}
.kc-svg .cross{stroke:var(--fail,#c62828);stroke-width:2}
.kc-svg .cell{stroke:var(--bg,#fff)}
.kc-svg .entry{fill:#10151b;text-anchor:middle}
.kc-svg .empty{fill:none;stroke:var(--dim,#5c6877);stroke-dasharray:2 2}
.kc-svg .mark{stroke:var(--fg,#1c2430);stroke-width:2}
.kc-svg .now{fill:var(--sel,#dbeafe)}
.kc-svg .e0{fill:#8ecae6}.kc-svg .e1{fill:#ffb703}.kc-svg .e2{fill:#90be6d}.kc-svg .e3{fill:#f28482}
.kc-svg .e4{fill:#cdb4db}.kc-svg .e5{fill:#f6bd60}.kc-svg .e6{fill:#84dcc6}.kc-svg .e7{fill:#b5b8c4}
"""
"""Falls back to the light theme's colours where no page sets the variables."""

_DARK = """@media (prefers-color-scheme:dark){.kc-svg{--bg:#11161d;--fg:#e3e9f0;--dim:#95a3b3;
--card:#19212b;--pass:#4cc26a;--fail:#ff7b72;--accent:#6cb2ff;--msg:#c9a6ff;--sel:#1d3350}}"""

_SIGNS: dict[Sign, str] = {
    "election": "♛ ",
    "crash": "✖ ",
    "restart": "↻ ",
    "loss": "⚡ ",
    "": "",
}


def draw(scene: Scene, title: str) -> str:
    """The diagram as an SVG element, for a page that has the style."""
    return _Drawing(scene).svg(title)


def standalone(scene: Scene, title: str, notes: Sequence[str] = ()) -> str:
    """The diagram with its style, as a file that any viewer shows; `notes` are lines below it."""
    svg = _Drawing(scene, notes).svg(title)
    return svg.replace(">", f"><style>{STYLE}{_DARK}</style>", 1) + "\n"


@dataclass(frozen=True, slots=True)
class _RowPlace:
    """Where a row is: its top, and the middle of its action's box."""

    top: float
    middle: float
    bottom: float


class _Drawing:
    """The geometry of one scene."""

    def __init__(self, scene: Scene, notes: Sequence[str] = ()) -> None:
        self._scene, self._notes = scene, notes
        self._lefts = [float(_LEFT)]
        for lane in range(len(scene.lanes)):
            self._lefts.append(
                self._lefts[-1] + max(_LANE, *(_need(row, lane) for row in scene.rows))
            )
        self._colours = {entry: n % _COLOURS for n, entry in enumerate(scene.entries)}
        self._rows: list[_RowPlace] = []
        top = float(_HEAD)
        for row in scene.rows:
            height = _BOX + _GAP + max((_height(cell) for cell in row.cells), default=0)
            self._rows.append(_RowPlace(top, top + _GAP / 2 + _BOX / 2, top + height))
            top += height
        self._height = top + 12
        longest = max((min(len(line), _LONGEST_NOTE) for line in notes), default=0)
        self._width = max(self._lefts[-1], longest * _LARGE + 20)

    def svg(self, title: str) -> str:
        height = self._height + _NOTE * len(self._notes)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="kc-svg" role="img" '
            f'viewBox="0 0 {self._width:g} {height:g}" width="{self._width:g}" '
            f'height="{height:g}">',
            f"<title>{escape(title)}</title>",
            *self._bands(),
            *self._lanes(),
            *(part for arrow in self._scene.arrows for part in self._arrow(arrow)),
            *(part for n, row in enumerate(self._scene.rows) for part in self._row(n, row)),
            *(self._noted(n, line) for n, line in enumerate(self._notes, 1)),
            "</svg>",
        ]
        return "".join(parts)

    def _noted(self, number: int, line: str) -> str:
        """A line below the drawing; its indent says what it belongs to."""
        text = line.lstrip()
        x = 10 + _LARGE * (len(line) - len(text))
        return (
            f'<text class="note" x="{x:g}" y="{self._height + _NOTE * number - 6:g}">'
            f"{escape(_short(text, _LONGEST_NOTE))}<title>{escape(text)}</title></text>"
        )

    def _x(self, lane: int) -> float:
        return self._lefts[lane] + 24

    def _bands(self) -> Iterator[str]:
        """A band behind each row, which the page's slider makes visible."""
        for number, place in enumerate(self._rows):
            yield (
                f'<rect class="band" data-step="{number}" x="0" y="{place.top:g}" '
                f'width="{self._width:g}" height="{place.bottom - place.top:g}" fill="none"/>'
            )

    def _lanes(self) -> Iterator[str]:
        for lane, name in enumerate(self._scene.lanes):
            if name == NOBODY:
                continue
            x = self._x(lane)
            yield f'<text class="name" x="{x - 14:g}" y="19">{escape(name)}</text>'
            line = ""
            begun = float(_HEAD - 6)
            for row, place in zip(self._scene.rows, self._rows, strict=True):
                if row.cells[lane].line != line:
                    yield _line(x, begun, place.middle, line)
                    line, begun = row.cells[lane].line, place.middle
            yield _line(x, begun, self._height - 8, line)

    def _row(self, number: int, row: SceneRow) -> Iterator[str]:
        place = self._rows[number]
        kind = " ".join(filter(None, (row.sign, "bad" if row.bad else "")))
        yield f'<g class="{kind}">' if kind else "<g>"
        yield f'<text class="n" x="6" y="{place.middle + 4:g}">{number}</text>'
        if row.lane is not None:
            yield from self._box(row, self._x(row.lane), place)
        for lane, cell in enumerate(row.cells):
            yield from self._cell(cell, self._x(lane), place)
        yield "</g>"

    def _box(self, row: SceneRow, x: float, place: _RowPlace) -> Iterator[str]:
        text = _label(row)
        yield (
            f'<rect class="box" x="{x - _OVER:g}" y="{place.middle - _BOX / 2:g}" '
            f'width="{_boxed(row):g}" height="{_BOX}" rx="4"/>'
            f'<text x="{x - 6:g}" y="{place.middle + 4:g}">{escape(text)}'
            f"<title>{escape(row.text)}</title></text>"
        )

    def _cell(self, cell: LaneCell, x: float, place: _RowPlace) -> Iterator[str]:
        y = place.middle + _BOX / 2 + 3
        for pill in cell.pills:
            yield _note(pill, x + 10, y + 11)
            y += _PILL
        for strip in cell.strips:
            yield from self._strip(strip, x + 10, y + 3)
            y += _STRIP

    def _strip(self, strip: Strip, x: float, y: float) -> Iterator[str]:
        if strip.name:
            yield f'<text class="small" x="{x:g}" y="{y + 12:g}">{strip.name}</text>'
            x += 56
        if strip.start:
            yield f'<text class="small n" x="{x:g}" y="{y + 12:g}">{strip.start}..</text>'
            x += 26
        for number, entry in enumerate(strip.entries):
            at = x + number * _CELL
            yield (
                f'<rect class="cell e{self._colours[entry]}" x="{at:g}" y="{y:g}" '
                f'width="{_CELL}" height="16"/><text class="entry" x="{at + _CELL / 2:g}" '
                f'y="{y + 12:g}">{escape(_short(entry, 2))}</text>'
            )
        if not strip.entries:
            yield f'<rect class="empty" x="{x:g}" y="{y:g}" width="{_CELL}" height="16"/>'
        end = x + _CELL * max(1, len(strip.entries)) + 6
        for name, offset in strip.marks:
            at = x + _CELL * max(0, offset - strip.start)
            yield (
                f'<line class="mark" x1="{at:g}" y1="{y - 3:g}" x2="{at:g}" y2="{y + 19:g}"/>'
                f'<text class="small" x="{end:g}" y="{y + 12:g}">{escape(name)} {offset}</text>'
            )
            end += _TEXT * (len(name) + len(str(offset)) + 2)

    # --- arrows ---------------------------------------------------------------------------

    def _ends(self, arrow: Arrow) -> tuple[float, float, float, float]:
        x1, x2 = self._x(arrow.sender), self._x(arrow.receiver)
        y1 = self._rows[arrow.sent].middle
        if arrow.received is None:
            # Under way at the end: half of the way, down to the last row's end.
            return x1, y1, (x1 + x2) / 2, self._height - 12
        y2 = self._rows[arrow.received].middle
        if arrow.lost:
            return x1, y1, x1 + (x2 - x1) * 0.6, y1 + (y2 - y1) * 0.6
        row = self._scene.rows[arrow.received]
        if x1 < x2:
            x2 -= _OVER
        elif row.lane == arrow.receiver:
            x2 += _boxed(row) - _OVER
        return x1, y1, x2, y2

    def _arrow(self, arrow: Arrow) -> Iterator[str]:
        x1, y1, x2, y2 = self._ends(arrow)
        kind = (
            "arrow lost" if arrow.lost else "arrow pending" if arrow.received is None else "arrow"
        )
        yield f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'
        if arrow.lost:
            yield _cross(x2, y2)
        elif arrow.received is not None:
            yield _head(x1, y1, x2, y2)
            if arrow.received == arrow.sent:
                yield _head(x2, y2, x1, y1)


def _need(row: SceneRow, lane: int) -> float:
    """The width that one cell of a row needs."""
    cell = row.cells[lane]
    texts = [min(len(pill.text), _WIDEST) * _TEXT + 48 for pill in cell.pills]
    logs = [100 + _CELL * (len(s.entries) + 1) + (82 if s.name else 0) for s in cell.strips]
    own = [min(len(row.text) + 4, _WIDEST) * _LARGE + 40] if row.lane == lane else []
    return max((*texts, *logs, *own), default=0)


def _label(row: SceneRow) -> str:
    """The text in a row's box."""
    return _short(_SIGNS[row.sign] + row.text + (" ✗" if row.bad else ""), _WIDEST)


def _boxed(row: SceneRow) -> float:
    """The width of a row's box."""
    return len(_label(row)) * _LARGE + 12


def _note(pill: Pill, x: float, y: float) -> str:
    kind = "small carried" if pill.sends else "small"
    whole = f"<title>{escape(pill.text)}</title>" if len(pill.text) > _WIDEST else ""
    return (
        f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(_short(pill.text, _WIDEST))}'
        f"{whole}</text>"
    )


def _height(cell: LaneCell) -> float:
    return len(cell.strips) * _STRIP + len(cell.pills) * _PILL


def _line(x: float, top: float, bottom: float, kind: str) -> str:
    named = f"lane {kind}" if kind else "lane"
    return f'<line class="{named}" x1="{x:g}" y1="{top:g}" x2="{x:g}" y2="{bottom:g}"/>'


def _head(x1: float, y1: float, x2: float, y2: float) -> str:
    """The arrow's head at its end."""
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    base = (x2 - dx * 8, y2 - dy * 8)
    points = (
        (x2, y2),
        (base[0] - dy * 4, base[1] + dx * 4),
        (base[0] + dy * 4, base[1] - dx * 4),
    )
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon class="head" points="{text}"/>'


def _cross(x: float, y: float) -> str:
    return f'<path class="cross" d="M{x - 5:g} {y - 5:g}l10 10m0 -10l-10 10"/>'


def escape(text: str) -> str:
    """A text of a behaviour, escaped for SVG."""
    return escaped(printable(text))


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"
