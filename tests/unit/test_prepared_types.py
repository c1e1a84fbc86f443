"""msgspec (0.22) prepares a type at its first use: two threads at once crash the process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THREADED = ("modelcheck", "replay", "stages", "systems")
"""Packages of which several threads run code side by side."""
_UNPREPARED = re.compile(r"msgspec\.(?:json|msgpack)\.decode\([^)]*\btype=")
PROGRAM = """
import sys, threading, types
from conformance.conversion import convert

sys.setswitchinterval(1e-6)
SOURCE = '''
from __future__ import annotations
import msgspec
class Part(msgspec.Struct): number: int; names: list[str] = []
class Whole(msgspec.Struct): part: Part; parts: dict[str, Part] = {}; other: int | None = None
'''
for number in range(1000):
    module = types.ModuleType(f"types_{number}")
    sys.modules[module.__name__] = module
    exec(SOURCE, module.__dict__)
    together = threading.Barrier(2)
    def run():
        together.wait()
        assert convert({"part": {"number": 1}}, module.Whole).part.number == 1
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.parametrize("package", THREADED)
def test_what_threads_decode_has_a_decoder_of_the_module(package: str) -> None:
    """As `_DECODER` of modelcheck/outcome.py, which is made as the module is imported."""
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "conformance" / package).rglob("*.py"))
        if _UNPREPARED.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_two_threads_meet_a_type_at_the_same_time() -> None:
    """msgspec.convert itself ends the process with a segmentation fault here (0.22.0)."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_converted_in_another_way() -> None:
    calls = re.compile(r"\bmsgspec\.convert\(")
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "conformance").rglob("*.py")
        if calls.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"conformance/conversion.py"}
