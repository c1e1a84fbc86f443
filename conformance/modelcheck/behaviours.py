"""Has TLC judge given behaviours: each state, and each step, of many in one run.

A generated module extends the spec. Its initial states are the first states of the behaviours, its
next-state relation loads the state that follows, and both print what is false instead of stopping
there: one run judges every behaviour up to its first bad state. TLC stops only at a formula that
has no value. The visit that it stopped at is then cut off, with all that follows it, and the
others are judged again.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from conformance.errors import EnvironmentProblem, SpecError, UserError
from conformance.modelcheck.form import Check
from conformance.modelcheck.generate import (
    GeneratedModule,
    config_text,
    definitions,
    model_values,
    module_text,
)
from conformance.modelcheck.labels import specification_parts
from conformance.modelcheck.outcome import outcome_text
from conformance.modelcheck.prepare import PreparedModel, written
from conformance.modelcheck.tlc import SHORT_RUN, Processes, TlcJob, TlcOptions, TlcResult, run_tlc
from conformance.tla import Action, State, Tools, format_value

INIT = "Init"
NEXT = "Next"

_FALSE = "kconform: false"
_LINE = re.compile(rf'^<<"{_FALSE}", (\d+), (\d+), (\d+)>>$')
_WHERE = {name: re.compile(rf"\b{name} = (\d+)") for name in ("kconform_t", "kconform_i")}
_JUDGE = "kconform_judge"
_NO_VALUE = (75, 76)  # EC.ExitStatus: evaluating the spec, evaluating an invariant
_RUNS = 20
"""At most so many runs, one for each visit at which TLC finds no value."""

Visit: TypeAlias = "tuple[State | None, int, State]"


@dataclass(frozen=True, slots=True)
class IndexedBehaviour:
    """n + 1 states and the n actions between them, positions in a list of actions."""

    states: tuple[State, ...]
    actions: tuple[int, ...]

    @property
    def visits(self) -> list[Visit]:
        """The initial state (no source, action -1), then each step."""
        sources, codes = (None, *self.states), (-1, *self.actions)
        return list(zip(sources, codes, self.states, strict=False))

    def cut(self, visits: int) -> IndexedBehaviour:
        """Its beginning: so many of its states."""
        return IndexedBehaviour(self.states[:visits], self.actions[: max(visits - 1, 0)])


@dataclass(frozen=True, slots=True)
class BehaviourJudgement:
    """What is said of a behaviour: at `step` (0: the initial state) `false` formulas, by name
    and sorted, or one without a value, and why. All is well if there is no step."""

    step: int | None = None
    false: tuple[str, ...] = ()
    undefined: str = ""

    def __str__(self) -> str:
        """One line."""
        if self.step is None:
            return "nothing is false"
        what = f"{', '.join(self.false)} false" if self.false else f"undefined ({self.undefined})"
        return f"{what} at step {self.step}"


@dataclass(frozen=True, slots=True)
class TlcJudgements:
    """TLC's judgements, None where it met too many undefined visits; its seconds and steps."""

    judgements: tuple[BehaviourJudgement | None, ...]
    steps: int
    seconds: float


def judge_behaviours(
    prepared: PreparedModel,
    actions: Sequence[Action],
    behaviours: Sequence[IndexedBehaviour],
    tools: Tools,
    options: TlcOptions,
    processes: Processes,
) -> TlcJudgements:
    """Judge the behaviours by the model's Init, the actions and the model's invariants.

    Raises SpecError if TLC cannot read the module, UserError if the initial predicate has no name.
    """
    initial = _initial(prepared)
    undefined: dict[Visit, str] = {}
    seconds = 0.0
    names = (INIT, NEXT, *prepared.model.check.invariants)
    for _ in range(_RUNS):
        parts = [_defined(behaviour, undefined) for behaviour in behaviours]
        lines: Sequence[str] = ()
        if any(part.states for part in parts):
            generated = _generate(prepared, initial, actions, parts)
            run = _run(prepared, generated, parts, tools, options, processes)
            seconds += run.seconds
            if (visit := _stopped(run, parts)) is not None:
                undefined[visit] = textwrap.shorten(outcome_text(run), 300)
                continue
            lines = run.transcript.outside
        judgements = _judgements(_first_false(lines, names), behaviours, parts, undefined)
        return TlcJudgements(judgements, sum(len(part.actions) for part in parts), seconds)
    return TlcJudgements((None,) * len(behaviours), 0, seconds)


