"""Time by which steps are told apart, those of two threads that take turns too."""

from __future__ import annotations

from collections.abc import Callable


class StepClock:
    """Each step has a millisecond of its own and reads no other, so that its records name it.

    `step` says whose step asks: a step that another one has interrupted goes on in its own time.
    """

    def __init__(self, step: Callable[[], str]) -> None:
        self._step = step
        self._latest = 0
        self._begun: dict[str, int] = {}

    def milliseconds(self) -> int:
        """When the step that asks has begun, or what it has slept to."""
        return self._begun.get(self._step(), self._latest)

    def sleep(self, ms: int) -> None:
        """The step that asks is later than all that were before."""
        self._latest += ms
        self._begun[self._step()] = self._latest
