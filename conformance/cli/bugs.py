"""kconform bugs: which of Kafka's historical bugs the gate's oracles find."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from conformance.bugs.bench import BugResult, Effort, by_oracles, run_bench
from conformance.bugs.fault import (
    Catalogue,
    Fault,
    built_in_catalogues,
    choose,
    load_catalogue,
    patched_by_file,
)
from conformance.bugs.worker import Found, Job
from conformance.cli.options import JsonOption, SeedOption
from conformance.cli.session import Session, session
from conformance.errors import UserError
from conformance.events import JsonValue
from conformance.stages.context import Context, stage
from conformance.verdict import Verdict


def bugs(
    ids: Annotated[list[str] | None, typer.Argument(help="Faults by id; default: all.")] = None,
    patch: Annotated[
        Path | None, typer.Option(help="Run the oracles against this diff of impl/ instead.")
    ] = None,
    system: Annotated[str, typer.Option(help="The catalogue's system.")] = "",
    catalogue: Annotated[
        Path | None, typer.Option(help="A catalogue of faults of your own (docs/bugs.md).")
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Only faults that the spec sees; no bulk traces.")
    ] = False,
    traces: Annotated[int, typer.Option(min=0, help="Random traces per fault and model.")] = 5_000,
    examples: Annotated[int, typer.Option(min=1, help="Hypothesis examples per model.")] = 200,
    list_faults: Annotated[bool, typer.Option("--list", help="List the faults, run none.")] = False,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put each fault into a copy of the implementation and table which oracle kills it."""
    with session("bugs", as_json=as_json) as work:
        found = _catalogues(catalogue, system)
        chosen_seed = work.settings.seed if seed is None else seed
        effort = Effort(chosen_seed, 0 if short else traces, examples)
        if patch is not None:
            _patch(work, found[0], patch, effort)
            return
        for one in _selected(found, ids or [], short=short):
            if list_faults:
                _list(work, one.faults)
            else:
                results = run_bench(one, one.faults, effort, work.emit)
                _table(work, results, explain=bool(ids))
        if list_faults:
            raise typer.Exit


def _catalogues(path: Path | None, system: str) -> list[Catalogue]:
    found = [load_catalogue(one) for one in ([path] if path else built_in_catalogues())]
    fitting = [one for one in found if system in ("", one.system)]
    if not fitting:
        known = ", ".join(one.system for one in found)
        raise UserError(f"There is no catalogue of faults for {system!r}. Known: {known}.")
    return fitting


def _selected(found: Sequence[Catalogue], ids: Sequence[str], *, short: bool) -> list[Catalogue]:
    """The catalogues narrowed to the wanted faults; an unknown id is the user's mistake."""
    every = [fault for one in found for fault in one.faults]
    wanted = {fault.id for fault in choose(every, ids)}
    narrowed = []
    for one in found:
        faults = tuple(
            fault
            for fault in one.faults
            if fault.id in wanted and not (short and fault.unseen is not None)
        )
        if faults:
            narrowed.append(Catalogue(one.system, one.models, faults))
    return narrowed


def _list(work: Session, faults: Sequence[Fault]) -> None:
    for fault in faults:
        seen = "" if fault.unseen is None else "  (not at the spec's level)"
        work.say(f"{fault.id:<5} {fault.jira:<14} {','.join(fault.tags):<11} {fault.title}{seen}")


def _table(work: Session, results: Sequence[BugResult], *, explain: bool) -> None:
    work.say("")
    work.say(f"{'bug':<5} {'JIRA':<14} {'':<8} {'oracle':<28} {'traces':>8} {'steps':>9} "
             f"{'s':>6} {'length':>6}  title")  # fmt: skip
    for result in results:
        fault, found = result.fault, result.found
        length = "" if found.counterexample_length is None else str(found.counterexample_length)
        work.say(
            f"{fault.id:<5} {fault.jira:<14} {'killed' if found.killed else 'SURVIVED':<8} "
            f"{found.oracle:<28} {found.traces:>8,} {found.steps:>9,} {found.seconds:>6.1f} "
            f"{length:>6}  {fault.title}"
        )
        if result.reason:
            work.say(f"{'':>29}{result.reason}")
        if explain:
            _explain(work, found)


def _explain(work: Session, found: Found) -> None:
    work.say(f"\n  {found.title}" + (f"  (model {found.model})" if found.model else ""))
    for line in found.story:
        work.say(f"  {line}")


def _patch(work: Session, catalogue: Catalogue, patch: Path, effort: Effort) -> None:
    """What the gate would have said of a source patch."""
    context = Context(work.settings, work.emit, seed=effort.seed)
    with stage(context, "bugs", patch.name) as outcome, patched_by_file(patch) as folder:
        job = Job(catalogue.models, catalogue.system, effort.seed, effort.traces, effort.examples)
        found = by_oracles(job, folder, effort.timeout)
        outcome.verdict = Verdict.FAIL if found.killed else Verdict.PASS
        outcome.summary = (
            f"found by the {found.oracle}: {found.title}"
            if found.killed
            else f"nothing found in {found.traces:,} traces and {found.steps:,} steps"
        )
        row: dict[str, JsonValue] = {
            "killed": found.killed,
            "oracle": found.oracle or None,
            "traces": found.traces,
            "steps": found.steps,
            "seconds": found.seconds,
            "counterexample_length": found.counterexample_length,
        }
        outcome.figures = row
    if found.killed:
        _explain(work, found)
