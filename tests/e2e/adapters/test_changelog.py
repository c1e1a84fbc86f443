"""What behaves otherwise in one release of the store than in another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import load
from conformance.report.changelog import Changelog
from conformance.stages.changelog import SystemPair, changelog
from conformance.stages.context import Context, one_model
from conformance.verdict import Verdict
from tests.e2e.adapters.conftest import MODEL

pytestmark = pytest.mark.tlc

OF = "tests.e2e.adapters.releases:"


def compared(context: Context, old: str, new: str) -> Changelog:
    fresh = replace(context, presences=type(context.presences)())
    models = [one_model(str(MODEL)).driving()]
    return changelog(fresh, [SystemPair(OF + old, OF + new)], models, minutes=5)


@pytest.mark.parametrize(
    ("old", "new", "in_new"), [("first", "second", False), ("second", "first", True)]
)
def test_a_change_that_the_table_knows_has_its_shortest_path(
    context: Context, old: str, new: str, in_new: bool
) -> None:
    told = compared(context, old, new)
    [change] = told.changes
    assert (change.known, change.in_new, change.departs) == ("FORGETS", in_new, OF + "first")
    assert change.formulas == ("TypeOK", "EveryWriteHasItsVersion")
    assert change.rules == ("Write (Store.tla)",)
    # A key has to be there to be removed: nothing shorter tells the two apart.
    assert len(change.path) == 2
    assert change.path[-1].startswith("Remove(")
    assert told.verdict is Verdict.PASS
    [path] = told.paths
    assert {path.old, path.new} == {"seen", "gone"}


def test_a_change_that_no_table_knows_fails_and_has_a_path_of_both(context: Context) -> None:
    told = compared(context, "second", "fourth")
    assert told.changes
    for change in told.changes:
        assert change.path  # this release counts its requests, so a shorter path need not fail
    assert told.verdict is Verdict.FAIL
    [suite] = told.suites
    assert (suite.old, suite.new) == ("agrees", "departs in a way that no table knows")


@pytest.mark.parametrize("release", ["second", "first", "fourth"])
def test_a_release_has_not_changed_against_itself(context: Context, release: str) -> None:
    told = compared(context, release, release)
    assert told.changes == ()
    assert told.summary.startswith("nothing changed; 1 suite driven on both")


def test_the_command_writes_three_files_and_ends_with_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = {}
    for old, new in (("first", "second"), ("second", "fourth")):
        args = [OF + old, OF + new, "--model", str(MODEL), "-o", str(tmp_path / new), "--json"]
        result = CliRunner().invoke(load("changelog"), args)
        assert isinstance(result.exception, SystemExit | None)
        codes[new] = result.exit_code
        told = json.loads(result.stdout)["changelog"]
        assert told == json.loads((tmp_path / new / "changelog.json").read_text(encoding="utf-8"))
        for name in ("changelog.md", "changelog.html"):
            text = (tmp_path / new / name).read_text(encoding="utf-8")
            assert "What behaves otherwise in" in text
    assert codes == {"second": 0, "fourth": 1}
