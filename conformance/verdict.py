"""Verdicts and the rule that merges them: fail over error over inconclusive over pass."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from conformance.errors import ExitCode


class Verdict(StrEnum):
    """What a check says. Nothing to check is INCONCLUSIVE, never PASS."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"

    @property
    def exit_code(self) -> ExitCode:
        """The process exit code that stands for this verdict."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Verdict.PASS: ExitCode.PASS,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Verdict.ERROR: ExitCode.USAGE,
}

_SEVERITY = (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.PASS)


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of the verdicts; of none at all, INCONCLUSIVE.

    A violation that was seen stays a violation whatever else went wrong, as in Jepsen's
    rule (false over unknown over true).
    """
    seen = set(verdicts)
    return next((verdict for verdict in _SEVERITY if verdict in seen), Verdict.INCONCLUSIVE)
