"""The project's own formulas and actions: Spark's verdicts on damaged states are Python's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.tla import find_tools
from tests.spark.tla.compare import Comparison, Count

pytestmark = [pytest.mark.spark, pytest.mark.tlc]

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For few rows: to compile a plan takes longer than to interpret it."""


SOME_ACTIONS = {
    "Replication": ("BecomeFollower", "ProcessFetchResponse"),
    "GroupMembership": ("ProcessJoinGroup", "SendHeartbeat"),
}
"""All of them are asked by experiments/spark_differential.py, which takes minutes."""


@contextmanager
def configured(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


@pytest.fixture(scope="module", params=["replication/kip320-fine-2b", "group/dynamic-2m"])
def model(request: pytest.FixtureRequest) -> PreparedModel:
    return prepare(find_models([request.param])[0], find_tools())


@pytest.fixture
def compare(spark: SparkSession, model: PreparedModel, tmp_path: Path) -> Iterator[Comparison]:
    with configured(spark, INTERPRETED):
        yield Comparison(spark, model.spec, tmp_path, states=600, seed=7)


def differing(counts: list[Count]) -> dict[str, int]:
    return {count.formula: count.differing for count in counts if count.differing}


def test_invariants_are_judged_as_python_judges_them(
    compare: Comparison, model: PreparedModel
) -> None:
    counts = compare.invariants(model.model.check.invariants, 300)
    assert differing(counts) == {}
    assert sum(count.false for count in counts) > 100


def test_properties_are_judged_as_python_judges_them(
    compare: Comparison, model: PreparedModel
) -> None:
    counts = compare.properties(model.model.check.properties, 300)
    assert differing(counts) == {}
    assert sum(count.false for count in counts) > 20


def test_actions_are_judged_as_python_judges_them(
    compare: Comparison, model: PreparedModel
) -> None:
    counts = list(compare.actions(200, names=SOME_ACTIONS[model.model.spec]))
    assert [count.formula for count in counts if not count.true or not count.false] == []
    assert differing(counts) == {}
