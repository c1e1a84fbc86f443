"""What the table of TLC's own suite calls an answer of ours."""

from __future__ import annotations

import pytest

from tests.differential.searched import Answer, Outcome
from tests.differential.tla.tlc_suite import Reference, compare

NONE = frozenset[tuple[int, int]]()


@pytest.mark.parametrize(
    ("expected", "ours", "kind"),
    [
        (Reference(0, frozenset({(3, 2)})), Answer(Outcome.SUCCESS, "", 3, 2), "agree"),
        (Reference(0, frozenset({(3, 2)})), Answer(Outcome.SUCCESS, "", 4, 2), "differ"),
        (Reference(13, NONE), Answer(Outcome.PROPERTY, "Live"), "agree"),
        (Reference(0, NONE), Answer(Outcome.PROPERTY, "Live"), "differ"),
        (Reference(13, NONE), Answer(Outcome.SUCCESS, "", 3, 2, ("Live",)), "unjudged"),
        (Reference(13, NONE), Answer(Outcome.SUCCESS, "", 3, 2), "differ"),
        (Reference(151, NONE), Answer(Outcome.SUCCESS), "agree"),
        (Reference(151, NONE), Answer(Outcome.SUCCESS, "", 2, 1), "differ"),
        (Reference(255, NONE, bounds="too large"), Answer(Outcome.SUCCESS, "", 2, 1), "bounds"),
        (Reference(0, NONE), Answer(Outcome.UNSUPPORTED, "AssertError"), "refused"),
        (Reference(0, NONE), Answer(Outcome.CRASH, "KeyError"), "crashed"),
    ],
)
def test_an_answer_has_its_kind(expected: Reference, ours: Answer, kind: str) -> None:
    assert compare(expected, ours).kind == kind
