"""The nightly report has the mutation score, and says when it is not to be relied on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import conformance
from conformance.errors import DataError
from conformance.events import Event, StageFinished, StageStarted
from conformance.stages.context import Context
from conformance.stages.mutation import digest, mutation
from conformance.verdict import Verdict

MODULES = ["conformance/verdict.py", "conformance/replay/engine.py"]


def score(**changed: object) -> dict[str, object]:
    return {
        "schema_version": 1,
        "tool": "mutmut 3",
        "modules": MODULES,
        "digest": digest(MODULES),
        "mutants": 1200,
        "noticed": 1150,
        "explained": 50,
        "unexplained": 0,
        "survivors": [],
    } | changed


def told(folder: Path, text: str) -> StageFinished:
    (folder / "mutation.json").write_text(text)
    events: list[Event] = []
    mutation(Context(emit=events.append), folder)
    finished = events[-1]
    assert isinstance(finished, StageFinished)
    assert (finished.stage, finished.subject) == ("mutation", "mutation.json")
    assert isinstance(events[0], StageStarted)
    assert events[0].subject == finished.subject
    return finished


def test_a_score_without_an_unexplained_survivor_passes(tmp_path: Path) -> None:
    finished = told(tmp_path, json.dumps(score()))
    assert finished.verdict is Verdict.PASS
    assert finished.summary == (
        "1,200 mutants of 2 modules: 1,150 noticed by tests, 50 equivalent or harmless"
    )
    assert finished.figures == {
        "mutants": 1200,
        "noticed": 1150,
        "explained": 50,
        "unexplained": 0,
        "modules": MODULES,
        "tool": "mutmut 3",
    }


OTHER_TEXT = "; of another text of these modules: measure again, or remove it"


@pytest.mark.parametrize(
    ("changed", "modules", "rest"),
    [
        ({"unexplained": 3000}, 2, ", 3,000 survived"),
        ({"digest": "00"}, 2, OTHER_TEXT),
        ({"modules": [*MODULES, "conformance/gone.py"], "digest": "00"}, 3, OTHER_TEXT),
        ({"unexplained": 3, "digest": "00"}, 2, f", 3 survived{OTHER_TEXT}"),
    ],
)
def test_a_score_that_is_not_to_be_relied_on_does_not_pass(
    tmp_path: Path, changed: dict[str, object], modules: int, rest: str
) -> None:
    finished = told(tmp_path, json.dumps(score(**changed)))
    assert finished.verdict is Verdict.INCONCLUSIVE
    counts = "1,150 noticed by tests, 50 equivalent or harmless"
    assert finished.summary == f"1,200 mutants of {modules} modules: {counts}{rest}"


def test_a_score_of_no_mutant_does_not_pass(tmp_path: Path) -> None:
    finished = told(tmp_path, json.dumps(score(mutants=0, noticed=0, explained=0)))
    assert finished.verdict is Verdict.INCONCLUSIVE
    assert finished.summary.startswith("0 mutants of 2 modules")


def test_without_a_score_there_is_no_stage(tmp_path: Path) -> None:
    events: list[Event] = []
    mutation(Context(emit=events.append), tmp_path)
    assert events == []


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_file_that_is_no_score_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"mutation\.json is not a mutation score") as caught:
        told(tmp_path, text)
    assert "again with `tox run -e mutation`, or remove it" in str(caught.value)


def test_a_digest_is_of_the_text_whatever_the_order() -> None:
    assert digest(MODULES) == digest(MODULES[::-1]) != digest(MODULES[:1])
    assert digest(MODULES) != digest(["conformance/gone.py"]) == digest([])
    root, modules = Path(conformance.__file__).parents[1], ["conformance/stages/mutation.py"]
    assert digest(modules) == hashlib.sha256((root / modules[0]).read_bytes()).hexdigest()
