"""The loop of a fetcher thread, AbstractFetcherThread.doWork, in the specification's own steps.

The specification has the steps of a fetcher one by one, in any order that their states allow. The
thread takes them in turns: it truncates what is to be truncated, then it fetches; a partition with
an error is left out until its back-off has passed, and where nothing is ready the thread waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from conformance.systems.protocol import SpecSteps, Turn
from conformance.tla import Action, Fn, State, Value

_REQUESTS: Final = {
    "EpochRequest": ("HandleEpochRequest", "ProcessEpochResponse"),
    "FetchRequest": ("HandleFetch", "ProcessFetchResponse"),
    "LatestRequest": ("HandleListOffsets", "ProcessListOffsetsResponse"),
    "EarliestRequest": ("HandleListOffsets", "ProcessListOffsetsResponse"),
}
"""By what waits in the channel: how the leader handles it, and the follower its answer."""

_ANSWERED: Final = frozenset({"NONE", "OFFSET_OUT_OF_RANGE", "FENCED_LEADER_EPOCH"})
"""Errors after which the partition does not back off: none; one that asks for an offset at once;
one that makes the partition fail (as long as no other epoch came in between, as here)."""


class FetcherLoop:
    """One turn of doWork, composed of the steps of a model in which they are apart (Fine)."""

    steps = frozenset(
        {"TruncateToHighWatermark", "SendEpochRequest", "SendFetch", "LoseMessage"}
        | {step for both in _REQUESTS.values() for step in both}
    )
    """The specification's actions that a turn consists of."""

    forgetting = frozenset(
        {"BecomeLeader", "BecomeFollower", "Crash", "Restart"}
        | {"FailToAppend", "FailToLead", "FailToProcess", "FailToCheckpoint", "StartAgain"}
    )
    """Steps of a broker that take the partition away from its fetcher: so ends its back-off."""

    def turn(
        self, spec: SpecSteps, state: State, follower: str, *, delayed: bool, lost: bool
    ) -> tuple[State, Turn] | None:
        """Where a turn leads, and what it asks; None if no fetcher follows the partition."""
        running = _FetcherTurn(spec, state, follower, lost, delayed)
        if running.value("fetchState") not in ("Truncating", "Fetching"):
            return None
        if not delayed:
            running.maybe_truncate()
        running.maybe_fetch()
        return running.state, Turn(tuple(running.asked), running.waited, running.delayed)


@dataclass(slots=True)
class _FetcherTurn:
    """A turn under way."""

    spec: SpecSteps
    state: State
    follower: str
    lost: bool
    delayed: bool
    waited: bool = False
    asked: list[str] = field(default_factory=list)

    def value(self, variable: str) -> Value:
        """The follower's entry of a variable."""
        index = self.spec.variables.index(variable)
        return cast("Fn", self.state[index])[self.follower]

    def maybe_truncate(self) -> None:
        """By the leader's epochs, or to the high watermark if the log has none."""
        if self._take("SendEpochRequest"):
            self._round_trip()
        else:
            self._take("TruncateToHighWatermark")

    def maybe_fetch(self) -> None:
        """Ask if the partition is ready, also where its answer sends for; else wait."""
        if self.delayed or not self._take("SendFetch"):
            self.waited = True
            return
        while self._message()["type"] != "None":
            self._round_trip()

    def _round_trip(self) -> None:
        message = self._message()
        kind, leader = str(message["type"]), str(message["leader"])
        self.asked.append(kind)
        handled, processed = _REQUESTS[kind]
        if self.lost or not self._step(Action(handled, (leader, self.follower))):
            self._take("LoseMessage")
            self.delayed = True
            return
        error = self._message()["error"]
        self._take(processed)
        self.delayed = error not in _ANSWERED

    def _message(self) -> Fn:
        return cast("Fn", self.value("channel"))

    def _take(self, name: str) -> bool:
        return self._step(Action(name, (self.follower,)))

    def _step(self, action: Action) -> bool:
        """Whether the specification enables it; if so it is taken."""
        after = self.spec.successors(self.state, action)
        if not after:
            return False
        (self.state,) = after
        return True
