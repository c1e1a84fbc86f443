"""Makes the systems, and says which release's rules the implementation follows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.deviations.declared import table_of
from conformance.deviations.table import Deviating, Deviation
from conformance.systems.consumer.system import ConsumerSystem
from conformance.systems.wire.consumer.reach import SPECIFICATION, settings_of
from conformance.tla import Value

RELEASE = "kafka-4.4.0"
"""`impl` has this release's rules; the specification has those of October 2024."""


class ConsumerFactory:
    """`Deviating`: what a release of Kafka does otherwise than the specification, `impl` does."""

    def __call__(self, constants: Mapping[str, Value]) -> ConsumerSystem:
        """A system for a model's constants."""
        return ConsumerSystem(settings_of(constants), constants)

    @property
    def _release(self) -> Deviating:
        table = table_of(RELEASE)
        assert table is not None, "a release of Kafka has a table"
        return table

    def version_of(self, part: str) -> str:
        """The release."""
        return self._release.version_of(part)

    def deviations(self) -> tuple[Deviation, ...]:
        """The release's departures from this specification, but for what breaks a formula there:
        `impl` has no such errors of the release."""
        known = self._release.deviations()
        return tuple(
            item
            for item in known
            if item.specification == SPECIFICATION
            and not (item.breaks and item.stands_for(self._release.version_of("")))
        )

    def file(self, name: str) -> Path:
        """Where a saved path of the table lies."""
        return self._release.file(name)
