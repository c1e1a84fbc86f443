"""How often a process looks for objects that refer to each other and that nobody else refers to.

A replay makes objects by the million, and counting references frees nearly all of them. Python
looks for the others whenever 700 more were made than freed, and now and then through all that there
are. Commands and their worker processes look less often, which gains most where there is
much to look through. Far less often would cost more again: new objects would take fresh memory in
place of what the processor's cache has. A program that imports this package keeps what it chose.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (5_000, 20, 20)
"""Objects, then collections of the younger generation."""


def collect_seldom() -> None:
    """From now on, in this process."""
    gc.set_threshold(*_THRESHOLDS)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Meanwhile, in a process that belongs to somebody else."""
    before = gc.get_threshold()
    collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)
