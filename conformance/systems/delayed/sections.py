"""Where the threads of the code stand, as actions of the spec.

A point of the deterministic scheduler is a lock that a thread is about to take. An action begins
at one kind of point and ends before the next one that begins an action; points of other kinds in
between are those at which an interrupted step can stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType

from impl.deterministic_scheduler import FINISHED


class Kind(Enum):
    """What a thread is about to do."""

    START = auto()
    OPERATION = auto()
    STATE = auto()
    LOOKED = auto()
    COMPLETED = auto()
    SHARD = auto()
    LIST = auto()
    ESTIMATED = auto()
    QUEUE = auto()
    ADD_TO_TIMER = auto()
    TIMER_TASK = auto()
    TIMER = auto()
    CALLBACK = auto()
    EXPIRATION = auto()
    FINISHED = auto()


_EXACT: Mapping[str, Kind] = MappingProxyType(
    {
        "start": Kind.START,
        FINISHED: Kind.FINISHED,
        "callback": Kind.CALLBACK,
        "expiration": Kind.EXPIRATION,
        "looked": Kind.LOOKED,
        "lock state": Kind.STATE,
        "lock action queue": Kind.QUEUE,
        "lock delayed estimated": Kind.ESTIMATED,
        "lock delayed shard 0": Kind.SHARD,
        "lock executor-delayed timer": Kind.ADD_TO_TIMER,
        "lock timer task": Kind.TIMER_TASK,
        "lock timer bucket": Kind.TIMER,
        "lock executor-delayed counter": Kind.TIMER,
        "lock delay queue": Kind.TIMER,
    }
)


def kind_of(point: str) -> Kind:
    """The kind of a point; a lock without a name of the purgatory's is an operation's."""
    known = _EXACT.get(point)
    if known is not None:
        return known
    if point.startswith("lock watchers of "):
        return Kind.LIST
    return Kind.COMPLETED if point.endswith(" completed") else Kind.OPERATION


_TIMER = frozenset({Kind.TIMER})
_ADVANCING = frozenset({Kind.TIMER, Kind.ADD_TO_TIMER})
_NONE: frozenset[Kind] = frozenset()


@dataclass(frozen=True, slots=True)
class Section:
    """What an action passes on its way: `freely` however often, `once` each at most once.

    `same`: also once the point at which it began.
    """

    freely: frozenset[Kind] = _NONE
    once: frozenset[Kind] = _NONE
    same: bool = False


SECTIONS: Mapping[str, Section] = MappingProxyType(
    {
        "Acquire": Section(),
        "Look": Section(),
        "Release": Section(),
        "Claim": Section(),
        "Finish": Section(_TIMER, frozenset({Kind.CALLBACK})),
        "Watch": Section(once=frozenset({Kind.LIST})),
        "Count": Section(),
        "AddTimer": Section(_TIMER, frozenset({Kind.TIMER_TASK})),
        "CancelTimer": Section(_TIMER),
        "Event": Section(),
        "Snapshot": Section(once=frozenset({Kind.LIST})),
        "Drop": Section(),
        "Forget": Section(),
        "TakeAction": Section(),
        "RemoveList": Section(once=frozenset({Kind.LIST})),
        "AdvanceClock": Section(_ADVANCING),
        "SetEstimate": Section(),
        "SnapshotKeys": Section(),
        "PurgeKey": Section(same=True),
        "TakeDue": Section(),
        "OnExpiration": Section(),
    }
)
FIRST_LOOK = Section(once=frozenset({Kind.LOOKED}))
"""A request's first look: it keeps the lock, and goes on to the watch lists."""
FINISH_WITH_TRIGGER = Section(_TIMER, frozenset({Kind.CALLBACK, Kind.STATE, Kind.QUEUE}))
"""A completion that is another operation's event."""


class Role(Enum):
    """What a thread is there for."""

    REQUEST = auto()
    COMPLETER = auto()
    CANCELLER = auto()
    REAPER = auto()
    EXECUTOR = auto()


@dataclass(slots=True)
class ThreadState:
    """One thread: its last action, whether it tries a key, and what it has tried to complete."""

    name: str
    role: Role
    last: str = ""
    checking: bool = False
    claimed: str = ""

    def begin(self, action: str, point: str) -> None:
        """The thread takes an action at the point where it stands."""
        self.last = action
        if action == "Claim":
            self.claimed = point.removeprefix("lock ").removesuffix(" completed")
        if action in ("Event", "TakeAction"):
            self.checking = True

    def next_action(self, kind: Kind) -> str:
        """The action that begins at a point of this kind; empty if none does."""
        return _FIXED.get(kind) or self._by_context(kind)

    def _by_context(self, kind: Kind) -> str:
        match kind:
            case Kind.STATE:
                is_new = self.role is Role.COMPLETER and not self.checking
                return "Event" if is_new else "Look"
            case Kind.SHARD:
                return self._at_shard()
            case Kind.LIST:
                return "PurgeKey" if self.role is Role.REAPER else "Drop"
            case Kind.ESTIMATED:
                return "SetEstimate" if self.role is Role.REAPER else "Count"
            case Kind.TIMER_TASK:
                return "Finish" if self.last == "Claim" else "CancelTimer"
            case _:
                return ""

    def _at_shard(self) -> str:
        if self.role is Role.CANCELLER:
            return "RemoveList"
        if self.role is Role.REAPER:
            return "SnapshotKeys" if self.last == "SetEstimate" else "Forget"
        if not self.checking:
            return "Watch"
        return "Snapshot" if self.last in ("Event", "TakeAction") else "Forget"


_FIXED: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.OPERATION: "Acquire",
        Kind.COMPLETED: "Claim",
        Kind.QUEUE: "TakeAction",
        Kind.ADD_TO_TIMER: "AddTimer",
        Kind.EXPIRATION: "OnExpiration",
        Kind.LOOKED: "Release",
    }
)
