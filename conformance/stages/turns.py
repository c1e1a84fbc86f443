"""Stage `turns`: the loops of a system's threads take the specification's steps in their order."""

from __future__ import annotations

from conformance.printable import counted
from conformance.replay.oracle import GraphOracle
from conformance.replay.telling import finding
from conformance.replay.turns import TurnsResult, take_turns
from conformance.stages.context import Context, Workbench, stage
from conformance.stages.replay import keep, locator

STAGE = "turns"


def turns(context: Context, bench: Workbench, *, walks: int, length: int) -> TurnsResult:
    """Drive random walks in which the threads' own loops run; report the first divergence."""
    with stage(context, STAGE, bench.model.name) as outcome:
        oracle, result = take_turns(
            GraphOracle(bench.graph),
            bench.make_system,
            walks=walks,
            length=length,
            seed=context.seed,
            emit=context.emit,
        )
        if result.divergence is not None:
            report = finding(
                oracle, result.divergence, stage=STAGE, locate=locator(bench), reasons=()
            )
            keep(context, bench, oracle, result.divergence, report, ())
        values = sum(result.turns.values())
        outcome.verdict = result.verdict
        outcome.summary = (
            f"{values:,} turns of {len(result.turns)} kinds in {result.walks:,} walks, "
            f"{counted(result.steps, 'step')}, {result.steps / max(result.seconds, 1e-9):,.0f}/s"
        )
        outcome.figures = {
            "model": bench.model.name,
            "system": bench.factory,
            "walks": result.walks,
            "steps": result.steps,
            "turns": dict(result.turns),
            "seconds": round(result.seconds, 3),
        }
        outcome.add_compared(result.compared)
    return result
