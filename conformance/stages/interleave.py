"""Stage `interleave`: actions interrupted by others must come out as the two in turn."""

from __future__ import annotations

from conformance.printable import counted
from conformance.replay.interruptions import InterruptionResult, can_interrupt, interrupt_steps
from conformance.replay.oracle import GraphOracle
from conformance.stages.context import Context, Outcome, Workbench, stage
from conformance.stages.replay import tell

STAGE = "interleave"


def interruptible(bench: Workbench) -> bool:
    """Whether this model's system has threads that meet."""
    return not bench.model.check.constraints and can_interrupt(bench.graph, bench.make_system)


def interleave(context: Context, bench: Workbench, *, samples: int) -> InterruptionResult:
    """Interrupt each action by each other, in that many states; report the first of each kind."""
    with stage(context, STAGE, bench.model.name) as outcome:
        result = interrupt_steps(
            bench.graph,
            bench.make_system,
            samples=samples,
            seed=context.seed,
            emit=context.emit,
        )
        report_interleave(context, bench, result, outcome)
    return result


def report_interleave(
    context: Context, bench: Workbench, result: InterruptionResult, outcome: Outcome
) -> None:
    """Report every divergence, and what was interrupted how often."""
    oracle = GraphOracle(bench.graph)
    for divergence in result.divergences:
        tell(context, bench, oracle, divergence, STAGE)
    total = sum(result.interruptions.values())
    outcome.verdict = result.verdict
    outcome.summary = (
        f"{total:,} interruptions of {len(result.interruptions)} pairs of actions, "
        f"{counted(len(result.divergences), 'pair')} failed; {counted(result.steps, 'step')}; "
        f"{'all' if result.exhaustive else 'samples'} of {counted(result.meetings, 'meeting')}"
        if result.interruptions
        else "no two threads can be made to meet in this model: nothing was interrupted"
    )
    outcome.figures = {
        "model": bench.model.name,
        "system": bench.factory,
        "interruptions": dict(result.interruptions),
        "paths": result.paths,
        "steps": result.steps,
        "missed": result.missed,
        "meetings": result.meetings,
        "exhaustive": result.exhaustive,
        "seconds": round(result.seconds, 3),
    }
    if result.interruptions:
        outcome.add_compared(result.compared)
