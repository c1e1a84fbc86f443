"""What TLC found out about a model, in a form that can be kept and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from conformance.errors import SpecError
from conformance.events import Reason
from conformance.modelcheck.generate import FIRED, GeneratedModule
from conformance.modelcheck.labels import is_safety_property, says_always
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.tlc import TlcResult
from conformance.modelcheck.tlc_output import Transcript, Violation, ViolationKind
from conformance.modelcheck.why import why
from conformance.modelcheck.wording import ASSUMPTION, DEADLOCK, breaks, is_broken
from conformance.story.behaviour import Behaviour, Step
from conformance.story.why import why_assumed
from conformance.tla import (
    Action,
    Assumption,
    Module,
    Spec,
    State,
    StateReader,
    ValueReader,
    format_value,
)

Result = Literal["holds", "not exhausted", "violated", "timeout", "error"]
"""Not exhausted: a simulation came to its end and found no violation."""

STUTTERS = "From here nothing needs to happen any more (stuttering)."
"""How a counterexample goes on that stays in its last state."""

_EXIT_SUCCESS = 0
_EXIT_PARSE_ERRORS = (150, 151)  # EC.ExitStatus: specification, configuration
_FIRED_LINE = re.compile(rf'^<<"{re.escape(FIRED)}", (\d+)>>$')
_PLACE = re.compile(r"^line (\d+), col (\d+) to line (\d+), col \d+ of module (\w+)$")


class KeptStep(msgspec.Struct, frozen=True):
    """A step of the counterexample as texts: action name, arguments, state."""

    name: str
    args: tuple[str, ...]
    state: str


class EngineOutcome(msgspec.Struct, frozen=True):
    """The facts of one run; times, verdicts and expectations are no part of them."""

    result: Result
    exit_code: int
    tlc_version: str
    violated: str = ""
    kind: str = ""
    violated_at: str = ""
    """Where the violated formula is defined, as `module:line:column`; empty if nowhere."""
    places: Mapping[str, str] = {}
    """Where the counterexample's actions are defined, by name."""
    distinct_states: int | None = None
    generated_states: int | None = None
    depth: int | None = None
    collision_probability: float | None = None
    variables: tuple[str, ...] = ()
    """The spec's variables, if there is a counterexample."""
    steps: tuple[KeptStep, ...] = ()
    ending: str = ""
    """How an infinite counterexample goes on."""
    why: tuple[Reason, ...] = ()
    """What the evaluator says of the violated formula at the end of the counterexample."""
    never_fired: tuple[str, ...] | None = None
    """Names of actions of which no instance took a step; None if TLC could not tell."""
    constant_formulas: tuple[str, ...] = ()
    """Those that read no variable: whatever they say, they say it of no state."""
    error: str = ""

    @property
    def is_answer(self) -> bool:
        """Whether the run came to an answer, which another one would give too."""
        return self.result in ("holds", "not exhausted", "violated")

    def is_broken(self) -> str:
        """What happened to the formula, as a sentence has it: `Inv is violated`."""
        return is_broken(self.violated, self.kind, self.violated_at)

    def breaks(self) -> str:
        """What the model does: `violates Inv`."""
        return breaks(self.violated, self.kind, self.violated_at)

    def behaviour(self) -> Behaviour:
        """The counterexample, and why it ends there; no step if there is none."""
        steps = self.counterexample(self.variables)
        return Behaviour(self.variables, steps, ending=self.ending, reasons=self.why)

    def counterexample(self, variables: Sequence[str]) -> tuple[Step, ...]:
        """The counterexample in values, its states in the order of `variables`."""
        states, values = StateReader(variables), ValueReader()
        return tuple(
            Step(
                Action(step.name, tuple(map(values, step.args))) if step.name else None,
                states.read(step.state),
            )
            for step in self.steps
        )


def read_outcome(
    run: TlcResult, model: Model, generated: GeneratedModule, spec: Spec
) -> EngineOutcome:
    """Make sense of a run; SpecError where TLC could not read module or configuration."""
    transcript, module = run.transcript, spec.module
    if run.exit_code in _EXIT_PARSE_ERRORS:
        raise SpecError(
            f"TLC cannot read the model {model.name} ({model.origin}): {outcome_text(run)}"
        )
    result = _result(run, model)
    violation = transcript.violation if result == "violated" else None
    name = _violated_name(violation, model, module) if violation else ""
    steps = _kept_steps(transcript, generated, spec) if violation else ()
    outcome = EngineOutcome(
        result=result,
        exit_code=run.exit_code,
        tlc_version=transcript.version,
        violated=name,
        kind=str(violation.kind) if violation else "",
        violated_at=defined_at(module, name),
        distinct_states=transcript.distinct_states,
        generated_states=transcript.generated_states,
        depth=transcript.depth,
        collision_probability=transcript.collision_probability,
        variables=tuple(v.name for v in module.variables) if violation else (),
        steps=steps,
        places=places_of(module, steps),
        ending=_ending(transcript),
        why=why(spec, name, violation.kind, _states(transcript, spec)) if violation else (),
        never_fired=None if model.check.simulation else _never_fired(transcript, generated),
        constant_formulas=constant_formulas(model, spec),
        error=outcome_text(run) if result == "error" else "",
    )
    assumption = _assumption_of(violation, module)
    return outcome if assumption is None else of_assumption(outcome, spec, assumption)


def constant_formulas(model: Model, spec: Spec) -> tuple[str, ...]:
    """The invariants and properties of the model that read no variable."""
    judged = (*model.check.invariants, *model.check.properties)
    return tuple(name for name in judged if not spec.says_of_states(name))


