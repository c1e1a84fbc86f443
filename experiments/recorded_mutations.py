"""Damages recorded traces that were accepted, and tells whether the judge notices.

    python -m experiments.recorded_mutations --mutants 1000 --seed 1 runs

The folder is one of experiments/recorded_runs.py. Each mutant is a trace with one lie: a changed
value, a dropped, doubled or moved event. It is rejected (at the lie, or at a later event, when the
lie comes to light), or it can be explained otherwise: then the explanation is checked step by step
without the judge. What is accepted without a proof is a miss.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping, load_mapping
from conformance.judge.reading import read_recordings
from conformance.judge.translate import derived_constants, translated
from conformance.judge.verdict import Judgement
from conformance.modelcheck.prepare import bound
from conformance.stages.context import one_model, with_constants
from conformance.tla import Spec, find_tools
from conformance.verdict import Verdict
from tests.differential.judge.mutations import Mutant, mutants, proves

REJECTED = ("rejected at the lie", "rejected later")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A recorded trace that passes."""

    protocol: str
    events: Path
    model: str
    mapping: Path


def accepted(folder: Path, seed: int) -> list[Accepted]:
    """The traces of the folder that pass, in an order that the seed draws."""
    rows: list[dict[str, Any]] = [
        row
        for path in sorted(folder.glob("*/verdicts.json"))
        for row in json.loads(path.read_text("utf-8"))
        if row["verdict"] == "pass"
    ]
    random.Random(seed).shuffle(rows)
    result = [(row["protocol"], *row["files"]) for row in rows]
    return [Accepted(item, Path(events), model, Path(path)) for item, events, model, path in result]


def lies(item: Accepted, count: int, seed: int) -> Iterator[tuple[Mutant, str]]:
    """Mutants of one trace, with what became of each."""
    mapping = load_mapping(item.mapping)
    recording = next(iter(read_recordings((item.events,))))
    model = one_model(item.model)
    constants = derived_constants([translated(recording, mapping)], mapping)
    spec = bound(with_constants(model, constants), find_tools()).spec
    judge = Judge(spec, mapping, model.check.invariants)
    for mutant in mutants([recording], count, seed):
        yield mutant, _fate(spec, mapping, mutant, judge.judge(mutant.recording))


def _fate(spec: Spec, mapping: Mapping, mutant: Mutant, judgement: Judgement) -> str:
    if judgement.verdict is Verdict.FAIL:
        return REJECTED[0] if judgement.explained <= mutant.at else REJECTED[1]
    if judgement.verdict is Verdict.INCONCLUSIVE:
        return "inconclusive"
    silent, steps = mapping.silent, mapping.limits.silent
    events = translated(mutant.recording, mapping).events
    explanation = judgement.explanation
    if explanation is not None and proves(spec, silent, steps, events, explanation):
        return "explained otherwise, proved"
    return "accepted without proof"


def main() -> None:
    """Damage traces of each protocol in turn until there are enough; print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--protocols", nargs="+", default=["group", "replication"])
    parser.add_argument("--mutants", type=int, default=1000, help="of each protocol")
    parser.add_argument("--each", type=int, default=20, help="mutants of one trace")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    traces = accepted(options.folder, options.seed)
    for protocol in sorted({trace.protocol for trace in traces} & set(options.protocols)):
        own = [trace for trace in traces if trace.protocol == protocol]
        rows: dict[str, Counter[str]] = {}
        used = 0
        try:
            for item in own:
                if sum(row.total() for row in rows.values()) >= options.mutants:
                    break
                used += 1
                for mutant, fate in lies(item, options.each, options.seed + used):
                    rows.setdefault(mutant.kind, Counter())[fate] += 1
                    if not fate.startswith(("rejected", "explained")):
                        print(f"{fate}: {item.events} {mutant.kind} at {mutant.at}", flush=True)
        finally:  # also of what was done before an interrupt
            report(protocol, used, rows)


def report(protocol: str, traces: int, rows: dict[str, Counter[str]]) -> None:
    """The shares, for each kind of lie."""
    total = sum((row for row in rows.values()), Counter[str]())
    print(f"{protocol}: {total.total():,} mutants of {traces} traces")
    for kind, row in [*rows.items(), ("all", total)]:
        text = ", ".join(f"{count / row.total():.1%} {fate}" for fate, count in row.most_common())
        print(f"  {kind:14} {row.total():5,}: {text}", flush=True)


if __name__ == "__main__":
    main()
