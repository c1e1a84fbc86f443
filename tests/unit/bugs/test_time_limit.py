"""No test of a faulty copy runs for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformance.bugs.time_limit import ENDED

HANGS = """
import threading


def test_goes_round():
    while True:
        pass


def test_waits():
    threading.Event().wait()


def test_ends():
    assert True
"""
CANNOT_BE_TOLD = """
def test_catches_all():
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
"""


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        pytest.param(HANGS, 1, "2 failed, 1 passed", id="told"),
        pytest.param(CANNOT_BE_TOLD, ENDED, "", id="ended"),
    ],
)
def test_a_test_that_hangs_fails(tmp_path: Path, text: str, code: int, told: str) -> None:
    (tmp_path / "test_it.py").write_text(text)
    program = (
        "import sys, pytest; from conformance.bugs import time_limit as limit;"
        "limit.PROCESSOR_SECONDS, limit.CLOCK_SECONDS, limit.GRACE_SECONDS = 0.5, 8.0, 0.5;"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-p', limit.__name__,"
        " 'test_it.py']))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == code, run.stdout
    assert told in run.stdout
