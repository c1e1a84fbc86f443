"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer

from conformance.cli.completion import system_names
from conformance.deviations.declared import declare
from conformance.errors import UserError

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


def configured(model: str, config: Path | None) -> str:
    """A model's name, with the configuration that the user gives beside a module of his own."""
    if config is None:
        return model
    if not model.endswith(".tla"):
        raise UserError("--config goes with a path/Spec.tla; a model has its own configuration.")
    return f"{model}:{config}"


def all_configured(models: Sequence[str], config: Path | None) -> list[str]:
    """The same of several. UserError for a configuration of nothing."""
    return [configured(model, config) for model in models or ([] if config is None else [""])]


def constants_of(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """What an option says of constants, NAME=EXPRESSION each. UserError for another form."""
    constants: dict[str, str] = {}
    for text in given or ():
        name, equals, expression = text.partition("=")
        if not equals or not expression.strip():
            raise UserError(f"{option} {text!r}: give NAME=EXPRESSION, such as 'Epochs=1..9'.")
        constants[name.strip()] = expression.strip()
    return constants


SystemOption = Annotated[
    str | None,
    typer.Option(
        "--system",
        help="The system under test: a configured name, module:function, exec:COMMAND, "
        "tcp:HOST:PORT, wire:HOST:PORT or kafka-VERSION.",
        autocompletion=system_names,
    ),
]
ApiVersionOption = Annotated[
    list[str] | None,
    typer.Option("--api-version", help="With wire: the version of a request, as JoinGroup=5."),
]
TlsCaOption = Annotated[
    Path | None, typer.Option("--tls-ca", help="With wire: TLS; a PEM file of whom to trust.")
]
WireConfigOption = Annotated[
    Path | None,
    typer.Option("--wire-config", help="With wire: a Kafka client's properties (TLS, SASL)."),
]
FailOverOption = Annotated[
    str | None,
    typer.Option(
        "--fail-over", help="With wire: a command that moves the group coordinator, or `move`."
    ),
]
DeviationsOption = Annotated[
    str | None,
    typer.Option(
        "--deviations",
        help="A table of departures of --system, FILE.toml; with wire also what the broker is.",
    ),
]


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """What the options say of a system of somebody else: all but the last of a broker at a port."""

    api_versions: Sequence[str] | None
    tls_ca: Path | None
    config: Path | None
    fail_over: str | None
    deviations: str | None

    def name(self, system: str | None) -> str | None:
        """The system's name with all that is said of a broker: a worker process gets a name.

        The table of another system is declared for this process and its workers. UserError for
        options that do not fit the system.
        """
        pairs = [_version(text) for text in self.api_versions or ()]
        pairs += [("tls-ca", str(self.tls_ca.resolve()))] if self.tls_ca else []
        pairs += [("config", str(self.config.resolve()))] if self.config else []
        pairs += [("fail-over", self.fail_over)] if self.fail_over else []
        if system is None or not system.startswith(_AT_A_PORT):
            self._refuse(pairs, system)
            declare(self.deviations, system or "")
            return system
        pairs += [("deviations", self.deviations)] if self.deviations else []
        return f"{system}{'&' if '?' in system else '?'}{urlencode(pairs)}" if pairs else system

    def _refuse(self, pairs: Sequence[tuple[str, str]], system: str | None) -> None:
        if pairs:
            raise UserError(
                "--api-version, --tls-ca, --wire-config and --fail-over say what a broker is and "
                "how to reach it: they go with --system wire:HOST:PORT."
            )
        if self.deviations and system is None:
            raise UserError(
                "--deviations declares how the system of somebody else departs from the "
                "specification: it goes with --system."
            )


_AT_A_PORT = "wire:"


def _version(text: str) -> tuple[str, str]:
    api, equals, version = text.partition("=")
    if not equals or not version.isdecimal():
        raise UserError(f"--api-version takes a request and a number, JoinGroup=5; not {text!r}.")
    return api, version


MasterOption = Annotated[
    str | None, typer.Option("--master", help="Spark master.", show_default="local[*]")
]
StoreOption = Annotated[Path, typer.Option("-o", "--output", help="The store to write.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
ReportOption = Annotated[
    Path | None,
    typer.Option("--report", help="Write report.html, report.json and junit.xml to this folder."),
]
CompareOption = Annotated[
    Path | None,
    typer.Option("--compare", help="An earlier report.json, to list new and resolved findings."),
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
