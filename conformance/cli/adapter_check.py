"""kconform adapter-check: checks an adapter against the adapter protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import JsonOption
from conformance.cli.session import session
from conformance.stages.adapter_check import adapter_check as check_stage
from conformance.stages.adapter_check import adapter_of
from conformance.stages.context import Context


def adapter_check(
    command: Annotated[
        str, typer.Argument(help="The adapter's command, or exec:COMMAND, tcp:HOST:PORT.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="A model of its specification; default: the smallest that it takes.",
            autocompletion=model_names,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Hold an adapter in any language against the adapter protocol, point by point."""
    with session("adapter-check", as_json=as_json) as work:
        factory = adapter_of(command)
        work.header["adapter"] = factory.name
        material = check_stage(Context(work.settings, work.emit), factory, model)
        work.header["model"] = material.model
