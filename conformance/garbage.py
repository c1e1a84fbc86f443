"""How often a process looks for objects that refer to each other and that nobody else refers to.

A replay makes objects by the million, and counting references frees nearly all of them. Python
looks for the others whenever 700 more were made than freed, through all new objects each time: two
fifths of the processor time of a replay with a large state graph went into that (docs,
measurements.md, replay). Commands and their worker processes look less often; a program that
imports this package keeps what it has chosen.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (100_000, 20, 20)
"""Objects, then collections of the younger generation. Some 20 MB of garbage wait at most."""


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
