"""Which workers do a piece of work: by its size, and by what the user names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformance.workers.places import Here, Workers
from conformance.workers.processes import ForkedProcesses

MANY_TRACES = 1_000_000
"""Spark records and judges so many traces and more; its start takes longer than fewer do."""

FEW_STEPS = 400_000
"""Up to so many steps are judged in this process: other processes take longer to begin."""


def is_small(traces: int, master: str | None) -> bool:
    """Whether so many traces need no Spark: not if the user names a master."""
    return master is None and traces < MANY_TRACES


@contextmanager
def workers_for(
    traces: int,
    steps: int,
    *,
    master: str | None,
    processes: int,
    spark: bool = False,
    sql: bool = False,
) -> Iterator[Workers]:
    """The workers for so many traces of so many steps in all; `spark`: no others will do.

    `sql`: the JVM itself may have much to do.

    EnvironmentProblem if Spark is needed and cannot start.
    """
    if is_small(traces, master) and not spark:
        yield Here() if steps <= FEW_STEPS or processes < 2 else ForkedProcesses(processes)
        return
    # Here: Spark takes a second to load, and few traces need it.
    from conformance.spark.session import spark_session
    from conformance.spark.workers import OnSpark

    # Python's workers do the work, so the JVM need not optimize, unless SQL judges.
    with spark_session(master, steps=None if sql else 0) as session:
        yield OnSpark(session)
