"""Departures that the maker of a system declares for a run: a table in a file of his own.

A broker at a port carries its table in its name (`wire:HOST:PORT?deviations=...`). For a build of
Kafka, an adapter outside of this process or a factory of a user the table stands beside the name,
in an environment variable: worker processes inherit it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from conformance.deviations.table import DeclaredTable, Deviating, Deviation, load_choices
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
    if load_choices(path):
        raise UserError(
            f"{path} has a [[choice]]: only kconform's own tables say what a specification leaves "
            "open. Declare a departure as [[deviation]]."
        )
    os.environ[DECLARED] = str(path)


def declared() -> DeclaredTable | None:
    """The table of this run, if there is one."""
    path = os.environ.get(DECLARED)
    return DeclaredTable(Path(path)) if path else None


def deviating(factory: str) -> Deviating | None:
    """The table of the factory at this path, with what this run declares; None if both are empty.

    What is declared takes the place of a deviation of the same id, and what it claims to be mended
    is expected to be gone. UserError for such a claim about a deviation that is not in the table.
    """
    made_by: object = load_factory(factory)
    own = FactoryCapabilities(made_by).deviating
    own = own if own is not None and own.deviations() else None
    of_run = None if factory in BUILT_IN.values() else declared()
    if of_run is None:
        return own
    known = () if own is None else own.deviations()
    unknown = sorted({*of_run.mended()} - {deviation.id for deviation in known})
    if unknown:
        ids = ", ".join(deviation.id for deviation in known) or "none"
        raise UserError(
            f"{of_run.path} claims that {unknown[0]} is mended, and no deviation of {factory} has "
            f"this id. Name one of its table: {ids}."
        )
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
        ids, mended = {deviation.id for deviation in more}, self.of_run.mended()
        left = (known for known in self.own.deviations() if known.id not in ids)
        return (*(replace(known, mended=known.id in mended) for known in left), *more)

    def file(self, name: str) -> Path:
        path = self.of_run.file(name)
        return path if path.exists() else self.own.file(name)


def table_of(system: str) -> Deviating | None:
    """The table with this name: a file, or that of a system; None without a name.

    It is of a broker at a port, or of what left a recording. UserError if the system has none.
    """
    if not system:
        return None
    if system.endswith(_SUFFIX):
        table = DeclaredTable(Path(system))
        if table.mended():  # a mistake in it is said before anything runs
            raise UserError(
                f"{system} claims that deviations are mended, and no other table is named. "
                "Leave `mended` out: what the file does not declare is not set aside."
            )
        return table
    known = FactoryCapabilities(load_factory(factory_path(system))).deviating
    if known is None:
        raise UserError(
            f"{system} has no table of deviations. Name a system that has one, "
            "deviations=kafka-VERSION for a broker that is Apache Kafka, or a table of your own, "
            "deviations=FILE.toml."
        )
    return known
