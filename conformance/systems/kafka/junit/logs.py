"""What tests of logs share: UnifiedLogs in directories, whose tasks do not run by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from conformance.systems.kafka.junit.steps import JUnitScene

MARKERS = MappingProxyType(
    {"Committed": "ControlRecordType.COMMIT", "Aborted": "ControlRecordType.ABORT"}
)
"""By how a transaction ends, the control record."""


@dataclass(slots=True)
class LogScene(JUnitScene):
    """One or several logs, that the test makes by their brokers' names."""

    template = "log.java.txt"
    oldest = (3, 8, 0)
    """KAFKA-17076 is gone in 3.9.2."""


def new_log(name: str, broker: str) -> str:
    """The statement that makes a log, called `name`."""
    return f'UnifiedLog {name} = newLog("{broker}");'