def _initial(prepared: PreparedModel) -> str:
    check = prepared.model.check
    if not check.specification:
        return check.init
    parts = specification_parts(prepared.module, check.specification)
    if parts is None:
        raise UserError(
            f"{prepared.model.origin}: TLC judges behaviours by a named initial predicate, and "
            f"{check.specification} is not of the form Init /\\ [][Next]_vars. Give `init` and "
            "`next` in the model instead."
        )
    return parts.init


def _defined(behaviour: IndexedBehaviour, undefined: Mapping[Visit, str]) -> IndexedBehaviour:
    """The behaviour up to its first visit that has no value."""
    if not undefined:
        return behaviour
    visits = behaviour.visits
    return behaviour.cut(next((i for i, v in enumerate(visits) if v in undefined), len(visits)))


# ---- the module ----------------------------------------------------------------------------


def _generate(
    prepared: PreparedModel,
    initial: str,
    actions: Sequence[Action],
    parts: Sequence[IndexedBehaviour],
) -> GeneratedModule:
    model, variables = prepared.model, prepared.spec.variables
    invariants = model.check.invariants
    states, values = _tables(parts, len(variables))
    used = {code for part in parts for code in part.actions}
    members = model_values(state for part in parts for state in part.states)
    members |= model_values(actions[code].args for code in used)
    names = sorted(members - {constant.name for constant in prepared.module.constants})
    body = [
        *definitions(model),
        "VARIABLES kconform_t, kconform_i",
        *(f"kconform_v{n} == {_lines(column)}" for n, column in enumerate(values, 1)),
        f"kconform_states == {_lines(states.texts)}",
        f"kconform_traces == {_tuples(states.paths)}",
        f"kconform_actions == {_tuples([[c + 1 for c in part.actions] for part in parts])}",
        # Registers of TLC: behind the first bad state of each behaviour nothing is judged.
        f"ASSUME \\A t \\in 1..{max(len(parts), 1)} : "
        f"TLCSet(t, {1 + max((len(p.states) for p in parts), default=0)})",
        "kconform_state == kconform_states[kconform_traces[kconform_t][kconform_i]]",
        "kconform_false(i, n) == TLCSet(kconform_t, i)"
        f' /\\ PrintT(<<"{_FALSE}", kconform_t, i, n>>)',
        f"kconform_step(code) == {_cases(actions, sorted(used))}",
        _init_text(variables),
        _next_text(variables),
        _judge_text(initial, invariants),
    ]
    name = f"{model.spec}__behaviours"
    check = Check(init="kconform_init", next="kconform_next", invariants=(_JUDGE,))
    text = module_text(name, model.spec, body, names)
    return GeneratedModule(name, text, config_text(model, check, names), {})


@dataclass(frozen=True, slots=True)
class _States:
    """The distinct states as texts, and each behaviour as positions in them, from 1."""

    texts: list[str]
    paths: list[list[int]]


def _tables(parts: Sequence[IndexedBehaviour], width: int) -> tuple[_States, list[list[str]]]:
    """The states as tuples of positions, and each variable's values: a text is listed once.

    By text, because True and 1 are one key to Python and two values to TLA+.
    """
    columns: list[dict[str, int]] = [{} for _ in range(width)]
    rows: dict[str, int] = {}

    def number(state: State) -> int:
        pairs = zip(columns, state, strict=True)
        positions = [known.setdefault(format_value(v), len(known) + 1) for known, v in pairs]
        return rows.setdefault(_tuple(map(str, positions)), len(rows) + 1)

    paths = [[number(state) for state in part.states] for part in parts]
    return _States(list(rows), paths), [list(column) for column in columns]


def _tuple(items: Iterable[str], separator: str = ", ") -> str:
    return f"<<{separator.join(items)}>>"


def _lines(items: Iterable[str]) -> str:
    return _tuple(items, ",\n  ")


def _tuples(rows: Iterable[Iterable[int]]) -> str:
    return _lines(_tuple(map(str, row)) for row in rows)


def _cases(actions: Sequence[Action], used: Sequence[int]) -> str:
    return "\n  [] ".join(
        ["CASE code = 0 -> FALSE", *(f"code = {c + 1} -> {actions[c]}" for c in used)]
    )


def _init_text(variables: Sequence[str]) -> str:
    lines = [
        "kconform_init ==",
        "kconform_t \\in 1..Len(kconform_traces)",
        "kconform_i = 1",
        "kconform_i <= Len(kconform_traces[kconform_t])",
        *(f"{v} = kconform_v{n}[kconform_state[{n}]]" for n, v in enumerate(variables, 1)),
    ]
    return "\n  /\\ ".join(lines)


