"""kconform audit: judge a store of traces by the spec's own text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.audit.session import spark_session
from conformance.cli.options import ColdOption, JsonOption, MasterOption
from conformance.cli.session import session
from conformance.modelcheck.check import CheckOptions
from conformance.stages.context import Context
from conformance.stages.record import audit as audit_stage
from conformance.stages.record import open_subject


def audit(
    store: Annotated[Path, typer.Argument(help="The trace store.")],
    model: Annotated[
        str | None, typer.Option(help="Audit against this model.", show_default="the store's own")
    ] = None,
    listing: Annotated[
        Path | None, typer.Option(help="Write every trace that does not pass here (Parquet).")
    ] = None,
    master: MasterOption = None,
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Refinement, invariants and action properties of every recorded trace, on Spark."""
    with session("audit", as_json=as_json) as work:
        context = Context(work.settings, work.emit, CheckOptions(cold=cold))
        subject = open_subject(context, store, model)
        with spark_session(master) as spark:
            audit_stage(context, subject, spark, listing=listing)
        if listing is not None:
            work.closing = f"traces that do not pass: {listing}"
