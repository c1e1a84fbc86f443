"""Stage `export`: traces of a store as NDJSON, or one as ITF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.errors import UserError
from conformance.files import written_aside
from conformance.printable import counted
from conformance.stages.context import Context, stage
from conformance.traces.exporting import to_itf_text, to_ndjson
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict


def export_traces(
    context: Context, path: Path, target: Path, numbers: Sequence[int], *, replace: bool = False
) -> None:
    """Write these traces of the store at `path`, all if none is named; the suffix says how.

    Raises UserError for another suffix, for a file that is there, and for ITF of several traces;
    DataError for a store that is not whole, or has no such trace.
    """
    with stage(context, "export", str(target)) as outcome:
        if target.exists() and not replace:
            raise UserError(f"{target} is there already. Give --force to replace it.")
        store = TraceStore.open(path)
        count = len(numbers) or store.manifest.counts.traces
        lines = _lines(store, numbers, target, count)
        with written_aside(target) as aside, aside.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        outcome.verdict = Verdict.PASS
        outcome.summary = counted(count, "trace")
        outcome.figures = {"file": str(target), "traces": count}


def _lines(store: TraceStore, numbers: Sequence[int], target: Path, count: int) -> Iterator[str]:
    variables = store.manifest.identity.variables
    traces = (store.trace(number) for number in numbers) if numbers else store.traces()
    if target.name.endswith(".ndjson"):
        return to_ndjson(traces, variables)
    if not target.name.endswith(".itf.json"):
        raise UserError(
            f"{target} says no format: let its name end with .ndjson (any number of traces) or "
            ".itf.json (one trace)."
        )
    if count != 1:
        raise UserError(
            f"An ITF file holds one trace, not {count:,}: name it with --trace, or write NDJSON "
            "(a file whose name ends with .ndjson)."
        )
    return (to_itf_text(trace, variables) for trace in traces)
