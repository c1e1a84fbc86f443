"""Behaviours in ITF files; data that the format does not define is in the file's `#meta`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from conformance.events import Reason
from conformance.files import written_aside
from conformance.story.behaviour import Behaviour, Step
from conformance.tla import ItfTrace, Json, State, dump_trace, from_itf, to_itf

KEY = "kconform"
"""The key of the file's `#meta` under which ours stands."""


def trace_of(behaviour: Behaviour, about: Mapping[str, Json]) -> ItfTrace:
    """The behaviour as far as its states are known; `about` goes with it."""
    states: list[State] = []
    for step in takewhile(lambda step: None not in step.state, behaviour.steps):
        states.append(tuple(value for value in step.state if value is not None))
    actions = tuple(step.action for step in behaviour.steps[1 : len(states)])
    meta: dict[str, Json] = {
        **about,
        "departs": behaviour.departs,
        "ending": behaviour.ending,
        "observed": {name: to_itf(value) for name, value in behaviour.observed.items()},
        "reasons": [_reason_json(reason) for reason in behaviour.reasons],
    }
    return ItfTrace(behaviour.variables, tuple(states), actions, meta={KEY: meta})


def keep(path: Path, behaviour: Behaviour, about: Mapping[str, Json]) -> bool:
    """Write the behaviour as a file, whole or not at all; False if no state of it is known."""
    trace = trace_of(behaviour, about)
    if not trace.states:
        return False
    with written_aside(path) as aside:
        aside.write_text(dump_trace(trace) + "\n", encoding="utf-8")
    return True


def file_in(folder: Path, *parts: str) -> Path:
    """The file in which a behaviour is kept that is called so; the same in every run."""
    return folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', '-'.join(parts)).strip('-')}.itf.json"


def behaviour_of(trace: ItfTrace) -> Behaviour:
    """The behaviour of an ITF file from any writer."""
    meta = about(trace)
    observed = meta.get("observed")
    seen = observed.items() if isinstance(observed, Mapping) else ()
    reasons = meta.get("reasons")
    return Behaviour(
        trace.variables,
        tuple(map(Step, (None, *trace.actions), trace.states)),
        {str(name): from_itf(value) for name, value in seen},
        _text(meta, "ending") or _loop(trace),
        tuple(_reasons(reasons) if isinstance(reasons, Sequence) else ()),
        departs=meta.get("departs") is True,
    )


def about(trace: ItfTrace) -> Mapping[str, Json]:
    """Our own data in the file; empty for a file of another writer."""
    meta = trace.meta.get(KEY)
    return meta if isinstance(meta, Mapping) else {}


def _loop(trace: ItfTrace) -> str:
    return "" if trace.loop is None else f"From here it goes back to step {trace.loop}."


def _text(meta: Mapping[str, Json], key: str) -> str:
    value = meta.get(key)
    return value if isinstance(value, str) else ""


def _reason_json(reason: Reason) -> Json:
    return {
        "depth": reason.depth,
        "text": reason.text,
        "outcome": reason.outcome,
        "location": reason.location,
        "bound": reason.bound,
    }


def _reasons(rows: Sequence[Json]) -> Iterator[Reason]:
    for row in rows:
        depth = row.get("depth") if isinstance(row, Mapping) else None
        if isinstance(row, Mapping) and isinstance(depth, int):
            text, outcome = _text(row, "text"), _text(row, "outcome")
            place, bound = _text(row, "location"), _text(row, "bound")
            yield Reason(depth, text, outcome, place, bound=bound)
