"""A matrix of releases and models: who agrees, whose deviation is known, and what is new."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest

from conformance.config import Settings
from conformance.events import Event, Finding, StageFinished, StageStarted
from conformance.stages.context import Context, one_model
from conformance.stages.versions import STAGE, ModelOutcome, Trial, VersionCell, versions
from conformance.verdict import Verdict
from tests.e2e.adapters.conftest import MODEL, PYTHON
from tests.e2e.adapters.releases import FORGETS

pytestmark = pytest.mark.tlc

OF = "tests.e2e.adapters.releases:"
UNNAMED = ("unnamed", "unnamed_right")


@pytest.fixture(scope="module")
def told(context: Context, tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    events: list[Event] = []
    settings = Settings(output=str(tmp_path_factory.mktemp("out")), jobs=1)
    check = replace(context.check, jobs=1)
    context = replace(context, settings=settings, emit=events.append, check=check)
    systems = [f"{OF}{name}" for name in ("first", "second", "third", "fourth", *UNNAMED)]
    cells = versions(context, [one_model(str(MODEL))], systems)
    answers = {cell.system.removeprefix(OF): cell for cell in cells}
    assert {name: (cell.short, cell.verdict) for name, cell in answers.items()} == {
        "first": ("FORGETS", Verdict.PASS),
        "second": ("agrees", Verdict.PASS),
        "third": ("FORGETS", Verdict.FAIL),
        "fourth": ("NEW", Verdict.FAIL),
        "unnamed": ("FORGETS", Verdict.PASS),
        "unnamed_right": ("agrees", Verdict.PASS),
    }
    return events


def test_what_is_known_of_a_version_passes_and_what_is_not_fails(told: list[Event]) -> None:
    lines = [event.summary for event in told if isinstance(event, StageFinished)]
    driven = re.compile(r"[\d,]+ tests, [\d,]+ steps")
    told_of = [driven.sub("DRIVEN", line) for line in lines]
    assert [line for line in told_of if "agrees" in line or "deviates" in line] == [
        "deviates: FORGETS; DRIVEN",
        "agrees; DRIVEN",
        "deviates: FORGETS; not expected of this version: FORGETS; DRIVEN",
        "deviates in a new way",
        "deviates: FORGETS; DRIVEN",
        "agrees; DRIVEN",
    ]


def test_a_suite_is_driven_with_those_deviations_alone_that_account_for_the_divergence(
    told: list[Event],
) -> None:
    """All six without one, then those three of which FORGETS accounts for the divergence."""
    suites = [e.total for e in told if isinstance(e, StageStarted) and e.stage == STAGE]
    assert suites == [6, 3]


def test_only_what_is_new_is_a_finding(told: list[Event]) -> None:
    [finding] = [event for event in told if isinstance(event, Finding)]
    assert finding.title.endswith("action refused")


def test_a_system_that_cannot_take_a_model_is_left_out(context: Context) -> None:
    models = [one_model("replication/bench/kip320-fine-2b")]
    [cell] = versions(replace(context, settings=Settings()), models, [PYTHON])
    assert (cell.answer, cell.short, cell.verdict) == (ModelOutcome.LEFT_OUT, "-", Verdict.PASS)
    assert "needs the constant Keys" in cell.reason


def test_two_deviations_stand_in_one_cell() -> None:
    cell = VersionCell("kafka-3.8.1", "m", ModelOutcome.DEVIATES, ("A", "B"), ("B",))
    assert (cell.short, cell.verdict) == ("A B", Verdict.FAIL)
    assert cell.line() == "deviates: A, B; not expected of this version: B"


class Kept:
    """A store whose model has another text than when its cells were made."""

    def __init__(self) -> None:
        self.cells: dict[Trial, tuple[VersionCell, str]] = {}

    def cell(self, trial: Trial) -> VersionCell | None:
        return None

    def earlier(self, trial: Trial) -> tuple[VersionCell, str] | None:
        return self.cells.get(trial)

    def keep(self, cell: VersionCell, digest: str) -> None:
        self.cells[Trial(cell.system, cell.model)] = cell, digest


def test_another_text_of_the_same_graph_is_not_driven_again(context: Context) -> None:
    """Of a cell with deviations that is the graph which these override."""
    events: list[Event] = []
    context = replace(context, emit=events.append, check=replace(context.check, jobs=1))
    systems = [f"{OF}first", f"{OF}second"]
    store = Kept()

    def driven() -> list[str]:
        events.clear()
        cells = versions(context, [one_model(str(MODEL))], systems, store)
        assert [cell.short for cell in cells] == ["FORGETS", "agrees"]
        return [event.subject for event in events if isinstance(event, StageStarted)]

    assert "2 suites" in driven()
    digests = [digest for _, digest in store.cells.values()]
    assert len({*digests}) == 2
    assert driven() == []
    last = Trial(systems[1], next(iter(store.cells)).model)
    store.cells[last] = store.cells[last][0], "of another graph"
    assert "1 suites" in driven()
    assert [digest for _, digest in store.cells.values()] == digests


def test_a_candidate_may_break_a_formula_that_its_table_does_not_name(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the run of all models and releases: an overridden model is asked for its graph."""
    table = (msgspec.structs.replace(FORGETS, breaks=()),)
    monkeypatch.setattr("tests.e2e.adapters.releases.Release.deviations", lambda _self: table)
    context = replace(context, check=replace(context.check, jobs=1))
    (cell,) = versions(context, [one_model(str(MODEL))], [f"{OF}first"])
    assert cell.short == "FORGETS"
