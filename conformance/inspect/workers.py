"""Spark when there is much: one session for reading and judging, started when it is first used."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType

from conformance.workers import Here, Workers, workers_for


@dataclass(slots=True)
class OnDemand:
    """This process, or Spark's workers, in a `with` block at whose end the session is stopped."""

    master: str | None = None
    wanted: bool | None = None
    """None: Spark where a master was named, where it pays, and where it runs already."""
    _started: Workers | None = field(default=None, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def fit(self, amount: int, enough: int) -> Workers:
        """The workers for so much work. Raises EnvironmentProblem if Spark cannot start."""
        pays = amount >= enough or self.master is not None or self._started is not None
        if not (pays if self.wanted is None else self.wanted):
            return Here()
        if self._started is None:
            started = workers_for(0, 0, master=self.master, processes=1, spark=True)
            self._started = self._stack.enter_context(started)
        return self._started

    def __enter__(self) -> OnDemand:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._started = None
        self._stack.__exit__(kind, error, trace)
