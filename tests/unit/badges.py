"""The badges of README, made of what the project says of itself; they are files, not a service.

`python -m tests.unit.badges` writes them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from conformance.systems.kafka.factory import TRIED

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "badges"
_CHARACTER = 7
"""Pixels that a character takes at most, at the size below."""
_BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
  <title>{name}: {value}</title>
  <rect width="{width}" height="20" rx="3" fill="#3f51b5"/>
  <rect width="{split}" height="20" rx="3" fill="#444"/>
  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
    <text x="6" y="14">{name}</text>
    <text x="{at}" y="14">{value}</text>
  </g>
</svg>
"""


def badges() -> dict[str, str]:
    """The text of each badge, by its file's name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    values = {
        "license": project["license"],
        "python": project["requires-python"].removeprefix(">=") + "+",
        "java": "17+",
        "kafka": f"{TRIED[0]} to {TRIED[-1]}",
    }
    return {f"{name}.svg": _badge(name, value) for name, value in values.items()}


def _badge(name: str, value: str) -> str:
    split = len(name) * _CHARACTER + 12
    width = split + len(value) * _CHARACTER + 12
    return _BADGE.format(name=name, value=value, split=split, at=split + 6, width=width)


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in badges().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
