"""Runs a program with a fault planted in aiokafka: FAULT PROGRAM ARGUMENT ...; or with `none`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Any

from aiokafka import errors
from aiokafka.consumer import group_coordinator as module
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest

Coordinator = module.GroupCoordinator


def ignores_rebalance() -> None:
    """A heartbeat answered REBALANCE_IN_PROGRESS is taken for a success."""
    heartbeat = Coordinator._do_heartbeat

    async def planted(self: Any) -> Any:
        rejoin, self.request_rejoin = self.request_rejoin, lambda: None
        try:
            return await heartbeat(self)
        finally:
            self.request_rejoin = rejoin

    Coordinator._do_heartbeat = planted


def ignores_refusals() -> None:
    """UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION reset nothing."""
    Coordinator.reset_generation = lambda _: None


def old_generation() -> None:
    """Commits have the generation before."""

    class Commit(OffsetCommitRequest):  # type: ignore[misc]  # it has no types
        def __init__(self, group: str, generation: int, *others: Any) -> None:
            super().__init__(group, generation - 1 if generation > 1 else generation, *others)

    module.OffsetCommitRequest = Commit


def commits_ahead() -> None:
    """Commits are of positions that nobody has read."""

    class Commit(OffsetCommitRequest):  # type: ignore[misc]  # it has no types
        def __init__(
            self, group: str, generation: int, member: str, kept: int, topics: Any
        ) -> None:
            ahead = [
                (topic, [(number, offset + 1000, text) for number, offset, text in partitions])
                for topic, partitions in topics
            ]
            super().__init__(group, generation, member, kept, ahead)

    module.OffsetCommitRequest = Commit


def stale_member_id() -> None:
    """Heartbeats have the first id that the member was given."""
    first: list[str] = []

    class Heartbeat(HeartbeatRequest):  # type: ignore[misc]  # it has no types
        def __init__(self, group: str, generation: int, member: str) -> None:
            first.append(member)
            super().__init__(group, generation, first[0])

    module.HeartbeatRequest = Heartbeat


def forgets_member_id() -> None:
    """The id of MEMBER_ID_REQUIRED is not used."""
    send = Coordinator._send_req

    async def planted(self: Any, request: Any) -> Any:
        answer = await send(self, request)
        if getattr(answer, "error_code", 0) == errors.MemberIdRequired.errno:
            answer.member_id = ""
        return answer

    Coordinator._send_req = planted


FAULTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "ignores-rebalance": ignores_rebalance,
    "ignores-refusals": ignores_refusals,
    "old-generation": old_generation,
    "commits-ahead": commits_ahead,
    "stale-member-id": stale_member_id,
    "forgets-member-id": forgets_member_id,
}

if __name__ == "__main__":
    _, fault, program, *arguments = sys.argv
    FAULTS[fault]()
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")
