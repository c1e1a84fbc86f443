"""TLC as the judge's referee: a trace specification of the same observations.

A generated module extends the spec by three variables: which recording, how many of its events are
explained, and how many unseen steps were taken since. Its steps are the recording's next event, or
an unseen one while the bound allows it; for each recording TLC prints the most events that it
explained. One run, breadth first, judges many recordings: the TLC that kconform brings along has
no other order. What it compares is how many events of each can be explained.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from conformance.errors import SpecError
from conformance.judge.events import Event, Recording
from conformance.modelcheck.form import Check
from conformance.modelcheck.generate import (
    GeneratedModule,
    config_text,
    definitions,
    model_values,
    module_text,
)
from conformance.modelcheck.outcome import outcome_text
from conformance.modelcheck.prepare import PreparedModel, written
from conformance.modelcheck.tlc import Processes, TlcJob, TlcOptions, run_tlc
from conformance.tla import (
    Action,
    ActionPattern,
    ObservedPart,
    PartialRecord,
    Place,
    Spec,
    Tools,
    Value,
    format_value,
)

__all__ = ["Refereed", "referee"]

_EXPLAINED = "kconform: explained"
_LINE = re.compile(rf'^<<"{_EXPLAINED}", (\d+), (\d+)>>$')


@dataclass(frozen=True, slots=True)
class Refereed:
    """How many events of each recording TLC explained, and what it took."""

    explained: tuple[int, ...]
    states: int
    seconds: float


def referee(
    prepared: PreparedModel,
    recordings: Sequence[Recording],
    silent: Sequence[ActionPattern],
    steps: int,
    tools: Tools,
    options: TlcOptions,
    processes: Processes,
    *,
    each: int | None = None,
) -> Refereed:
    """Have TLC explain recordings of a total order, from the model's initial states.

    At most `steps` unseen steps in a row, `each` of one process.
    SpecError if TLC cannot read the module or meets a formula without a value.
    """
    generated = _Writer(prepared, recordings, silent, steps, each).generated()
    with written(generated) as (module, config):
        job = TlcJob(module, config, prepared.model.search)
        run = run_tlc(job, tools, options, processes, lambda _generated, _distinct: None)
    if not run.transcript.success:
        told = " ".join(line.strip() for line in run.transcript.outside[-6:])
        raise SpecError(f"TLC cannot judge the recordings: {outcome_text(run)} {told}".rstrip())
    most = [0] * len(recordings)
    for line in run.transcript.outside:
        if found := _LINE.match(line):
            number, explained = map(int, found.groups())
            most[number - 1] = max(most[number - 1], explained)
    return Refereed(tuple(most), run.transcript.distinct_states or 0, run.seconds)


@dataclass(slots=True)
class _Writer:
    """Writes the module: each value stands in a table once, events are rows of numbers.

    Which places an event shows is its *shape*; recordings have few. So TLC looks a value up by its
    number, and goes through no list that grows with the recordings.
    """

    prepared: PreparedModel
    recordings: Sequence[Recording]
    silent: Sequence[ActionPattern]
    steps: int
    each: int | None
    _steps: dict[str, int] = field(default_factory=dict)
    _shapes: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def generated(self) -> GeneratedModule:
        """Module and configuration."""
        model, variables = self.prepared.model, self.prepared.spec.variables
        rows = [[self._row(event) for event in one.events] for one in self.recordings]
        held = sorted(
            model_values(
                value for one in self.recordings for event in one.events for value in _values(event)
            )
            - {constant.name for constant in self.prepared.module.constants}
        )
        name = f"{model.spec}__recordings"
        body = [
            *definitions(model),
            "VARIABLES kconform_t, kconform_i, kconform_k, kconform_p",
            f"kconform_values == {_tuple(self._seen)}",
            f"kconform_events == {_lines(map(_tuple, rows))}",
            f"kconform_vars == <<{', '.join(variables)}>>",
            f"kconform_step(n) == {_cases(self._steps)}",
            f"kconform_now(n, seen) == {_cases(self._shapes)}",
            f"kconform_none == {self._none()}",
            f"kconform_silent == {self._unseen()}",
            f"ASSUME \\A t \\in 1..{len(self.recordings)} : TLCSet(t, 0)",
            _FRAME.format(init=model.check.init or "Init", steps=self.steps, label=_EXPLAINED),
        ]
        text = module_text(name, model.spec, body, held)
        check = Check(
            init="kconform_init", next="kconform_next", constraints=("kconform_unexplained",)
        )
        return GeneratedModule(name, text, config_text(model, check, held), {})

    def _none(self) -> str:
        """The silent steps of each process immediately after an explained event."""
        if self.each is None:
            return "0"
        actions = self.prepared.spec.select(self.silent).actions
        processes = sorted({format_value(action.args[0]) for action in actions if action.args})
        return f"[p \\in {{{', '.join(processes)}}} |-> 0]"

    def _unseen(self) -> str:
        """An unseen step; each counted for its process if that is bounded."""
        actions = self.prepared.spec.select(self.silent).actions
        return "(" + r" \/ ".join(map(self._counted, actions)) + ")" if actions else "FALSE"

    def _counted(self, action: Action) -> str:
        if self.each is None or not action.args:
            return f"({action} /\\ UNCHANGED kconform_p)"
        process = format_value(action.args[0])
        return (
            f"({action} /\\ kconform_p[{process}] < {self.each} /\\ "
            f"kconform_p' = [kconform_p EXCEPT ![{process}] = @ + 1])"
        )

    def _row(self, event: Event) -> str:
        """An event: its step, and the observations before and after it as shape and values."""
        step = _choice(self.prepared.spec, event.actions) if event.actions else ""
        return _tuple(
            [str(_number(self._steps, step)), *self._shown(event.before), *self._shown(event.after)]
        )

    def _shown(self, parts: Sequence[ObservedPart]) -> tuple[str, str]:
        """0 where nothing was seen."""
        shape = " /\\ ".join(_place_shows(part.place, n) for n, part in enumerate(parts, 1))
        numbers = [str(_number(self._seen, format_value(part.value))) for part in parts]
        return str(_number(self._shapes, f"({shape})" if shape else "")), _tuple(numbers)


_FRAME = """kconform_init ==
  /\\ {init}
  /\\ kconform_t \\in 1..Len(kconform_events)
  /\\ kconform_i = 0
  /\\ kconform_k = 0
  /\\ kconform_p = kconform_none

