"""What a broker must have done before groups are driven: a coordinator, a topic that it knows."""

from __future__ import annotations

import time
from dataclasses import replace

from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.admin import delete_group
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, Heartbeat
from conformance.systems.wire.consumer.requests import (
    Description,
    MemberGroup,
    NotCoordinator,
    describe,
    heartbeat,
)
from conformance.systems.wire.consumer.settings import SESSION_MS, SessionSettings, interval_of
from conformance.systems.wire.leadership import beside
from conformance.systems.wire.port import COORDINATOR_SECONDS

_TELLING_SECONDS = 5.0
"""A coordinator hears of a setting within milliseconds; a busy machine takes longer."""


def find_coordinator(broker: WireBroker, group: MemberGroup) -> Description:
    """The group as its coordinator knows it, once there is one that has loaded its part of the
    offsets topic: the first group of all makes a broker create that."""
    until = time.monotonic() + COORDINATOR_SECONDS
    while True:
        broker.find_coordinator(group.group_id)
        try:
            return describe(broker.coordinator, group)
        except NotCoordinator:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def await_topics(broker: WireBroker, group: MemberGroup, wanted: frozenset[int]) -> None:
    """Wait until coordinators assign these partitions to who reads all of the group's topics: they
    hear of topics by themselves."""
    until = time.monotonic() + COORDINATOR_SECONDS
    while True:
        other = replace(group, group_id=broker.new_group_id())
        find_coordinator(broker, other)
        if _is_given(broker, other, wanted, until):
            return


def await_heard(broker: WireBroker, group: MemberGroup, wanted: frozenset[int]) -> None:
    """The same of the group's own coordinator: in a group beside it, whose records lie in the same
    partition of the offsets topic, and which the same shard coordinates. The shard hears of topics
    in an event of its own, which tells all its groups at once."""
    until = time.monotonic() + COORDINATOR_SECONDS
    other = replace(group, group_id=beside(group.group_id, broker.leaders.count))
    while not _is_given(broker, other, wanted, until):
        pass


def _is_given(broker: WireBroker, group: MemberGroup, wanted: frozenset[int], until: float) -> bool:
    """Whether a consumer that joins alone is given this. SystemFailed if it is not by then."""
    join = Heartbeat(JOIN_EPOCH, frozenset(), group.reads)
    answer = heartbeat(broker.coordinator, group, "probe", None, join)
    _leave(broker, group)
    if answer.given == wanted:
        return True
    if time.monotonic() > until:
        raise SystemFailed(
            f"A consumer that joins alone is given {answer}, and not {sorted(wanted)} of its topics"
        )
    time.sleep(0.01)
    return False


def answers_tell_interval(
    broker: WireBroker, group: MemberGroup, sessions: SessionSettings
) -> bool:
    """Whether the coordinator's answers follow a group's own heartbeat interval. Kafka's do, so
    they tell when it has heard of a setting; others are taken to use what they show."""
    group = replace(group, group_id=broker.new_group_id())
    find_coordinator(broker, group)
    sessions.set(group.group_id, SESSION_MS)
    sent = Heartbeat(JOIN_EPOCH, frozenset(), group.reads)
    until = time.monotonic() + _TELLING_SECONDS
    while True:
        answer = heartbeat(broker.coordinator, group, "probe", None, sent)
        is_shown = answer.interval_ms == interval_of(SESSION_MS)
        if is_shown or time.monotonic() > until:
            break
        sent = Heartbeat(answer.epoch)
        time.sleep(0.05)
    _leave(broker, group)
    return is_shown


def _leave(broker: WireBroker, group: MemberGroup) -> None:
    heartbeat(broker.coordinator, group, "probe", None, Heartbeat(LEAVE_EPOCH))
    delete_group(broker.coordinator, group.group_id)
