"""The nightly report has the mutation score, and says when it is not to be relied on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.errors import DataError
from conformance.events import Event, StageFinished
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
    assert finished.stage == "mutation"
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


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"unexplained": 3}, ", 3 survived"),
        ({"digest": "00"}, "of another text"),
        ({"modules": [*MODULES, "conformance/gone.py"], "digest": "00"}, "of another text"),
        ({"mutants": 0}, "0 mutants"),
    ],
)
def test_a_score_that_holds_nothing_does_not_pass(
    tmp_path: Path, changed: dict[str, object], words: str
) -> None:
    finished = told(tmp_path, json.dumps(score(**changed)))
    assert finished.verdict is Verdict.INCONCLUSIVE
    assert words in finished.summary


def test_without_a_score_there_is_no_stage(tmp_path: Path) -> None:
    events: list[Event] = []
    mutation(Context(emit=events.append), tmp_path)
    assert events == []


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_file_that_is_no_score_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"mutation\.json is not a mutation score"):
        told(tmp_path, text)


def test_a_digest_is_of_the_text_whatever_the_order() -> None:
    assert digest(MODULES) == digest(MODULES[::-1]) != digest(MODULES[:1])
