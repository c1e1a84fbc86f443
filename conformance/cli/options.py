"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object (docs/json.md) on standard output.")
]
ColdOption = Annotated[
    bool, typer.Option("--cold", help="Run TLC afresh, whatever the cache holds.")
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Seed of everything random.", show_default="settings"),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="The .cfg of a module of your own (with MODEL = path/Spec.tla)."),
]
SystemOption = Annotated[
    str | None,
    typer.Option("--system", help="The system under test: a configured name or module:function."),
]
MasterOption = Annotated[
    str | None, typer.Option("--master", help="Spark master.", show_default="local[*]")
]
StoreOption = Annotated[Path, typer.Option("-o", "--output", help="The store to write.")]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", help="Write the report as one HTML page here.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