def _next_text(variables: Sequence[str]) -> str:
    lines = [
        "kconform_next ==",
        "kconform_i < Len(kconform_traces[kconform_t])",
        "kconform_t' = kconform_t",
        "kconform_i' = kconform_i + 1",
        *(f"{v}' = kconform_v{n}[kconform_state'[{n}]]" for n, v in enumerate(variables, 1)),
        "IF kconform_i + 1 > TLCGet(kconform_t) THEN TRUE\n"
        "     ELSE IF kconform_step(kconform_actions[kconform_t][kconform_i]) THEN TRUE\n"
        "     ELSE kconform_false(kconform_i + 1, 1)",
    ]
    return "\n  /\\ ".join(lines)


def _judge_text(initial: str, invariants: Sequence[str]) -> str:
    """An invariant that is always TRUE. It judges Init too: an error there shows the state."""
    asked = [(f"kconform_i = 1 => {initial}", 0)]
    asked += [(name, number) for number, name in enumerate(invariants, 2)]
    lines = [f"IF {text} THEN TRUE ELSE kconform_false(kconform_i, {n})" for text, n in asked]
    head = f"{_JUDGE} ==\n  IF kconform_i > TLCGet(kconform_t) THEN TRUE ELSE"
    return "\n    /\\ ".join([head, *lines])


# ---- the run -------------------------------------------------------------------------------


def _run(
    prepared: PreparedModel,
    generated: GeneratedModule,
    parts: Sequence[IndexedBehaviour],
    tools: Tools,
    options: TlcOptions,
    processes: Processes,
) -> TlcResult:
    states = sum(len(part.states) for part in parts)
    with written(generated) as (module, config):
        job = TlcJob(module, config, prepared.model.search, short=states < SHORT_RUN)
        run = run_tlc(job, tools, options, processes, lambda _generated, _distinct: None)
    transcript = run.transcript
    if run.timed_out:
        raise EnvironmentProblem(f"TLC did not judge the traces in {options.timeout} seconds.")
    if transcript.success and transcript.distinct_states != states:
        raise AssertionError(
            f"TLC was given {states} states to judge and found {transcript.distinct_states}"
        )
    return run


def _stopped(run: TlcResult, parts: Sequence[IndexedBehaviour]) -> Visit | None:
    """The visit at which TLC found no value; None if it judged all. SpecError for the rest."""
    transcript = run.transcript
    if transcript.success and run.exit_code == 0:
        return None
    errors = "\n".join(transcript.errors)
    text = transcript.trace[-1].text if transcript.trace else errors
    match = {name: pattern.search(text) for name, pattern in _WHERE.items()}
    number, index = match["kconform_t"], match["kconform_i"]
    if run.exit_code not in _NO_VALUE or number is None or index is None:
        # What SANY has to say of a module stands outside of TLC's messages.
        sentence = " ".join(line.strip() for line in transcript.outside[-6:])
        raise SpecError(f"TLC cannot judge the traces: {outcome_text(run)} {sentence}".rstrip())
    # A state that was reached but not judged, or the step that leads on from one that was.
    judged = 0 if not transcript.trace or _JUDGE in errors else 1
    return parts[int(number[1]) - 1].visits[int(index[1]) - 1 + judged]


def _first_false(lines: Iterable[str], names: Sequence[str]) -> dict[int, BehaviourJudgement]:
    """What TLC printed, by behaviour: the first step at which something is false.

    A line may be there twice: TLC evaluates again when it shows an error.
    """
    false: dict[int, dict[int, set[str]]] = {}
    for line in lines:
        if match := _LINE.match(line):
            number, index, name = map(int, match.groups())
            false.setdefault(number - 1, {}).setdefault(index - 1, set()).add(names[name])
    return {
        number: BehaviourJudgement(step := min(steps), tuple(sorted(steps[step])))
        for number, steps in false.items()
    }


def _judgements(
    false: Mapping[int, BehaviourJudgement],
    behaviours: Sequence[IndexedBehaviour],
    parts: Sequence[IndexedBehaviour],
    undefined: Mapping[Visit, str],
) -> tuple[BehaviourJudgement, ...]:
    return tuple(
        false.get(number) or _unless_cut(behaviour, len(part.states), undefined)
        for number, (behaviour, part) in enumerate(zip(behaviours, parts, strict=True))
    )


def _unless_cut(
    behaviour: IndexedBehaviour, judged: int, undefined: Mapping[Visit, str]
) -> BehaviourJudgement:
    if judged == len(behaviour.states):
        return BehaviourJudgement()
    return BehaviourJudgement(judged, (), undefined[behaviour.visits[judged]])
