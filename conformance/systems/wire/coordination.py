"""Who coordinates the groups of the classic protocol, and what moves the coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kio.schema.errors import ErrorCode

from conformance.errors import UserError
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.admin import commit, describe_group
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.leadership import beside
from conformance.systems.wire.port import COORDINATOR_SECONDS, MOVING
from conformance.systems.wire.turns import Turns
from conformance.tla import Action


class Coordination:
    """`turns`: of all tests in which a step moves the coordinator; None if no step does."""

    def __init__(self, broker: WireBroker, turns: Turns | None) -> None:
        self._broker = broker
        self._turns = turns
        self._group_id = ""
        self._in_turn = self._is_early = self._failed_over = False
        self._settled = False
        """Whether a coordinator has answered, and what it writes is replicated: when a broker has
        just started it loads yet, and nobody follows an offsets topic that has just been made."""

    def foresee(self, actions: Sequence[Action]) -> None:
        """The next test's path: while the initial delay runs nothing may be waited for."""
        names = [action.name for action in actions]
        first = names.index("FailOver") if "FailOver" in names else 0
        self._is_early = first > 0 and "ExpireInitialDelay" not in names[:first]

    def begin(self, group_id: str) -> None:
        """A test begins: the group has a coordinator that can do its work."""
        broker, moves = self._broker, self._turns is not None
        self.end()
        if self._turns is not None:
            self._turns.begin(late=self._is_early)
            self._in_turn = True
        broker.find_coordinator(group_id)
        self._group_id, self._failed_over = group_id, False
        if moves or not self._settled:
            self._await(self._is_coordinated, "after it was found")
        broker.leaders.look(again=moves)
        if not self._settled:
            self._await(self._replicates, "after it was found")
            self._settled = True

    def end(self) -> None:
        """A test has ended: others need not wait for it."""
        if self._turns is not None and self._in_turn:
            self._in_turn = False
            self._turns.end()

    def fail_over(self) -> None:
        """Once all tests that run side by side are ready for it."""
        assert self._turns is not None, "FailOver is beyond reach without a command"
        self._failed_over = True
        self._turns.wait()
        for port in self._broker.ports:
            port.renew()
        self._await(lambda: self._is_coordinated() and self._replicates(), "after a fail-over")

    @property
    def moved_by_itself(self) -> str:
        """How, if no step did it; else empty."""
        return "" if self._failed_over else self._broker.leaders.changed()

    def _await(self, condition: Callable[[], bool], since: str) -> None:
        until = time.monotonic() + COORDINATOR_SECONDS
        while not condition():
            if time.monotonic() > until:
                raise SystemFailed(f"no coordinator {COORDINATOR_SECONDS:.0f} s {since}")
            time.sleep(0.05)

    def _is_coordinated(self) -> bool:
        """Whether somebody coordinates the group now: who was elected has to load it first."""
        broker = self._broker
        for port in broker.ports:
            try:
                broker.find_coordinator(self._group_id, port)
                if not broker.coordinator.offers("describe_groups"):
                    return True
                group = describe_group(broker.coordinator, self._group_id)
            except (SystemFailed, UserError):
                port.renew()  # that broker is gone: ask another one
                continue
            return group.error_code not in MOVING
        return False

    def _replicates(self) -> bool:
        """Whether what a new coordinator writes is replicated: until it is, DescribeGroups of the
        rewrite shows what was before (it reads what is committed)."""
        broker = self._broker
        if not broker.coordinator.offers("offset_commit"):
            return True
        probe = beside(self._group_id, broker.leaders.count)
        error = commit(broker.coordinator, probe)
        if error is ErrorCode.none:
            broker.delete_at_end(probe)
        return error not in MOVING
