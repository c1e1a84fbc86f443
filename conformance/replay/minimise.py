"""Makes a failing path minimal: it cannot lose a step, or a run of steps, and still fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from conformance.replay.engine import Divergence
from conformance.tla import Action, State

Attempt = Callable[[State, Sequence[Action]], Divergence | None]
"""Drives a fresh run along a path; the divergence, or None when the path passes or is disabled."""


def minimise(divergence: Divergence, attempt: Attempt, *, budget: int = 5_000) -> Divergence:
    """Delete runs of neighbouring steps while the rest is enabled and still fails.

    Any divergence counts as failing: a shorter departure is the better counterexample even
    where it shows in another variable. Deleting whole runs matters, because a step often
    stands with the one that undoes it. Ends when no run can be deleted, or after `budget`
    attempts with the best path so far.
    """
    best = divergence
    while True:
        for start, end in _runs(len(best.actions)):
            if budget <= 0:
                return best
            budget -= 1
            again = attempt(best.initial, (*best.actions[:start], *best.actions[end:]))
            if again is not None and len(again.actions) < len(best.actions):
                best = again
                break
        else:
            return best


def _runs(length: int) -> Iterator[tuple[int, int]]:
    """Runs to try: first disjoint halves, quarters, ...; then every run, long ones first."""
    size = length // 2
    while size > 1:
        for start in range(length - size, -1, -size):
            yield start, start + size
        size //= 2
    for size in range(length - 1, 0, -1):
        for start in range(length - size, -1, -1):
            yield start, start + size
