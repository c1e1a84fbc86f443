"""What an answer makes the client owe, and whether it did it: what a run has exercised.

The specification says when a member owes a request (`OwesRequest`); what it says nothing of, and
Kafka's client does, is here too: it looks for the coordinator, and it heartbeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from conformance.client.answers import GOOD, WISHES
from conformance.client.clock import LoopClock

__all__ = [
    "AIMS",
    "DISCONNECTS",
    "FATAL",
    "KINDS",
    "REPEATED",
    "Act",
    "Duties",
    "Duty",
    "DutyKind",
    "duty_kind",
    "not_exercised",
]

FATAL = frozenset({"FENCED_INSTANCE_ID", "INCONSISTENT_GROUP_PROTOCOL", "GROUP_MAX_SIZE_REACHED"})
"""Errors that are thrown at the client's user."""
DISCONNECTS = frozenset({"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"})
"""The client gives up the connection, and what it had to read there (spec's `Disconnects`)."""


REPEATED = DISCONNECTS | {"COORDINATOR_LOAD_IN_PROGRESS"}
"""After these a client sends its request again, and may do nothing else before.

It does so after a backoff that grows (retry.backoff.max.ms; franz-go's is up to 5 s). So a commit
that is refused delays the next JoinGroup (ConsumerCoordinator.maybeAutoCommitOffsetsAsync in
onJoinPrepare; franz-go commits before it ends its session).
"""


class Act(StrEnum):
    """What a client may owe."""

    JOIN = "JoinGroup"
    SYNC = "SyncGroup"
    HEARTBEAT = "Heartbeat"
    LOOK_UP = "FindCoordinator"
    END = "an end with an error"


@dataclass(frozen=True, slots=True)
class DutyKind:
    """An answer to a request, and what it makes the client owe."""

    api: str
    answer: str
    owes: Act

    def __str__(self) -> str:
        return f"{self.api} answered {self.answer}: owes {self.owes}"


def duty_kind(api: str, answer: str) -> DutyKind | None:
    """The kind of duty that an answer may make; None for an answer that asks for nothing."""
    if api == "LeaveGroup" or (api in ("Heartbeat", "OffsetCommit") and answer in _ASKS_NOTHING):
        return None
    if answer in DISCONNECTS:
        return DutyKind(api, answer, Act.LOOK_UP)
    if answer in FATAL:
        return DutyKind(api, answer, Act.END)
    if answer.startswith("NONE"):
        return DutyKind(api, answer, Act.SYNC if api == "JoinGroup" else Act.HEARTBEAT)
    return DutyKind(api, answer, Act.JOIN)


_ASKS_NOTHING = ("NONE", "COORDINATOR_LOAD_IN_PROGRESS")
"""Of heartbeats and commits; a commit may be sent again, and need not."""


def _kinds() -> Iterator[DutyKind]:
    for api, errors in WISHES.items():
        good = {"JoinGroup": GOOD, "SyncGroup": ("NONE",)}.get(api, ())
        for answer in (*good, *errors):
            if answer != "NONE" or api != "JoinGroup":  # which says who leads
                kind = duty_kind(api, answer)
                if kind is not None:
                    yield kind


KINDS = tuple(_kinds())
"""All that an answer of the loop may make a client owe."""
_NO_AIMS = {("JoinGroup", "MEMBER_ID_REQUIRED"), ("OffsetCommit", "REBALANCE_IN_PROGRESS")}
"""The first comes by itself. The second hardly ever comes: a group that completes a rebalance has
the next generation, so it answers ILLEGAL_GENERATION (GroupCoordinator.doCommitOffsets)."""
AIMS = tuple(
    kind
    for kind in KINDS
    if kind.owes in (Act.JOIN, Act.END) and (kind.api, kind.answer) not in _NO_AIMS
)
"""Those that do not come by themselves: an example aims at each in its turn."""


@dataclass(frozen=True, slots=True)
class Duty:
    """Something owed: since when, and for how many seconds at most, by the example's clock."""

    kind: DutyKind
    bound: float
    at: float


class Duties:
    """The duties of one example."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.open: list[Duty] = []
        self.made: Counter[DutyKind] = Counter()
        self.done: Counter[DutyKind] = Counter()

    def owe(self, kind: DutyKind, bound: float) -> None:
        """An answer was given."""
        self.made[kind] += 1
        self.open.append(Duty(kind, bound, self._clock.now()))

    def owes(self, *acts: Act) -> bool:
        """Whether one of these is owed."""
        return any(duty.kind.owes in acts for duty in self.open)

    def open_of(self, kind: DutyKind) -> bool:
        """Whether this kind is owed."""
        return any(duty.kind == kind for duty in self.open)

    def meet(self, *acts: Act) -> None:
        """The client did what it owed."""
        for duty in self.open:
            if duty.kind.owes in acts:
                self.done[duty.kind] += 1
        self.release(*acts)

    def release(self, *acts: Act) -> None:
        """The client owes these no longer, though it did not do them: something came between."""
        self._keep(lambda duty: duty.kind.owes not in acts)

    def put_off(self, act: Act) -> None:
        """The time for this begins anew: something has to be repeated before it."""
        now = self._clock.now()
        self.open = [replace(duty, at=now) if duty.kind.owes is act else duty for duty in self.open]

    def forget(self, seconds: float) -> None:
        """A connection has ended: answers that are no older may never be read.

        Who ends closes its connections: an end is still owed.
        """
        latest = self._clock.now() - seconds
        self._keep(lambda duty: duty.at < latest or duty.kind.owes is Act.END)

    def overdue(self) -> Duty | None:
        """The first that was due."""
        now = self._clock.now()
        return next((duty for duty in self.open if now - duty.at > duty.bound), None)

    def _keep(self, wanted: Callable[[Duty], bool]) -> None:
        self.open = list(filter(wanted, self.open))


def not_exercised(done: Mapping[DutyKind, int]) -> tuple[DutyKind, ...]:
    """The kinds of duty that the client never had to fulfil."""
    return tuple(kind for kind in KINDS if not done.get(kind))
