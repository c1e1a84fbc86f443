"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from conformance.modelcheck.manifest import model_name
from conformance.resources import models_dir


def model_names(incomplete: str) -> list[str]:
    """Models to complete a name with: all that belong to kconform, also by their last part."""
    known = [model_name(path) for path in sorted(models_dir().rglob("*.toml"))]
    names = [*known, *(name.rpartition("/")[2] for name in known)]
    return [name for name in names if name.startswith(incomplete)]


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
    typer.Option(
        "--system",
        help="The system under test: a configured name, module:function, exec:COMMAND, "
        "tcp:HOST:PORT or kafka-VERSION.",
    ),
]
MasterOption = Annotated[
    str | None, typer.Option("--master", help="Spark master.", show_default="local[*]")
]
StoreOption = Annotated[Path, typer.Option("-o", "--output", help="The store to write.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there already.")]
ReportOption = Annotated[
    Path | None,
    typer.Option("--report", help="Write report.html, report.json and junit.xml to this folder."),
]
CompareOption = Annotated[
    Path | None,
    typer.Option("--compare", help="An earlier report.json: what is new since, what is gone."),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Fail on known deviations of the system too."),
]
KafkaLibOption = Annotated[
    Path | None,
    typer.Option("--kafka-lib", help="Folder of jars for the system `kafka`: your own build."),
]


def use_kafka_lib(folder: Path | None) -> None:
    """Let this process and its workers find the build: a system's name travels alone."""
    if folder is not None:
        os.environ["KCONFORM_KAFKA_LIB"] = str(folder.resolve())
