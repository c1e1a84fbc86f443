"""How Spark is started: nothing is, for a double stands where the JVM would be launched."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from conformance.errors import EnvironmentProblem
from conformance.spark import session

OURS, OTHER = sys.executable, "/opt/other/bin/python"


@dataclass(frozen=True)
class Launch:
    """What the JVM would be started with."""

    python: str | None
    java_options: str


def launched(
    monkeypatch: pytest.MonkeyPatch,
    master: str | None = None,
    *,
    given: str = "",
    steps: int | None = None,
) -> Launch:
    """The start of a session; `given` is the user's PYSPARK_PYTHON (empty: not set)."""
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    seen: list[Launch] = []

    def launch(conf: SparkConf, _streams: object) -> None:
        options = conf.get("spark.driver.extraJavaOptions", "")
        seen.append(Launch(os.environ.get("PYSPARK_PYTHON"), options or ""))
        raise OSError("no JVM in this test")

    # A copy: what a session exports lives as long as the process.
    monkeypatch.setattr(os, "environ", surroundings | ({"PYSPARK_PYTHON": given} if given else {}))
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "_LAUNCH", launch)
    monkeypatch.setattr(session, "_check_reachable", lambda master: None)
    with (
        pytest.raises(EnvironmentProblem, match="no JVM in this test"),
        session.spark_session(master, steps=steps),
    ):
        pass
    (found,) = seen
    return found


@pytest.mark.parametrize(
    ("master", "given", "python"),
    [
        (None, "", OURS),
        ("local[2]", "", OURS),
        (None, OTHER, OTHER),
        # The machines of a cluster need not have our path.
        ("spark://elsewhere:7077", "", None),
        ("spark://elsewhere:7077", OTHER, OTHER),
    ],
)
def test_workers_on_this_machine_run_our_python_if_the_user_names_no_other(
    monkeypatch: pytest.MonkeyPatch, master: str | None, given: str, python: str | None
) -> None:
    assert launched(monkeypatch, master, given=given).python == python


@pytest.mark.parametrize(
    ("steps", "optimized"),
    [(None, True), (0, False), (session.SHORT, False), (session.SHORT + 1, True)],
)
def test_few_steps_are_judged_without_the_optimizing_compiler(
    monkeypatch: pytest.MonkeyPatch, steps: int | None, optimized: bool
) -> None:
    options = launched(monkeypatch, steps=steps).java_options
    assert ("TieredStopAtLevel=1" not in options) is optimized


def test_a_clusters_driver_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    there = launched(monkeypatch, "spark://elsewhere:7077", steps=0)
    assert "TieredStopAtLevel" not in there.java_options
