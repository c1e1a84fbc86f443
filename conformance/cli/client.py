"""kconform client: a real client in the loop, its coordinator played by the specification."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import CompareOption, JsonOption, ReportOption, SeedOption
from conformance.cli.session import session
from conformance.stages.client import ClientTestRequest, coverage_lines
from conformance.stages.client import client as client_stage
from conformance.stages.context import Context


def client(
    command: Annotated[
        str,
        typer.Option(
            "--command",
            help="Starts the consumer; {bootstrap}, {topic}, {group} and {instance} are filled in.",
        ),
    ],
    examples: Annotated[int, typer.Option(min=1, help="Number of examples.")] = 100,
    seed: SeedOption = None,
    example: Annotated[
        int | None, typer.Option(min=0, help="Run this example only, by its number.")
    ] = None,
    variant: Annotated[
        str, typer.Option(help="The variant of clients that it is one of: java, librdkafka.")
    ] = "java",
    deviations: Annotated[
        Path | None,
        typer.Option(
            "--deviations",
            help="A table of departures that the client's maker declares: FILE.toml.",
        ),
    ] = None,
    requests: Annotated[
        int, typer.Option(min=1, help="Requests of an example before the client may settle.")
    ] = 15,
    jobs: Annotated[int, typer.Option(min=1, help="Examples side by side.")] = 4,
    patience: Annotated[
        float, typer.Option(min=1.0, help="Seconds that a client may owe a request.")
    ] = 8.0,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a real client join a coordinator that gives every answer the specification allows.

    What the client sends, and its callbacks, are judged by the member's side of the specification.
    """
    with session("client", as_json=as_json, report=report, compare=compare) as work:
        chosen = work.settings.seed if seed is None else seed
        context = Context(work.settings, work.emit, seed=chosen)
        only = () if example is None else (example,)
        request = ClientTestRequest(
            command, variant, examples, requests, jobs, patience, only, deviations
        )
        work.header["seed"] = chosen
        tally = client_stage(context, request)
        for line in coverage_lines(tally):
            work.say(line)
