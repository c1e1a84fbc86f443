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


class SectionKind(Enum):
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


_EXACT: Mapping[str, SectionKind] = MappingProxyType(
    {
        "start": SectionKind.START,
        FINISHED: SectionKind.FINISHED,
        "callback": SectionKind.CALLBACK,
        "expiration": SectionKind.EXPIRATION,
        "looked": SectionKind.LOOKED,
        "lock state": SectionKind.STATE,
        "lock action queue": SectionKind.QUEUE,
        "lock delayed estimated": SectionKind.ESTIMATED,
        "lock delayed shard 0": SectionKind.SHARD,
        "lock executor-delayed timer": SectionKind.ADD_TO_TIMER,
        "lock timer task": SectionKind.TIMER_TASK,
        "lock timer bucket": SectionKind.TIMER,
        "lock executor-delayed counter": SectionKind.TIMER,
        "lock delay queue": SectionKind.TIMER,
    }
)


def kind_of(point: str) -> SectionKind:
    """The kind of a point; a lock without a name of the purgatory's is an operation's."""
    known = _EXACT.get(point)
    if known is not None:
        return known
    if point.startswith("lock watchers of "):
        return SectionKind.LIST
    return SectionKind.COMPLETED if point.endswith(" completed") else SectionKind.OPERATION


_TIMER = frozenset({SectionKind.TIMER})
_ADVANCING = frozenset({SectionKind.TIMER, SectionKind.ADD_TO_TIMER})
_NONE: frozenset[SectionKind] = frozenset()


@dataclass(frozen=True, slots=True)
class Section:
    """What an action passes on its way: `freely` however often, `once` each at most once.

    `same`: also once the point at which it began.
    """

    freely: frozenset[SectionKind] = _NONE
    once: frozenset[SectionKind] = _NONE
    same: bool = False


SECTIONS: Mapping[str, Section] = MappingProxyType(
    {
        "Acquire": Section(),
        "Look": Section(),
        "Release": Section(),
        "Claim": Section(),
        "Finish": Section(_TIMER, frozenset({SectionKind.CALLBACK})),
        "Watch": Section(once=frozenset({SectionKind.LIST})),
        "Count": Section(),
        "AddTimer": Section(_TIMER, frozenset({SectionKind.TIMER_TASK})),
        "CancelTimer": Section(_TIMER),
        "Event": Section(),
        "Snapshot": Section(once=frozenset({SectionKind.LIST})),
        "Drop": Section(),
        "Forget": Section(),
        "TakeAction": Section(),
        "RemoveList": Section(once=frozenset({SectionKind.LIST})),
        "AdvanceClock": Section(_ADVANCING),
        "SetEstimate": Section(),
        "SnapshotKeys": Section(),
        "PurgeKey": Section(same=True),
        "TakeDue": Section(),
        "OnExpiration": Section(),
    }
)
FIRST_LOOK = Section(once=frozenset({SectionKind.LOOKED}))
"""A request's first look: it keeps the lock, and goes on to the watch lists."""
FINISH_WITH_TRIGGER = Section(
    _TIMER, frozenset({SectionKind.CALLBACK, SectionKind.STATE, SectionKind.QUEUE})
)
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

    def next_action(self, kind: SectionKind) -> str:
        """The action that begins at a point of this kind; empty if none does."""
        return _FIXED.get(kind) or self._by_context(kind)

    def _by_context(self, kind: SectionKind) -> str:
        match kind:
            case SectionKind.STATE:
                is_new = self.role is Role.COMPLETER and not self.checking
                return "Event" if is_new else "Look"
            case SectionKind.SHARD:
                return self._at_shard()
            case SectionKind.LIST:
                return "PurgeKey" if self.role is Role.REAPER else "Drop"
            case SectionKind.ESTIMATED:
                return "SetEstimate" if self.role is Role.REAPER else "Count"
            case SectionKind.TIMER_TASK:
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


_FIXED: Mapping[SectionKind, str] = MappingProxyType(
    {
        SectionKind.OPERATION: "Acquire",
        SectionKind.COMPLETED: "Claim",
        SectionKind.QUEUE: "TakeAction",
        SectionKind.ADD_TO_TIMER: "AddTimer",
        SectionKind.EXPIRATION: "OnExpiration",
        SectionKind.LOOKED: "Release",
    }
)
