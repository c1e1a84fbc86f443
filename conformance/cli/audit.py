"""kconform audit: judge a store of traces by the spec's own text."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from conformance.audit.choice import FEW
from conformance.audit.result import unjudged_lines
from conformance.cli.completion import model_names
from conformance.cli.options import (
    ColdOption,
    CompareOption,
    JsonOption,
    MasterOption,
    ReportOption,
    SeedOption,
)
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.files import check_folder
from conformance.modelcheck.check import CheckOptions
from conformance.stages.audit import audit as audit_stage
from conformance.stages.context import Context
from conformance.stages.referee import referee
from conformance.stages.subject import open_subject
from conformance.workers import workers_for


def audit(
    store: Annotated[Path, typer.Argument(help="The trace store.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="Audit against this model.",
            show_default="the store's own",
            autocompletion=model_names,
        ),
    ] = None,
    listing: Annotated[
        Path | None, typer.Option(help="Write every trace that does not pass here (Parquet).")
    ] = None,
    referees: Annotated[
        int | None,
        typer.Option(
            "--referee", min=1, help="Have TLC judge this many of the traces, and compare."
        ),
    ] = None,
    seed: SeedOption = None,
    master: MasterOption = None,
    cold: ColdOption = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refinement, invariants and action properties of every recorded trace."""
    with session("audit", as_json=as_json, report=report, compare=compare) as work:
        if listing is not None and listing.exists():
            raise UserError(
                f"{listing} is there already. Name another place with --listing, or remove it."
            )
        if listing is not None:
            check_folder(listing)
        work.keep_divergences()
        chosen = work.settings.seed if seed is None else seed
        context = Context(work.settings, work.emit, CheckOptions(cold=cold), chosen)
        subject = open_subject(context, store, model)
        with _listing(listing, wanted=referees is not None) as listed:
            counts, jobs = subject.store.manifest.counts, context.settings.jobs
            sql = counts.states > FEW
            with workers_for(
                counts.traces, counts.steps, master=master, processes=jobs, sql=sql
            ) as workers:
                result = audit_stage(context, subject, workers, listing=listed)
            for choice in result.choices:
                work.say(f"  {choice}")
            for line in unjudged_lines(result):
                work.say(line)
            if referees is not None and listed is not None:
                referee(context, subject, listed, traces=referees)
        if listing is not None:
            work.closing = f"traces that do not pass: {listing}"


@contextmanager
def _listing(given: Path | None, *, wanted: bool) -> Iterator[Path | None]:
    """Where the audit lists what does not pass: the user's place, or one for the referee only."""
    if given is not None or not wanted:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="kconform-audit-") as folder:
        yield Path(folder) / "listing"
