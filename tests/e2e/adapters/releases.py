"""Releases of the store, with a table of what is known to be wrong in which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.deviations.table import Deviation, DeviationSeverity
from conformance.systems.external import of_command
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Value
from tests.e2e.adapters.conftest import PYTHON

FORGETS = Deviation(
    id="FORGETS",
    report="no report known",
    title="a removal does not count as a write",
    severity=DeviationSeverity.DATA_LOSS,
    description="Remove leaves the key's version as it was.",
    definitions={
        "Store_Write(k, v)": "/\\ version[k] + 1 \\in Versions"
        " /\\ value' = [value EXCEPT ![k] = v]"
        ' /\\ version\' = [version EXCEPT ![k] = IF v = "absent" THEN @ ELSE @ + 1]'
        " /\\ writes' = [writes EXCEPT ![k] = @ + 1]"
    },
    overrides={"Write": "Store_Write"},
    breaks=("TypeOK", "EveryWriteHasItsVersion"),
    seen=("1.0",),
    gone=("2.0",),
    path="forgets.itf.json",
)


@dataclass(frozen=True)
class Release:
    """One release, and what is wrong in it."""

    version: str
    fault: str = ""

    def __call__(self, constants: Mapping[str, Value]) -> SystemUnderTest:
        """A process of its own kind."""
        command = PYTHON.removeprefix("exec:")
        return of_command(f"{command} exec={self.fault}" if self.fault else command)(constants)

    def version_of(self, _part: str) -> str:
        return self.version

    def deviations(self) -> tuple[Deviation, ...]:
        return (FORGETS,)

    def file(self, name: str) -> Path:
        return Path(__file__).with_name("paths") / name


first = Release("1.0", "forgets")
second = Release("2.0")
third = Release("2.0", "forgets")
fourth = Release("3.0", "refuses@2")
unnamed = Release("2.1", "forgets")
"""A release that the table does not name; the one before it is right."""
unnamed_right = Release("1.1")
"""Another one; the one before it forgets."""
mended = Release("1.0")
"""A build of the first release in which nothing is wrong any more."""
