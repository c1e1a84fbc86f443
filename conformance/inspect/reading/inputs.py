"""What is to be read: brokers' folders, server logs, and the filters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import permutations, takewhile
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from conformance.errors import UserError
from conformance.inputs import local_path

_BROKER = re.compile(r"([A-Za-z0-9_.-]{1,64})=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Filters:
    """What of the folders is of interest; empty means all. Times are milliseconds since 1970."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    since: int | None = None
    until: int | None = None

    def takes(self, topic: str | None, partition: int | None) -> bool:
        """Whether a partition's files are read; the metadata log always is."""
        if topic is None or topic == "__cluster_metadata":
            return True
        if self.topics and topic not in self.topics:
            return False
        return not self.partitions or partition in self.partitions

    @property
    def all_time(self) -> bool:
        """Whether no time was asked for."""
        return self.since is None and self.until is None

    def in_time(self, timestamp: int) -> bool:
        """Whether a moment lies within the time that was asked for."""
        if self.since is not None and timestamp < self.since:
            return False
        return self.until is None or timestamp <= self.until


@dataclass(frozen=True, slots=True)
class Inputs:
    """One reading: what decides which rows the tables have."""

    brokers: Mapping[str, tuple[str, ...]]
    """Each broker's folders, by the name that the user gave it."""
    logs: tuple[str, ...] = ()
    """Patterns of paths of server logs (`*` and `**`), each with `NAME=` in front or not."""
    filters: Filters = Filters()
    verify: bool = True
    """Whether checksums are verified."""
    zone: str = "UTC"
    """The time zone that the server logs were written in."""
    layouts: tuple[str, ...] = ()
    """How the server logs' lines are laid out, as the user declares it; empty: recognised."""


def time_zone(name: str) -> tzinfo:
    """The zone of that name. Raises UserError."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UserError(f"{name!r} is no time zone; one looks like Europe/Berlin.") from error


def brokers_of(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`b1=/backup/broker1` and so on; a broker with several log directories is named again.

    A folder may be a URI (`s3://bucket/broker1`, `hdfs://...`). Raises UserError.
    """
    brokers: dict[str, tuple[str, ...]] = {}
    for argument in arguments:
        match = _BROKER.fullmatch(argument)
        if match is None:
            raise UserError(
                f"{argument!r} names no broker's folder: one looks like b1=/backup/broker1."
            )
        name, folder = match[1], _folder(match[2])
        if folder in brokers.get(name, ()):
            raise UserError(f"{argument} is given twice.")
        brokers[name] = (*brokers.get(name, ()), folder)
    if not brokers:
        raise UserError("No broker's folder is named: give b1=/backup/broker1 and so on.")
    return brokers


def check_places(brokers: Mapping[str, Sequence[str]], output: Path) -> None:
    """See that no file would be read twice, and that nothing is written where we read.

    Raises UserError.
    """
    roots = [
        (f"{name}={folder}", Path(folder).resolve())
        for name, folders in brokers.items()
        for folder in folders
        if "://" not in folder
    ]
    for (broker, inner), (other, outer) in permutations(roots, 2):
        if inner.is_relative_to(outer):
            raise UserError(f"{broker} lies within {other}: its files would be read twice.")
    for broker, root in roots:
        if output.resolve().is_relative_to(root):
            raise UserError(
                f"The output {output} lies within {broker}, and nothing is written into what is "
                "inspected. Name another folder with -o."
            )


def shared_folder(folders: Sequence[str]) -> str:
    """The folder that paths in the tables are relative to: a broker's own, or above its several."""
    if len(folders) == 1:
        return folders[0]
    steps = zip(*(folder.split("/") for folder in folders), strict=False)
    shared = [step[0] for step in takewhile(lambda step: len(set(step)) == 1, steps)]
    return "/".join(shared)


def _folder(text: str) -> str:
    if text.startswith("file:"):
        text = str(local_path(text))
    return text if "://" in text else str(Path(text).absolute())


def moment(text: str) -> int:
    """`2024-05-04T10:11:12.345` (UTC unless it says otherwise), or milliseconds. UserError."""
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            f"{text!r} is no time: one looks like 2024-05-04T10:11:12 or 1714817472000."
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1000)
