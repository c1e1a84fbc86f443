"""How Spark is started: nothing is, for a double stands where the JVM would be launched."""

from __future__ import annotations

import os
import sys

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from conformance.audit import session
from conformance.errors import EnvironmentProblem

OURS, OTHER = sys.executable, "/opt/other/bin/python"


def workers_python(monkeypatch: pytest.MonkeyPatch, master: str | None, given: str) -> str | None:
    """What the JVM would see in PYSPARK_PYTHON, where the user has set it so (empty: not set)."""
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
    seen: list[str | None] = []

    def launch(_conf: object, _streams: object) -> None:
        seen.append(os.environ.get("PYSPARK_PYTHON"))
        raise OSError("no JVM in this test")

    # A copy: what a session exports lives as long as the process.
    monkeypatch.setattr(os, "environ", surroundings | ({"PYSPARK_PYTHON": given} if given else {}))
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "_LAUNCH", launch)
    with (
        pytest.raises(EnvironmentProblem, match="no JVM in this test"),
        session.spark_session(master),
    ):
        pass
    (python,) = seen
    return python


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
    assert workers_python(monkeypatch, master, given) == python
