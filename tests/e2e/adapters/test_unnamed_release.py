"""A release that a table does not name, and a build that claims a deviation to be mended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replaced

from conformance.deviations.declared import declare, deviating
from conformance.deviations.table import Deviation
from conformance.errors import UserError
from conformance.events import Event, StageFinished
from conformance.stages.context import Context, bench_maker, one_model, workbench
from conformance.stages.deviations import deviations
from conformance.stages.presence import DeviationResult, Presence
from conformance.stages.replay import replay
from conformance.stages.suite import cover
from conformance.verdict import Verdict
from tests.e2e.adapters.conftest import MODEL
from tests.e2e.adapters.releases import FORGETS

pytestmark = pytest.mark.tlc

OF = "tests.e2e.adapters.releases:"
PATHS = Path(__file__).with_name("paths")


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


@dataclass(frozen=True)
class _Table:
    """A table of one's own for a release of the store."""

    table: tuple[Deviation, ...]
    folder: Path

    def version_of(self, _part: str) -> str:
        return "2.1"

    def deviations(self) -> tuple[Deviation, ...]:
        return self.table

    def file(self, name: str) -> Path:
        return self.folder / name


def _shown(context: Context, release: str, table: _Table, deviation: Deviation) -> DeviationResult:
    maker = bench_maker(context, OF + release, table, ())
    return type(context.presences)().result(OF + release, table, deviation, maker)


@pytest.mark.parametrize(
    ("release", "presence"), [("unnamed", Presence.SEEN), ("second", Presence.GONE)]
)
def test_a_path_that_was_made_with_another_deviation_tells_where_it_can_be_followed_without(
    context: Context, tmp_path: Path, release: str, presence: Presence
) -> None:
    saved = json.loads((PATHS / "forgets.itf.json").read_text(encoding="utf-8"))
    saved["#meta"]["kconform"]["deviations"] = ["OTHER"]
    (tmp_path / "forgets.itf.json").write_text(json.dumps(saved), encoding="utf-8")
    other = replaced(FORGETS, id="OTHER", seen=(), gone=("2.1",), path="")
    table = _Table((other, FORGETS), tmp_path)

    assert _shown(context, release, table, FORGETS).presence is presence


def test_where_the_other_deviation_leads_to_it_it_is_not_reachable(
    context: Context, tmp_path: Path
) -> None:
    saved = json.loads((PATHS / "forgets.itf.json").read_text(encoding="utf-8"))
    saved["#meta"]["kconform"]["deviations"] = ["OTHER"]
    # Without the other deviation nothing is there to be removed.
    saved["states"] = [saved["states"][0], saved["states"][-1]]
    (tmp_path / "forgets.itf.json").write_text(json.dumps(saved), encoding="utf-8")
    other = replaced(FORGETS, id="OTHER", seen=(), gone=("2.1",), path="")

    shown = _shown(context, "second", _Table((other, FORGETS), tmp_path), FORGETS)

    assert (shown.presence, shown.as_expected) == (Presence.UNREACHABLE, True)


def test_overrides_of_another_specification_are_left_out_of_a_path(
    context: Context, tmp_path: Path
) -> None:
    """Those of another part of the system concern the path's model, or they do not."""
    shutil.copy(PATHS / "forgets.itf.json", tmp_path)
    foreign = replaced(
        FORGETS,
        id="FOREIGN",
        part="client",
        specification="Elsewhere",
        overrides={"NoSuchOperator": "Store_Write"},
        seen=("2.1",),
        gone=(),
        path="",
    )
    table = _Table((foreign, FORGETS), tmp_path)
    assert _shown(context, "unnamed", table, FORGETS).presence is Presence.SEEN


def test_a_stage_in_which_no_path_could_be_driven_is_no_pass(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = []
    fresh = replace(context, emit=events.append, presences=type(context.presences)())
    monkeypatch.setattr(
        "conformance.stages.context.reason_against", lambda *_: "it cannot be driven"
    )
    [shown] = deviations(fresh, OF + "unnamed")
    assert shown.presence is Presence.NOT_DRIVEN
    [finished] = [event for event in events if isinstance(event, StageFinished)]
    assert finished.verdict is Verdict.INCONCLUSIVE