kconform_event ==
  /\\ kconform_i < Len(kconform_events[kconform_t])
  /\\ \\E event \\in {{kconform_events[kconform_t][kconform_i + 1]}} :
       /\\ kconform_now(event[2], event[3])
       /\\ IF event[1] = 0 THEN UNCHANGED kconform_vars ELSE kconform_step(event[1])
       /\\ kconform_now(event[4], event[5])'
  /\\ kconform_i' = kconform_i + 1
  /\\ kconform_k' = 0
  /\\ kconform_p' = kconform_none
  /\\ UNCHANGED kconform_t
  /\\ IF TLCGet(kconform_t) < kconform_i + 1
     THEN /\\ TLCSet(kconform_t, kconform_i + 1)
          /\\ PrintT(<<"{label}", kconform_t, kconform_i + 1>>)
     ELSE TRUE

kconform_unseen ==
  /\\ kconform_k < {steps}
  /\\ kconform_silent
  /\\ kconform_k' = kconform_k + 1
  /\\ UNCHANGED <<kconform_t, kconform_i>>

kconform_next == kconform_event \\/ kconform_unseen

kconform_unexplained == TLCGet(kconform_t) < Len(kconform_events[kconform_t])"""


def _number(table: dict[str, int], text: str) -> int:
    return table.setdefault(text, len(table) + 1) if text else 0


def _lines(items: Iterable[str]) -> str:
    return "<<" + ",\n  ".join(items) + ">>"


def _tuple(items: Iterable[str]) -> str:
    return f"<<{', '.join(items)}>>"


def _cases(table: dict[str, int]) -> str:
    arms = ["CASE n = 0 -> TRUE", *(f"n = {number} -> {text}" for text, number in table.items())]
    return "\n  [] ".join(arms)


def _choice(spec: Spec, patterns: Sequence[ActionPattern]) -> str:
    """The instances that the patterns admit, as a disjunction; FALSE of none."""
    actions = spec.select(patterns).actions
    return "(" + r" \/ ".join(map(str, actions)) + ")" if actions else "FALSE"


def _place_shows(place: Place, number: int) -> str:
    """That a place has the value of this number in `seen`; an entry that is not there has none."""
    texts, found = [], place.variable
    for key in place.path:
        texts.append(f"{format_value(key)} \\in DOMAIN {found}")
        found += f"[{format_value(key)}]"
    seen = found if place.aspect is None else f"({place.aspect.text(found)})"
    texts.append(f"{seen} = kconform_values[seen[{number}]]")
    return " /\\ ".join(texts)


def _values(event: Event) -> Iterable[tuple[Value, ...]]:
    for part in (*event.before, *event.after):
        yield _values_of(part)
    for pattern in event.actions:
        for seen in pattern.args or ():
            if isinstance(seen, PartialRecord):
                yield from map(_values_of, seen.parts)
            elif seen is not None:
                yield (seen,)


def _values_of(part: ObservedPart) -> tuple[Value, ...]:
    aspect = part.place.aspect
    member = () if aspect is None or aspect.member is None else (aspect.member,)
    return (*part.place.path, *member, part.value)
