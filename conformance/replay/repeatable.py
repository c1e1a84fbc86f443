"""What Hypothesis draws, made independent of which modules the process has loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis.internal.conjecture import providers

_COLLECTS = "_get_local_constants"
"""Where Hypothesis (since 6.131) asks for the constants that it found in loaded source files."""


@contextmanager
def drawn_alike() -> Iterator[None]:
    """Within: no constants out of source files, so the same seed draws the same everywhere.

    One draw in twenty is otherwise a number that stands in some loaded module of the project that
    runs. A suite's process has other modules than the command that repeats its failure, and drew
    otherwise by the same seed. Only the constants that all runs share stay.
    """
    collect = getattr(providers, _COLLECTS, None)
    if collect is None:  # an older Hypothesis: it draws none
        yield
        return
    none = type(collect())()
    # The permitted ones are kept by the kind of draw, of both pools.
    providers.CONSTANTS_CACHE.cache.clear()
    setattr(providers, _COLLECTS, lambda: none)
    try:
        yield
    finally:
        setattr(providers, _COLLECTS, collect)
        providers.CONSTANTS_CACHE.cache.clear()
