"""What verdicts come to together, and how a process says so."""

from __future__ import annotations

import pytest

from conformance.verdict import Verdict, merge

PASS, FAIL, INCONCLUSIVE, ERROR = Verdict


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        ([], INCONCLUSIVE),
        ([PASS, PASS], PASS),
        ([PASS, INCONCLUSIVE, PASS], INCONCLUSIVE),
        ([INCONCLUSIVE, ERROR, PASS], ERROR),
        ([PASS, ERROR, INCONCLUSIVE, FAIL], FAIL),
        ([FAIL, ERROR], FAIL),
    ],
)
def test_the_worst_verdict_decides_and_none_is_no_pass(
    verdicts: list[Verdict], together: Verdict
) -> None:
    assert merge(verdicts) is together
    assert merge(iter(reversed(verdicts))) is together


def test_exit_codes_are_those_that_the_documentation_gives() -> None:
    assert {verdict: int(verdict.exit_code) for verdict in Verdict} == {
        PASS: 0,
        FAIL: 1,
        ERROR: 2,
        INCONCLUSIVE: 3,
    }
