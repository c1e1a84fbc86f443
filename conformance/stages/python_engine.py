"""Stage `check` by our own evaluator: the same results as TLC's, without TLC."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.errors import UserError
from conformance.events import PrintedLine, Progress, Reason, StageStarted
from conformance.modelcheck import broken
from conformance.modelcheck.broken import BrokenFormula, BrokenFormulas
from conformance.modelcheck.left_out import IgnoredEntry, left_out
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.outcome import (
    STUTTERS,
    EngineOutcome,
    KeptStep,
    constant_formulas,
    defined_at,
    of_assumption,
    places_of,
)
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.modelcheck.reporting import report
from conformance.modelcheck.result import CheckResult, judge
from conformance.modelcheck.unchanged import idle_overrides
from conformance.modelcheck.why import why
from conformance.stages.context import Context
from conformance.tla import find_tools, format_state, format_value
from conformance.tla.search import (
    Counterexample,
    FalseAssumption,
    FormulaKind,
    FormulaResult,
    SearchLimits,
    SearchResult,
    problem_of,
    search,
)
from conformance.workers import ForkedProcesses

ENGINE = "kconform's evaluator"
_ASSUMPTION_FALSE = 10
"""TLC's exit code for it."""


def check_in_python(context: Context, models: Sequence[Model]) -> list[CheckResult]:
    """Search each model's state space with our successors."""
    context.check.parser.announce(models)
    return [_check(context, model) for model in models]


def _check(context: Context, model: Model) -> CheckResult:
    if model.check.simulation is not None:
        raise UserError(f"{model.origin}: simulation is TLC's. Leave out `--engine python`.")
    started = time.monotonic()
    context.emit(StageStarted("check", model.name))
    tools = context.check.tools or find_tools()
    prepared = prepare(model, tools, context.check.parser)
    outcome, unchecked, formulas, given_up = _searched(context, prepared)
    steps = outcome.counterexample(prepared.spec.variables)
    states = outcome.distinct_states or 0
    idle = idle_overrides(prepared, steps, known_states=states) if outcome.is_answer else ()
    seconds = time.monotonic() - started
    result = judge(
        model,
        outcome,
        tools.jar_sha256,
        seconds,
        cached=False,
        engine="python",
        unchecked=unchecked,
        left_out=(*left_out(model, None), *given_up),
        broken=formulas if context.check.all_formulas else broken.NOT_ASKED,
        idle_overrides=idle,
    )
    report(result, context.emit, context.check.keep)
    return result


def _searched(
    context: Context, prepared: PreparedModel
) -> tuple[EngineOutcome, tuple[str, ...], BrokenFormulas, tuple[IgnoredEntry, ...]]:
    """What the search says, the properties that it cannot check in full, what it broke, and the
    properties that it has given up."""
    model = prepared.model
    prepared.spec.session.show = lambda line: context.emit(PrintedLine("check", line))
    try:
        problem = problem_of(prepared.spec)
    except FalseAssumption as error:
        nothing = EngineOutcome("violated", _ASSUMPTION_FALSE, ENGINE)
        outcome = of_assumption(nothing, prepared.spec, error.assumption)
        return outcome, (), broken.of_assumption(outcome), ()
    workers = context.check.tlc.workers
    result = search(
        # A .cfg for TLC 2.15 cannot speak of deadlock; the model does.
        replace(problem, check_deadlock=model.check.deadlock),
        SearchLimits(stop_at_violation=not context.check.all_formulas),
        keep_transitions=True,
        elsewhere=None if workers < 2 else ForkedProcesses(workers),
        progress=_progress(context, model),
    )
    given_up = (
        IgnoredEntry(f"PROPERTY {name}", why, judges=True) for name, why in result.given_up.items()
    )
    return (
        _outcome(prepared, result),
        tuple(problem.unchecked),
        _broken(result),
        tuple(given_up),
    )


def _broken(result: SearchResult) -> BrokenFormulas:
    """By formula the shortest counterexample of what it says of states and steps."""
    lengths: dict[str, int] = {}
    for formula in result.formulas:
        if formula.counterexample is not None:
            endless = formula.kind is FormulaKind.TEMPORAL_PROPERTY
            length = 0 if endless else len(formula.counterexample)
            lengths[formula.name] = min(
                length or sys.maxsize, lengths.get(formula.name, sys.maxsize)
            )
    formulas = (
        BrokenFormula(name, 0 if length == sys.maxsize else length)
        for name, length in lengths.items()
    )
    return BrokenFormulas.of(formulas, len(result.states))


def _progress(context: Context, model: Model) -> Callable[[int, int], None]:
    """Tells at most twice a second how many states were generated, and how many are distinct."""
    last_report = time.monotonic()

    def tell(generated: int, distinct: int) -> None:
        nonlocal last_report
        if time.monotonic() - last_report > 0.5:
            last_report = time.monotonic()
            message = f"{model.name}: {generated:,} states generated"
            context.emit(Progress("check", distinct, None, message))

    return tell


def _outcome(prepared: PreparedModel, result: SearchResult) -> EngineOutcome:
    violated = result.violated
    path = None if violated is None else violated.counterexample
    transitions = result.transitions
    fired = {action.name for action in transitions.actions} if transitions else set()
    names = dict.fromkeys(action.name for action in prepared.spec.actions)
    steps = _steps(prepared, path)
    return EngineOutcome(
        result="holds" if violated is None else "violated",
        exit_code=_exit_code(violated),
        tlc_version=ENGINE,
        violated="" if violated is None else violated.name,
        kind="" if violated is None else str(violated.kind),
        violated_at="" if violated is None else defined_at(prepared.module, violated.name),
        distinct_states=len(result.states),
        generated_states=result.generated,
        depth=result.depth,
        variables=prepared.spec.variables,
        steps=steps,
        ending=_ending(path),
        places=places_of(prepared.module, steps),
        why=_why(prepared, violated),
        never_fired=None if violated else tuple(name for name in names if name not in fired),
        constant_formulas=constant_formulas(prepared.model, prepared.spec),
    )


def _exit_code(violated: FormulaResult | None) -> int:
    """TLC's."""
    if violated is None:
        return 0
    return 13 if violated.kind is FormulaKind.TEMPORAL_PROPERTY else 12


def _ending(path: Counterexample | None) -> str:
    if path is None or path.back_to is None:
        return ""
    if path.back_to == len(path.steps):
        return STUTTERS
    return f"This is the state of step {path.back_to} again: it goes round for ever."


def _steps(prepared: PreparedModel, counterexample: Counterexample | None) -> tuple[KeptStep, ...]:
    if counterexample is None:
        return ()
    variables = prepared.spec.variables
    first = KeptStep("", (), format_state(variables, counterexample.initial))
    rest = (
        KeptStep(action.name, tuple(map(format_value, action.args)), format_state(variables, state))
        for action, state in counterexample.steps
    )
    return (first, *rest)


def _why(prepared: PreparedModel, violated: FormulaResult | None) -> tuple[Reason, ...]:
    if violated is None or violated.counterexample is None:
        return ()
    return why(prepared.spec, violated.name, violated.kind, violated.counterexample.states)
