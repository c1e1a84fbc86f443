"""Exports traces of a store: NDJSON, one event per line, or one ITF file per trace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from conformance.errors import DataError
from conformance.tla import ItfTrace, dump_trace, to_itf
from conformance.traces.model import PartialState, Trace, complete, is_complete, values_of


def to_ndjson(traces: Iterable[Trace], variables: Sequence[str]) -> Iterator[str]:
    """The events of the traces, one line each, as `conformance.judge.reading` reads them."""
    for trace in traces:
        for number, state in enumerate(trace.states):
            event: dict[str, object] = {"trace": trace.trace_id, "step": number}
            if number:
                action = trace.steps[number - 1].action
                event["action"] = {"name": action.name, "args": [to_itf(a) for a in action.args]}
            event["state"] = _state(variables, state)
            yield json.dumps(event, ensure_ascii=False)


def _state(variables: Sequence[str], state: PartialState) -> dict[str, object]:
    return {name: to_itf(value) for name, value in values_of(variables, state).items()}


def to_itf_text(trace: Trace, variables: Sequence[str]) -> str:
    """The trace as an ITF file; DataError if a variable was not observed, which ITF lacks."""
    if not all(map(is_complete, trace.states)):
        raise DataError(
            f"Trace {trace.trace_id} has variables that were not observed, which ITF cannot say. "
            "Export it as NDJSON."
        )
    return dump_trace(
        ItfTrace(
            variables=tuple(variables),
            states=tuple(map(complete, trace.states)),
            actions=tuple(step.action for step in trace.steps),
            meta={"trace": trace.trace_id, "seed": trace.seed, "end": trace.end.value},
        )
    )
