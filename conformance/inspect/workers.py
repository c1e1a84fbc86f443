"""Spark when there is much: one session for reading and judging, started when it is first used."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Workers:
    """Spark's workers, in a `with` block at whose end the session is stopped."""

    master: str | None = None
    wanted: bool | None = None
    """None: where a master was named, where it pays, and where Spark runs already."""
    _session: SparkSession | None = field(default=None, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def pay(self, amount: int, enough: int) -> bool:
        """Whether so much work is theirs."""
        if self.wanted is not None:
            return self.wanted
        return amount >= enough or self.master is not None or self._session is not None

    def session(self) -> SparkSession:
        """The session. Raises EnvironmentProblem if Spark cannot start."""
        if self._session is None:
            # Not at the top: importing PySpark takes longer than reading a small incident.
            from conformance.spark.session import spark_session

            session = spark_session(self.master, name="kconform inspect")
            self._session = self._stack.enter_context(session)
        return self._session

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session = None
        self._stack.__exit__(kind, error, trace)
