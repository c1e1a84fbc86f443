"""Spark's workers give the results in the order of the items, and a user's mistake as it is."""

from __future__ import annotations

import os
from functools import partial

import pytest
from pyspark.sql import SparkSession

from conformance.errors import DataError
from conformance.spark import workers as module
from conformance.spark.workers import OnSpark

pytestmark = pytest.mark.spark


def failing(number: int) -> int:
    if number == 2:
        raise DataError("the third is wrong")
    return number


def own(number: int) -> tuple[int, int]:
    return number, os.getpid()


def test_results_come_in_the_order_of_the_items(spark: SparkSession) -> None:
    results = list(OnSpark(spark).map(own, range(9)))
    assert [number for number, _ in results] == list(range(9))
    assert os.getpid() not in {process for _, process in results}
    assert list(OnSpark(spark).map(own, [])) == []


@pytest.mark.parametrize("few", [0, 32], ids=["merged by workers", "merged here"])
def test_results_are_merged_into_one(
    spark: SparkSession, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MERGED_HERE", few)
    workers = OnSpark(spark)
    assert workers.reduce(partial(pow, 2), range(10), int.__add__, 1) == 2**10
    assert workers.reduce(partial(pow, 2), [], int.__add__, 7) == 7
    with pytest.raises(DataError, match="the third is wrong"):
        workers.reduce(failing, range(10), int.__add__, 0)


def test_a_user_s_mistake_is_raised_as_it_is(spark: SparkSession) -> None:
    with pytest.raises(DataError, match=r"^the third is wrong$"):
        list(OnSpark(spark).map(failing, range(4)))
