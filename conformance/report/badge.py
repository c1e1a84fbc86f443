"""A badge: a name and a value, as SVG."""

from __future__ import annotations

from html import escape

_CHARACTER = 7
"""Pixels that a character takes at most, at the size below."""
_BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
  <title>{name}: {value}</title>
  <rect width="{width}" height="20" rx="3" fill="{colour}"/>
  <rect width="{split}" height="20" rx="3" fill="#444"/>
  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
    <text x="6" y="14">{name}</text>
    <text x="{at}" y="14">{value}</text>
  </g>
</svg>
"""


def badge(name: str, value: str, colour: str = "#3f51b5") -> str:
    """The text of the file."""
    split = len(name) * _CHARACTER + 12
    width = split + len(value) * _CHARACTER + 12
    return _BADGE.format(
        name=escape(name), value=escape(value), colour=colour, split=split, at=split + 6,
        width=width,
    )  # fmt: skip
