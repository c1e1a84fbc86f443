"""The judge and brute force say the same of small recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.judge.__main__ import compared, systems


@pytest.mark.tlc
def test_no_small_recording_is_judged_wrongly(tmp_path: Path) -> None:
    tally, problems = compared(systems(tmp_path), 1500, seed=7)
    assert not problems, problems[0]
    assert tally["pass"] > 500
    assert tally["fail"] > 300