def of_assumption(outcome: EngineOutcome, spec: Spec, assumption: Assumption) -> EngineOutcome:
    """The outcome of a run that ended at once, since an ASSUME is false."""
    return msgspec.structs.replace(
        outcome,
        result="violated",
        violated=assumption.name or ASSUMPTION,
        kind=str(ViolationKind.ASSUMPTION),
        why=why_assumed(spec, assumption),
        violated_at=str(assumption.location),
    )


def _assumption_of(violation: Violation | None, module: Module) -> Assumption | None:
    """The ASSUME that TLC found false; TLC names its place."""
    place = _PLACE.match(violation.name) if violation else None
    if place is None or violation is None or violation.kind != ViolationKind.ASSUMPTION:
        return None
    for assumption in module.assumptions:
        where = assumption.body.location
        if (str(where.line), str(where.column), where.module) == (place[1], place[2], place[4]):
            return assumption
    return None


def _result(run: TlcResult, model: Model) -> Result:
    if run.timed_out:
        return "timeout"
    if run.transcript.violation is not None and not _failed_to_evaluate(run):
        return "violated"
    if run.exit_code == _EXIT_SUCCESS and model.check.simulation and run.transcript.finished:
        return "not exhausted"
    if run.exit_code == _EXIT_SUCCESS and run.transcript.success:
        return "holds"
    return "error"


def _failed_to_evaluate(run: TlcResult) -> bool:
    # EC.ExitStatus: 75 to 77 are failures of evaluation, 150 and above errors of the run.
    return run.exit_code >= 75 or run.exit_code < 0


def outcome_text(run: TlcResult) -> str:
    """TLC's own words, errors first, else the end of what stood outside its messages."""
    if run.transcript.errors:
        return "\n".join(run.transcript.errors).strip()
    if run.transcript.outside:
        return "\n".join(run.transcript.outside[-20:]).strip()
    return f"it ended with exit code {run.exit_code} and said nothing."


def _violated_name(violation: Violation, model: Model, module: Module) -> str:
    """The formula's name in the model; where TLC gives a place or nothing, found from that."""
    check = model.check
    if violation.kind == ViolationKind.DEADLOCK:
        return DEADLOCK
    if violation.name in (*check.invariants, *check.properties):
        return violation.name
    if place := _PLACE.match(violation.name):
        first, last, where = int(place[1]), int(place[3]), place[4]
        for name in (*check.invariants, *check.properties):
            definition = module.operator(name)
            if definition is not None and definition.location.module == where:
                location = definition.location
                if location.line <= first and last <= location.end_line:
                    return name
    if violation.kind == ViolationKind.INVARIANT:
        # Of a property `[]P` TLC names P.
        for name in check.properties:
            if says_always(module, name, violation.name):
                return name
    if violation.kind == ViolationKind.TEMPORAL_PROPERTY:
        # TLC says only that one of them is violated.
        live = [name for name in check.properties if not is_safety_property(module, name)]
        return " or ".join(live or check.properties)
    return violation.name


def defined_at(module: Module, name: str) -> str:
    """Where an operator is defined: `module:line:column`; empty for what is none."""
    definition = module.operator(name)
    return "" if definition is None else str(definition.location)


def places_of(module: Module, steps: Sequence[KeptStep]) -> dict[str, str]:
    """Where the steps' actions are defined, by name."""
    return {step.name: at for step in steps if (at := defined_at(module, step.name))}


def _states(transcript: Transcript, spec: Spec) -> list[State]:
    read = StateReader(spec.variables).read
    return [read(state.text) for state in transcript.trace]


def _kept_steps(
    transcript: Transcript, generated: GeneratedModule, spec: Spec
) -> tuple[KeptStep, ...]:
    steps: list[KeptStep] = []
    for state in transcript.trace:
        action = generated.labels.get(state.label)
        if action is None and state.label and steps:
            action = _with_arguments(spec, state.label, steps[-1].state, state.text)
        name, args = action or Action(state.label)
        steps.append(KeptStep(name, tuple(map(format_value, args)), state.text))
    return tuple(steps)


def _with_arguments(spec: Spec, label: str, before: str, after: str) -> Action | None:
    """The action of that name that leads from one state to the other, as the evaluator finds it.

    None where the evaluator lacks an operator of the spec: the label must do then.
    """
    read = StateReader(spec.variables).read
    state, next_state = read(before), read(after)
    try:
        steps = spec.successors(state)
    except SpecError:
        return None
    return next((a for a, reached in steps if a.name == label and reached == next_state), None)


def _ending(transcript: Transcript) -> str:
    if transcript.stuttering:
        return STUTTERS
    if transcript.back_to is not None:
        return f"From here it goes round for ever, back to step {transcript.back_to - 1}."
    return ""


def _never_fired(transcript: Transcript, generated: GeneratedModule) -> tuple[str, ...] | None:
    if not generated.labels:
        return None
    actions = list(generated.labels.values())
    fired = {
        actions[int(match[1])].name
        for line in transcript.outside
        if (match := _FIRED_LINE.match(line))
    }
    return tuple(dict.fromkeys(a.name for a in actions if a.name not in fired))


# msgspec prepares a type at its first use, and two threads that do so at once end the process
# (0.22.0): the threads of `check` find it prepared.
_DECODER = msgspec.msgpack.Decoder(EngineOutcome)


def encode(outcome: EngineOutcome) -> bytes:
    """For the cache."""
    return msgspec.msgpack.encode(outcome)


def decode(blob: bytes) -> EngineOutcome | None:
    """From the cache; None if it is of another form."""
    try:
        return _DECODER.decode(blob)
    except msgspec.DecodeError:
        return None
