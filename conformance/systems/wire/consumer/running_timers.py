"""The coordinator's timers of one group of KIP-848 while a test runs."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.systems.wire.address import Address
from conformance.systems.wire.consumer.interval import RunningInterval
from conformance.systems.wire.consumer.member import LEAVE_EPOCH, HeartbeatAnswer, WireMember
from conformance.systems.wire.consumer.requests import REBALANCE_MS
from conformance.systems.wire.consumer.sessions import RunningSessions
from conformance.systems.wire.consumer.settings import SESSION_MS, GroupSession
from conformance.systems.wire.consumer.timers import REBALANCE, ConsumerTimers
from conformance.systems.wire.pace import Pace


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What a member was told to keep, and when (monotonic, s) it had asked."""

    given: frozenset[int]
    asked: float


class RunningConsumerTimers:
    """Of one test, whose path lets the timers of `path` expire."""

    def __init__(
        self,
        path: ConsumerTimers,
        session: GroupSession,
        pace: Pace,
        address: Address,
    ) -> None:
        self._path = path
        self._session = session
        self._pace = pace
        self._rebalance = address.rebalance
        self.interval = RunningInterval(address.assignment_interval, pace)
        self._step = -1
        self._running = RunningSessions(pace)
        self._reconciling: dict[str, Reconciliation] = {}
        self._mistimed = ""

    def step(self) -> None:
        """The path's next step begins."""
        self._step += 1

    def rebalance_of(self, member: WireMember) -> int:
        """The rebalance timeout (ms) that the member asks for."""
        return self._path.rebalances.get(member.name, REBALANCE_MS)

    def set_session(self) -> None:
        """Give the group the session timeout that this step's heartbeat is to begin."""
        self._session.set(self._path.sessions.get(self._step, 0) or SESSION_MS)

    def begin(self, member: WireMember, answer: HeartbeatAnswer, asked: float) -> None:
        """The member's heartbeat was sent at `asked` (s), or later, and has been answered."""
        self._mistimed = self._mistimed or self._session.mistimed(answer.interval_ms)
        self._running.begin(member.name, self._path.sessions.get(self._step, 0), asked)
        self._note_reconciling(member, answer, asked)

    def _note_reconciling(self, member: WireMember, answer: HeartbeatAnswer, asked: float) -> None:
        """Who is told to give partitions up has its rebalance timeout for it, from then on."""
        before = self._reconciling.get(member.name)
        if answer.epoch <= LEAVE_EPOCH:
            self._reconciling.pop(member.name, None)
        if answer.given is None or (before is not None and before.given == answer.given):
            return
        self._reconciling.pop(member.name, None)
        if member.consumer.owned - answer.given:
            self._reconciling[member.name] = Reconciliation(answer.given, asked)

    def wait_for(self, timer: str, member: str) -> None:
        """It runs out by itself; ConsumerGroupDescribe shows the member go."""
        reconciling = self._reconciling.pop(member, None)
        end = self._running.forget(member)
        if timer == REBALANCE and reconciling is not None:
            end = reconciling.asked + self._rebalance / 1000
        self._running.wait_until(end)

    @property
    def over(self) -> str:
        """Which timer may be over although the path has not come to it; empty if none."""
        if over := self._mistimed or self._running.over or self.interval.over:
            return over
        for name, timeout in self._path.rebalances.items():
            since = self._reconciling.get(name)
            if since is not None and (self._pace.seen_at - since.asked) * 1000 > timeout:
                return f"the rebalance timeout of {name} was over"
        return ""
