"""A release's own classes as a judge, in the bridge's JVM: GroupCoordinatorShard and its kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from conformance.load.partition import LoggedRecord
from conformance.load.topics import StateTopic
from conformance.load.units import UnitRecords
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.kafka.factory import bridge_channel

_AT_ONCE = 500
"""Loads in one line to the JVM."""


@dataclass(frozen=True, slots=True)
class ClassesLoad:
    """What a load by the classes came to."""

    failed: int | None
    """The record at which it failed; None: it loaded."""
    error: str
    """The exception, as it reports itself."""
    state: str
    """A digest of what was loaded: equal for equal states."""


class ReleaseClasses:
    """The classes of one release, in a JVM of their own."""

    def __init__(self, channel: AdapterChannel) -> None:
        self.channel = channel

    def loads(
        self, topic: StateTopic, unit: UnitRecords, variants: Sequence[Sequence[int]]
    ) -> Iterator[ClassesLoad]:
        """Loads of a unit's records, each by the numbers of those that it meets."""
        records = [_plain(record) for record in unit.records]
        self.channel.ask("load_log", topic=topic.name, records=records)
        for start in range(0, len(variants), _AT_ONCE):
            answers = self.channel.ask("load_replay", kept=variants[start : start + _AT_ONCE])
            for failed, error, state in cast("list[tuple[int, str, str]]", answers):
                yield ClassesLoad(None if failed < 0 else failed, error, state)

    def state(self, kept: Sequence[int]) -> str:
        """What a load of the last unit comes to, as text."""
        return cast("str", self.channel.ask("load_state", kept=kept))


@contextmanager
def release_classes(release: str) -> Iterator[ReleaseClasses]:
    """The classes of a release. EnvironmentProblem if they cannot be had."""
    channel = bridge_channel(release)
    try:
        yield ReleaseClasses(channel)
    finally:
        CHANNELS.give_back(channel)


def _plain(record: LoggedRecord) -> list[object]:
    return [
        record.offset,
        record.producer,
        record.producer_epoch,
        record.key,
        record.value,
        record.commit,
    ]
