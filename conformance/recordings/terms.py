"""Which of several brokers that take themselves for a group's coordinator is it, in a recording.

A broker that was paused, or cut off, goes on as a group's coordinator after another one has loaded
the group from the log: its timers fire and it answers who is still connected to it, until it hears
that the offsets partition has another leader. Its log takes nothing any more, so nothing of it
becomes the group's: as with a request that is answered NOT_COORDINATOR, no group saw it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from conformance.recordings.folder import RecordedLine
from conformance.recordings.lines import JsonObject

_LOADS = ("onGroupLoaded", "onLoaded")
"""GroupMetadataManager.loadGroup's callback (3.x); GroupMetadataManager.onLoaded (4.x)."""
_UNLOADS = ("onGroupUnloaded", "onUnloaded", "onResignation")
_READS = ("replay",)
"""What a broker reads of a group before it is its coordinator."""


@dataclass(frozen=True, slots=True)
class GroupObservation:
    """The group after a step of its coordinator."""

    seen: RecordedLine
    takes_over: bool = False
    """Whether this is the first that another coordinator, or another process of it, shows."""
    loaded: bool = False
    """Whether it was in the log then; else the step created it."""


@dataclass(frozen=True, slots=True)
class Zombie:
    """A broker that takes itself for the coordinator, between two times, and is not."""

    node: str
    since: int
    until: int

    def has(self, node: str, time: int) -> bool:
        """Whether it is about this broker at this time."""
        return node == self.node and self.since <= time <= self.until


@dataclass(frozen=True, slots=True)
class Terms:
    """A group's coordinators, one after the other."""

    observations: tuple[GroupObservation, ...]
    zombies: tuple[Zombie, ...]

    def of_a_zombie(self, node: str, time: int) -> bool:
        """Whether what the broker does then is of no coordinator."""
        return any(zombie.has(node, time) for zombie in self.zombies)

    def answered_by_a_zombie(self, node: str, asked: int, answered: int) -> bool:
        """Whether the broker was none, at the latest when it answered, and asked while it was.

        The answer may be seen when it has heard that it is none: a millisecond after that.
        """
        return any(
            zombie.node == node and zombie.since <= answered and asked <= zombie.until
            for zombie in self.zombies
        )


def terms(observed: Iterable[RecordedLine], document: JsonObject) -> Terms:
    """The observations of the brokers that were the coordinator, and when others thought so.

    `told` is the recording's manifest: a process that ends forgets its groups.
    """
    ends = [
        RecordedLine(fault["time"], "recording.json", str(fault["node"]), {"ended": True})
        for fault in document.get("faults", ())
        if fault["action"] in ("kill", "stop") and fault.get("node") and not fault.get("problem")
    ]
    reader = _GroupReader()
    for seen in sorted(chain(observed, ends), key=lambda line: line.time):
        reader.read(seen)
    return reader.terms()


class _GroupReader:
    """Reads what brokers tell of a group in its order."""

    def __init__(self) -> None:
        self._holder: str | None = None
        self._began = False
        self._knows: dict[str, int | None] = {}
        """Brokers with the group in memory -> since when another one is the coordinator."""
        self._observations: list[GroupObservation] = []
        self._zombies: list[Zombie] = []

    def terms(self) -> Terms:
        """What came of it."""
        left = [Zombie(node, since, _EVER) for node, since in self._knows.items() if since]
        return Terms(tuple(self._observations), (*self._zombies, *left))

    def read(self, seen: RecordedLine) -> None:
        """One line of an agent, or the end of a process."""
        operation = str(seen.body.get("operation", ""))
        if "ended" in seen.body or operation.startswith(_UNLOADS):
            self._forget(seen.node, seen.time)
        elif operation.startswith(_LOADS):
            self._take_over(seen, loaded=True)
        elif operation.startswith(_READS):
            return
        elif seen.node == self._holder:
            self._observations.append(GroupObservation(seen))
        elif seen.node not in self._knows:
            self._take_over(seen, loaded=False)

    def _forget(self, node: str, time: int) -> None:
        since = self._knows.pop(node, None)
        if since:
            self._zombies.append(Zombie(node, since, time))
        if node == self._holder:
            self._holder = None

    def _take_over(self, seen: RecordedLine, *, loaded: bool) -> None:
        state = seen.body["state"]
        if not loaded and (state is None or state["state"] == "Dead"):
            return  # a timer of a group that it has forgotten
        self._forget(seen.node, seen.time)
        for other, since in self._knows.items():
            self._knows[other] = since or seen.time
        self._knows[seen.node] = None
        self._holder = seen.node
        self._observations.append(GroupObservation(seen, self._began, loaded))
        self._began = True


_EVER = 2**63 - 1
