"""What it costs to know which disjuncts of its actions each transition of a state graph takes.

python -m benchmarks.branch_counts [MODEL...]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from conformance.modelcheck.branches import BranchCounts, EdgeBranches
from conformance.modelcheck.check import graph_and_spec
from conformance.modelcheck.manifest import find_models

MODELS = (
    "acknowledgement/acks-all-2b",
    "controller/deletion-restarts-1b",
    "delayed/chain",
    "group/dynamic-2m",
    "replication/kip320-coarse-3b",
)


def main() -> None:
    head = f"{'model':36} {'transitions':>11} {'branches':>8} {'never':>6} {'first s':>8} {'s':>6}"
    print(head)
    for model in find_models(sys.argv[1:] or MODELS):
        graph, prepared = graph_and_spec(model)
        once = np.ones(len(graph.source), np.int64)
        seconds = []
        for _ in range(2):  # the first compiles the actions
            started = time.process_time()
            counts = BranchCounts(prepared.spec)
            EdgeBranches.of(counts, graph, once > 0).count(counts, graph, once)
            seconds.append(time.process_time() - started)
        names = {action.name for action in prepared.spec.actions}
        places = {place for name in names for place in prepared.spec.branch_places(name)}
        never = len(places) - len(counts.by_place())
        print(
            f"{model.name:36} {len(once):11,} {len(places):8} {never:6} "
            f"{seconds[0]:8.2f} {seconds[1]:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
