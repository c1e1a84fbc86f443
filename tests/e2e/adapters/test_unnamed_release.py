"""A release that a table does not name, and a build that claims a deviation to be mended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.deviations.declared import declare, deviating
from conformance.errors import UserError
from conformance.events import Event, StageFinished
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import deviations
from conformance.stages.presence import Presence
from conformance.stages.replay import replay
from conformance.stages.suite import cover
from conformance.verdict import Verdict
from tests.e2e.adapters.conftest import MODEL

pytestmark = pytest.mark.tlc

OF = "tests.e2e.adapters.releases:"


@pytest.fixture
def mended(tmp_path: Path) -> Iterator[Path]:
    """A file that claims that FORGETS is mended; what is declared ends with the test."""
    file = tmp_path / "ours.toml"
    file.write_text('mended = ["FORGETS"]\n', encoding="utf-8")
    yield file
    declare(None, "")


@pytest.mark.parametrize(
    ("release", "overridden", "presence"),
    [
        ("unnamed", ("FORGETS",), Presence.SEEN),
        ("unnamed_right", (), Presence.GONE),
    ],
)
def test_it_is_judged_by_what_its_paths_show_and_that_is_news(
    context: Context, release: str, overridden: tuple[str, ...], presence: Presence
) -> None:
    events: list[Event] = []
    context = replace(context, emit=events.append)
    bench = workbench(context, one_model(str(MODEL)), OF + release)
    assert bench.deviations == overridden

    result = replay(context, bench, cover(context, bench.model.name, bench.graph))
    [shown] = deviations(context, OF + release)

    assert result.verdict is Verdict.PASS
    assert (shown.presence, shown.expected, shown.as_expected) == (presence, None, True)
    [finished] = [
        event
        for event in events
        if isinstance(event, StageFinished) and event.stage == "deviations"
    ]
    assert finished.verdict is Verdict.PASS
    assert "which the table does not name" in finished.summary
    assert "the table says" not in finished.summary
    assert finished.figures["news"] == ["FORGETS"]


def test_the_path_of_a_release_is_replayed_once(context: Context) -> None:
    context = replace(context, presences=type(context.presences)())
    name = OF + "unnamed"
    [first] = deviations(context, name)
    [second] = deviations(context, name)
    assert first is second


def test_strictly_no_path_is_asked(context: Context) -> None:
    context = replace(context, strict=True, presences=type(context.presences)())
    assert workbench(context, one_model(str(MODEL)), OF + "unnamed").deviations == ()
    assert context.presences == type(context.presences)()


def test_a_build_passes_with_what_it_has_mended_and_fails_with_what_it_only_claims(
    context: Context, mended: Path
) -> None:
    # The version of both is 1.0, of which the table says that it forgets.
    for release, verdict, word in (
        ("mended", Verdict.PASS, "FORGETS gone (as claimed)"),
        ("first", Verdict.FAIL, "FORGETS seen (claimed to be mended)"),
    ):
        events: list[Event] = []
        fresh = replace(context, emit=events.append, presences=type(context.presences)())
        declare(str(mended), OF + release)
        assert workbench(fresh, one_model(str(MODEL)), OF + release).deviations == ()
        deviations(fresh, OF + release)
        [finished] = [event for event in events if isinstance(event, StageFinished)]
        assert (finished.verdict, finished.summary) == (verdict, word)


def test_a_claim_about_what_is_in_no_table_is_a_mistake(mended: Path) -> None:
    mended.write_text('mended = ["FORGET"]\n', encoding="utf-8")
    declare(str(mended), OF + "first")
    with pytest.raises(UserError, match=r"claims that FORGET is mended.*Name one.*FORGETS"):
        deviating(OF + "first")
