"""What counts as raised by a system: everything but an interrupt and the harness's own limits."""

from __future__ import annotations

from asyncio import CancelledError

import pytest

from conformance.bugs.time_limit import TestHangs
from conformance.systems.protocol import raised_by_systems


def _is_a_divergence(error: BaseException) -> bool:
    try:
        try:
            raise error
        except raised_by_systems():
            return True
    except BaseException:  # noqa: BLE001  whatever was not taken for the system's
        return False


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError(), True),
        (SystemExit(0), True),
        (CancelledError(), True),
        (GeneratorExit(), True),
        (pytest.skip.Exception(), True),
        (pytest.fail.Exception(), True),
        (MemoryError(), True),
        (KeyboardInterrupt(), False),
        (TestHangs(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_system_ends_no_run(error: BaseException, expected: bool) -> None:
    assert _is_a_divergence(error) is expected
