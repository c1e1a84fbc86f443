"""An incident whose brokers go another way starts again with new ones, and not for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.kafka import incidents
from conformance.kafka.cluster import ClusterTimeout
from conformance.kafka.incidents import Incident, IncidentStage, make
from conformance.kafka.jars import KafkaJars
from conformance.kafka.schemas import Schemas


class NoCluster:
    """Stands where brokers would be: a script of these tests needs none."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> NoCluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the script comes to, attempt by attempt: a reason to start again, or a file's text."""
    left: list[str] = []

    def script(stage: IncidentStage) -> None:
        outcome = left.pop(0)
        stage.output.mkdir()
        (stage.output / "half").write_text(outcome)
        if outcome.startswith("late"):
            raise ClusterTimeout(f"{outcome}\nand a long log")

    monkeypatch.setattr(incidents, "Cluster", NoCluster)
    monkeypatch.setattr(Schemas, "of", lambda _: None)
    monkeypatch.setattr(incidents, "INCIDENTS", {"planned": Incident("as planned", script)})
    return left


JARS = KafkaJars("4.4.0", ())


def test_a_late_attempt_is_followed_by_another(outcomes: list[str], tmp_path: Path) -> None:
    outcomes += ["late by far", "came out"]
    told: list[str] = []
    make("planned", JARS, tmp_path / "out", tell=told.append)
    assert (tmp_path / "out" / "half").read_text() == "came out"
    assert told == ["attempt 2 of 4, with new brokers: late by far"]


def test_the_last_attempt_says_so_and_leaves_nothing(outcomes: list[str], tmp_path: Path) -> None:
    outcomes += [f"late {number}" for number in range(1, 6)]
    with pytest.raises(ClusterTimeout, match=r"did not happen in 4 attempts.*late 4"):
        make("planned", JARS, tmp_path / "out")
    assert outcomes == ["late 5"]
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_is_not_touched(outcomes: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exists already"):
        make("planned", JARS, tmp_path)
    assert outcomes == []
