"""The canary: one known fault per gate, chosen by the seed, which the gate must find."""

from __future__ import annotations

import random
from collections.abc import Sequence

from conformance.bugs.bench import BugEffort, run_fault, survivor
from conformance.bugs.fault import built_in_catalogues, load_catalogue
from conformance.bugs.worker import FaultSearchResult
from conformance.stages.context import Context, Workbench, stage
from conformance.verdict import Verdict


def run_canary(context: Context, benches: Sequence[Workbench]) -> None:
    """Put one fault into each built-in system of these benches; a survivor fails the gate.

    A fault that cannot be judged, as code that its patch replaces was changed, is inconclusive.
    """
    systems = {bench.model.system for bench in benches}
    for path in built_in_catalogues():
        catalogue = load_catalogue(path)
        if catalogue.system not in systems or not catalogue.seen:
            continue
        fault = random.Random(context.seed).choice(catalogue.seen)
        with stage(context, "canary", f"{fault.id} {fault.jira}") as outcome:
            # The gate has just driven the clean tree by the same oracles.
            effort = BugEffort(context.seed, 0, examples=100, shorten=False, confirm=False)
            result = run_fault(catalogue, fault, effort)
            outcome.verdict = result.verdict
            outcome.figures = result.to_json()
            outcome.summary = f"{result.summary()}{_consequence(result.search)}"
            if result.verdict is Verdict.FAIL:
                context.emit(survivor(fault, result.search))


def _consequence(result: FaultSearchResult) -> str:
    """What it says of the gate that the fault was not found."""
    if not result.judged:
        return "; whether this gate can fail is open"
    return "" if result.killed else "; a gate that cannot fail is broken"
