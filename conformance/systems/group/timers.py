"""What a coordinator waits for: each timer is one that its group needs, and none is missing.

The specification's timers are what its states say: a member that does not wait for an answer has a
session, one that only got an id has to join, a rebalance ends. A timer that is left behind would
expire without effect, and one that is missing never expires: neither shows in the group's state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from impl.group.delayed_operations import DelayedHeartbeat, DelayedSync, GroupOperation
from impl.group.group_metadata import DEAD, PREPARING_REBALANCE, GroupMetadata

Timer = tuple[str, str]
"""Kind, and whose: a member's id, or that of a pending member, or empty."""

_JOINS = frozenset({"join", "initial join"})
_PENDING = "pending member"


class WrongTimers(Exception):
    """A coordinator waits for what nobody needs, or does not wait for what it has to."""


def check_timers(timers: Sequence[GroupOperation], group: GroupMetadata | None) -> None:
    """Raises WrongTimers. `group`: the only one of this coordinator, None if it has none."""
    result, needed = Counter(map(_timer, timers)), _needed(group)
    possible = needed | _sessions(group)
    for timer, number in result.items():
        if number > 1 or timer not in possible:
            raise WrongTimers(f"{number} timers {timer}, of which none or one may be there")
    for timer in needed - result.keys():
        raise WrongTimers(f"no timer {timer}")
    for operation in timers:
        if isinstance(operation, DelayedSync) and operation.generation_id != _generation(group):
            raise WrongTimers(f"a sync of generation {operation.generation_id} is waited for")


def _timer(operation: GroupOperation) -> Timer:
    if isinstance(operation, DelayedHeartbeat) and operation.is_pending:
        return _PENDING, operation.member_id or ""
    kind = "join" if operation.kind in _JOINS else operation.kind
    return kind, operation.member_id or ""


def _sessions(group: GroupMetadata | None) -> set[Timer]:
    """While an answer is owed to a member its session may have run out without effect."""
    if group is None or group.is_in(DEAD):
        return set()
    return {("heartbeat", member_id) for member_id in group.members}


def _needed(group: GroupMetadata | None) -> set[Timer]:
    if group is None or group.is_in(DEAD):
        return set()
    needed = {(_PENDING, member_id) for member_id in group.pending_members}
    needed |= {
        ("heartbeat", member_id)
        for member_id, member in group.members.items()
        if not (member.is_awaiting_join or member.is_awaiting_sync)
    }
    if group.is_in(PREPARING_REBALANCE):
        needed.add(("join", ""))
    if group.pending_sync_members:
        needed.add(("sync", ""))
    return needed


def _generation(group: GroupMetadata | None) -> int:
    return -1 if group is None else group.generation_id
