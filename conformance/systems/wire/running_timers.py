"""The coordinator's timers while a test runs: sessions are kept alive, expiries are waited for."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from kio.schema.errors import ErrorCode

from conformance.kafka.entities import Entity, make, milliseconds, newest
from conformance.systems.shared.group.settings import GroupSettings
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.described_group import DescribedGroup
from conformance.systems.wire.pace import LONGEST_PAUSE, Pace
from conformance.systems.wire.timers import PathTimers

_HEARTBEATS_PER_SESSION = 4
_REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})
_LATE_MS = 20
"""How late a timer of a broker may be that nothing shows."""
_LAST_LOOK_SECONDS = 0.02
"""Before the initial delay is over: what is seen until then was true while it ran."""


@dataclass(frozen=True, slots=True)
class MemberSession:
    """What keeps a member's session alive, and when (monotonic clock, s) it last did."""

    heartbeat: Entity
    kept_alive: float


class RunningTimers:
    """Of one test, whose path lets the timers of `path` expire."""

    def __init__(
        self,
        settings: GroupSettings,
        path: PathTimers,
        broker: WireBroker,
        pace: Pace,
        group: DescribedGroup,
    ) -> None:
        self._settings = settings
        self._path = path
        self._broker = broker
        self._address = broker.address
        self._pace = pace
        self._group = group
        self._delayed_since: float | None = None
        self._sessions: dict[str, MemberSession] = {}
        self._asked: dict[str, float] = {}
        self._overslept = ""

    # ---- they begin ------------------------------------------------------------------------

    def joining(self, request: Entity, id: str) -> Entity:
        """The JoinGroup of the member with this id of the spec, with timeouts for this path."""
        if self._group.is_without_members:
            self._delayed_since = time.monotonic()
        if id in self._path.sessions:
            self._asked[id] = time.monotonic()
        request = self._path.asking(request, id)
        if not self._settings.initial_delays:
            return request
        delays = self._settings.initial_delays + 1
        return replace(
            request, rebalance_timeout=milliseconds(delays * self._address.initial_delay)
        )

    def begin_session(self, answer: Entity, id: str, instance: str | None) -> None:
        """Of a member that is to expire later in this test: it is kept alive until then."""
        if answer.error_code is ErrorCode.none and id in self._path.sessions:
            heartbeat = make(
                newest("heartbeat", "request").HeartbeatRequest,
                group_id=self._group.id,
                generation_id=answer.generation_id,
                member_id=answer.member_id,
                group_instance_id=instance,
            )
            self._sessions[id] = MemberSession(heartbeat, self._pace.looked_at)  # at the earliest

    def keep_alive(self) -> None:
        """Send the heartbeats that are due."""
        now, often = time.monotonic(), self._address.session / 1000 / _HEARTBEATS_PER_SESSION
        for id, session in self._sessions.items():
            if (now - session.kept_alive) * 1000 > self._address.session:
                self._overslept = f"nothing kept the session of {id} alive for too long"
            if now - session.kept_alive > often:
                self._broker.coordinator.ask(session.heartbeat)
                self._sessions[id] = replace(session, kept_alive=now)

    # ---- they expire -----------------------------------------------------------------------

    def wait_for_session(self, id: str, *, seen: bool) -> None:
        """It expires by itself once nothing keeps it alive. DescribeGroups shows a member go, but
        not one whose id was given and not used yet: there the time is waited out."""
        self._sessions.pop(id, None)
        asked = self._asked.pop(id, 0.0)
        if seen:
            self._pace.wait_for(self._address.session)
        else:
            over = asked + self._path.sessions[id] / 1000
            self._wait_out((over - time.monotonic()) * 1000 + _LATE_MS)

    def wait_for_rebalance(self) -> None:
        """Members did not join, or did not send SyncGroup, in time."""
        self._pace.wait_for(self._path.rebalance)
        # Until then it may run out.
        self._group.phase_since = time.monotonic() + self._pace.patience

    def wait_for_initial_delay(self) -> None:
        """It is over by itself; each member that joins meanwhile may prolong it once.

        Where the specification counts how often (`initial_delays`), one delay is one step, which
        shows nothing while it is prolonged.
        """
        self._delayed_since = None
        if self._settings.initial_delays:
            self._wait_out(self._address.initial_delay)
        prolonged = len(self._settings.members) + 1
        self._pace.wait_for(prolonged * self._address.initial_delay)

    def _wait_out(self, milliseconds: float) -> None:
        """Let so much time pass; answers that arrive and other members' sessions go on."""
        until = time.monotonic() + milliseconds / 1000
        while (left := until - time.monotonic()) > 0:
            self.keep_alive()
            self._broker.coordinator.receive(min(left, LONGEST_PAUSE))

    # ---- whether one was too early, or may be ----------------------------------------------

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again: not beyond the end of an initial delay that
        the path has not come to, for what is seen afterwards says nothing of this step."""
        if self._delayed_since is None:
            return self._pace.patience
        over = self._delayed_since + self._address.initial_delay / 1000
        left = over - _LAST_LOOK_SECONDS - time.monotonic()
        return max(0.0, min(self._pace.patience, left))

    @property
    def over(self) -> str:
        """Which timer may have run out, although the path had not come to it, when the system was
        last looked at; empty if none."""
        return (
            self._delay_over() or self._id_over() or self._rebalance_over() or self._session_over()
        )

    def _delay_over(self) -> str:
        if self._delayed_since is None:
            return ""
        over = self._pace.seen_at - self._delayed_since
        is_over = over * 1000 > self._address.initial_delay
        return f"the initial delay was over after {over:.2f} s" if is_over else ""

    def _id_over(self) -> str:
        for id, asked in self._asked.items():
            over = self._pace.seen_at - asked
            if id not in self._sessions and over * 1000 > self._path.sessions[id]:
                return f"the session of {id} was over after {over:.2f} s"
        return ""

    def _rebalance_over(self) -> str:
        over = self._pace.seen_at - self._group.phase_since
        runs = self._group.phase in _REBALANCING and self._path.rebalance
        is_over = runs and over * 1000 > self._path.rebalance
        return f"the rebalance was over after {over:.2f} s" if is_over else ""

    def _session_over(self) -> str:
        for id, session in self._sessions.items():
            over = self._pace.seen_at - session.kept_alive
            if over * 1000 > self._address.session:
                return f"nothing kept the session of {id} alive for {over:.2f} s"
        return self._overslept
