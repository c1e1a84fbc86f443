"""`kconform cluster run --command`: what a command's end says of the run."""

from __future__ import annotations

import pytest

from conformance.cli.cluster import _verdict_of
from conformance.errors import UserError
from conformance.verdict import Verdict


@pytest.mark.parametrize(
    ("code", "verdict"), [(0, Verdict.PASS), (1, Verdict.FAIL), (3, Verdict.INCONCLUSIVE)]
)
def test_the_exit_code_is_the_verdict(code: int, verdict: Verdict) -> None:
    assert _verdict_of(f"python -c 'raise SystemExit({code})'", "127.0.0.1:9") is verdict


def test_the_address_is_filled_in() -> None:
    command = (
        "python -c 'import sys; sys.exit(sys.argv[1] != \"wire:127.0.0.1:9\")' wire:{bootstrap}"
    )
    assert _verdict_of(command, "127.0.0.1:9") is Verdict.PASS


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python -c 'raise SystemExit(2)'", "ended with 2"),
        ("no-such-program-anywhere", "cannot be started"),
        ("echo {topic}", "cannot be filled in"),
        ("", "is empty"),
    ],
)
def test_what_says_nothing_of_the_brokers_is_a_mistake(command: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        _verdict_of(command, "127.0.0.1:9")
