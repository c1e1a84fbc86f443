"""Work elsewhere: one function for many items, done here, in processes, or by Spark's workers.

A caller writes the function and the items once, and does not know where they run:

    for result in workers.map(function, items): ...

| Workers           | function and items                  | for                                   |
|-------------------|-------------------------------------|---------------------------------------|
| `Here`            | this process calls the function     | little work                           |
| `ForkedProcesses` | a fork inherits the function        | the cores of this machine             |
| `OnSpark`         | travel as pickles (`spark.workers`) | a million traces or more, and clusters |

The results come in the order of the items, so what is made of them does not depend on where. An
exception in a function is raised by `map`. Where a function keeps something for its next item, a
compiled specification for example, it keeps it by process (`functools.lru_cache`).
"""

from __future__ import annotations

from conformance.workers.choice import MANY_TRACES, is_small, workers_for
from conformance.workers.places import Here, Workers
from conformance.workers.processes import ForkedProcesses, WorkerEnded

__all__ = [
    "MANY_TRACES",
    "ForkedProcesses",
    "Here",
    "WorkerEnded",
    "Workers",
    "is_small",
    "workers_for",
]
