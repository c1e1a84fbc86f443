"""The badges of README, made of what the project says of itself; they are files, not a service.

`python -m tests.unit.badges` writes them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from conformance.report.badge import badge
from conformance.systems.kafka.factory import TRIED

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "badges"


def badges() -> dict[str, str]:
    """The text of each badge, by its file's name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    values = {
        "license": project["license"],
        "python": project["requires-python"].removeprefix(">=") + "+",
        "java": "17+",
        "kafka": f"{TRIED[0]} to {TRIED[-1]}",
    }
    return {f"{name}.svg": badge(name, value) for name, value in values.items()}


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in badges().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
