"""Which deviations a release has that the table does not name, where two paths need each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.deviations.table import Deviation, DeviationSeverity
from conformance.registry import BUILT_IN
from conformance.replay.engine import Divergence, PathResult
from conformance.replay.saved import SavedDivergence
from conformance.stages import presence
from conformance.stages.presence import BenchMaker, PresenceRecord
from conformance.story.kind import BehaviourKind

NEEDS = {"one": "other", "other": "one"}
"""By deviation, the one without which the specification does not allow its path."""
SYSTEM = BUILT_IN["delayed"]


@dataclass(frozen=True)
class Subject:
    """A release after one that is in the table."""

    folder: Path
    before: bool
    """Whether that one has the deviations."""

    def version_of(self, _part: str) -> str:
        return "4.5.0"

    def deviations(self) -> tuple[Deviation, ...]:
        tried = {"seen" if self.before else "gone": ("4.4.0",)}
        return tuple(
            Deviation(
                id=name,
                title=name,
                severity=DeviationSeverity.HARMLESS,
                overrides={"Guard": "Kafka_Guard"},
                path=f"{name}.itf.json",
                **tried,
            )
            for name in NEEDS
        )

    def file(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture
def paths(tmp_path: Path) -> Path:
    for name, needed in NEEDS.items():
        about = {"model": name, "system": SYSTEM, "key": "", "deviations": [needed]}
        states = [{"x": 0}, {"#meta": {"action": "Act"}, "x": 1}]
        trace = {"#meta": {"format": "ITF", "kconform": about}, "vars": ["x"], "states": states}
        (tmp_path / f"{name}.itf.json").write_text(json.dumps(trace), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("before", [True, False], ids=["had both", "had neither"])
def test_of_two_paths_that_need_each_other_one_is_judged_by_the_release_before(
    paths: Path, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow(bench: object, initial: object, actions: tuple[object, ...]) -> PathResult:
        saved, by = bench  # type: ignore[misc]
        followed.append((saved.model, [each.id for each in by]))
        if NEEDS[saved.model] not in followed[-1][1]:
            return PathResult(0, disabled="Act")
        departs = Divergence(BehaviourKind.NOT_ALLOWED, (0,), saved.actions, ((0,),), (), {})
        return PathResult(1, divergence=departs)

    def bench(saved: SavedDivergence, by: Sequence[Deviation]) -> object:
        return saved, by

    followed: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(presence, "follow", follow)
    maker = BenchMaker(bench, lambda _saved: "")  # type: ignore[arg-type]
    subject = Subject(paths, before)

    standing = PresenceRecord().standing(SYSTEM, subject, "Spec", maker)

    assert {each.id for each in standing} == ({*NEEDS} if before else set())
    # The first path asks for the second, which takes the first for what it was.
    assert followed == [
        ("other", ["one"] if before else []),
        ("one", ["other"] if before else []),
    ]
