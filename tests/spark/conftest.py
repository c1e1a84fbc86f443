"""One Spark session for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from conformance.spark.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("local[2]", settings={"spark.sql.shuffle.partitions": "1"}) as session:
        yield session
