"""msgspec (0.22) prepares a type at its first use: two threads at once crash the process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "conformance"
THREADED = ("modelcheck", "replay", "stages", "systems")
"""Packages of which several threads run code side by side."""
_UNPREPARED = re.compile(r"msgspec\.(?:json|msgpack)\.decode\([^)]*\btype=")


@pytest.mark.parametrize("package", THREADED)
def test_what_threads_decode_has_a_decoder_of_the_module(package: str) -> None:
    """As `_DECODER` of modelcheck/outcome.py, which is made as the module is imported."""
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / package).rglob("*.py"))
        if _UNPREPARED.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
