"""Departures that the maker of a system declares for a run: a table in a file of his own.

A broker at a port carries its table in its name (`wire:HOST:PORT?deviations=...`). For a build of
Kafka, an adapter outside of this process or a factory of a user the table stands beside the name,
in an environment variable: worker processes inherit it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from conformance.deviations.table import DeclaredTable, Deviating, Deviation
from conformance.errors import UserError
from conformance.registry import BUILT_IN, factory_path, load_factory
from conformance.systems.capabilities import FactoryCapabilities

DECLARED = "_KCONFORM_DEVIATIONS"
"""The environment variable: a table's absolute path. Set for workers, never by a user."""
_SUFFIX = ".toml"


def declare(table: str | None, system: str) -> None:
    """Let this process and its workers judge the system by the table as well; None: by none.

    UserError for a system of ours, and for what is no table.
    """
    os.environ.pop(DECLARED, None)
    if table is None:
        return
    if factory_path(system) in BUILT_IN.values():
        raise UserError(
            f"--deviations declares how an implementation of somebody else departs; {system} is "
            "kconform's own. Leave --deviations out, or name another --system."
        )
    if not table.endswith(_SUFFIX):
        raise UserError(
            f"--deviations {table}: the table of {system} is a file of your own, FILE{_SUFFIX}. "
            "Only a broker at a port (wire:HOST:PORT) can be said to be another system."
        )
    path = Path(table).resolve()
    DeclaredTable(path).deviations()  # a mistake in it is said before anything runs
    os.environ[DECLARED] = str(path)


def declared() -> DeclaredTable | None:
    """The table of this run, if there is one."""
    path = os.environ.get(DECLARED)
    return DeclaredTable(Path(path)) if path else None


def deviating(factory: str) -> Deviating | None:
    """The table of the factory at this path, with what this run declares; None if both are empty.

    What is declared takes the place of a deviation of the same id.
    """
    made_by: object = load_factory(factory)
    own = FactoryCapabilities(made_by).deviating
    own = own if own is not None and own.deviations() else None
    of_run = None if factory in BUILT_IN.values() else declared()
    if of_run is None:
        return own
    return of_run if own is None else _Joined(own, of_run)


@dataclass(frozen=True, slots=True)
class _Joined:
    """A system's own table, and what a run declares of it."""

    own: Deviating
    of_run: DeclaredTable

    def version_of(self, part: str) -> str:
        return self.own.version_of(part)

    def deviations(self) -> tuple[Deviation, ...]:
        more = self.of_run.deviations()
        ids = {deviation.id for deviation in more}
        return (*(known for known in self.own.deviations() if known.id not in ids), *more)

    def file(self, name: str) -> Path:
        path = self.of_run.file(name)
        return path if path.exists() else self.own.file(name)


def table_of(system: str) -> Deviating | None:
    """The table that the name of a broker at a port refers to; None without one.

    It is a file, or the table of the system with this name. UserError if that has none.
    """
    if not system:
        return None
    if system.endswith(_SUFFIX):
        table = DeclaredTable(Path(system))
        table.deviations()  # a mistake in it is said before anything runs
        return table
    known = FactoryCapabilities(load_factory(factory_path(system))).deviating
    if known is None:
        raise UserError(
            f"{system} has no table of deviations. Name a system that has one, "
            "deviations=kafka-VERSION for a broker that is Apache Kafka, or a table of your own, "
            "deviations=FILE.toml."
        )
    return known
