"""A coordinator's timers are those that its group needs: what is too much or missing is told."""

from __future__ import annotations

import pytest

from conformance.systems.group.coordinator import Coordinators
from conformance.systems.group.timers import WrongTimers, check_timers
from conformance.systems.shared.group.settings import GROUP_ID, settings_of
from impl.concurrency import NoConcurrency
from impl.group.messages import JoinGroupRequest, JoinGroupRequestProtocol
from tests.unit.systems.group.constants import constants


def coordinators_of_one_join() -> Coordinators:
    """A member has joined for the first time: its session, and what ends the join phase."""
    found = Coordinators(settings_of(constants()), lambda: "1", NoConcurrency())
    request = JoinGroupRequest(
        group_id=GROUP_ID,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range"),),
        client_id="m1",
        version=3,
    )
    found.current.handle_join_group(request, lambda _: None)
    return found


def test_every_phase_has_the_timers_that_it_needs() -> None:
    coordinators = coordinators_of_one_join()
    coordinators.check_timers()
    coordinators.fire("initial join")
    coordinators.check_timers()
    group = coordinators.group()
    assert group is not None
    assert {one.kind for one in coordinators.current.timers()} == {"heartbeat", "sync"}
    coordinators.fail_over()
    coordinators.check_timers()


@pytest.mark.parametrize("kind", ["heartbeat", "sync"])
def test_a_timer_that_is_missing_or_there_twice_is_told(kind: str) -> None:
    coordinators = coordinators_of_one_join()
    coordinators.fire("initial join")
    timers, group = coordinators.current.timers(), coordinators.group()
    check_timers(timers, group)
    (one,) = [timer for timer in timers if timer.kind == kind]
    with pytest.raises(WrongTimers, match="no timer"):
        check_timers([timer for timer in timers if timer is not one], group)
    with pytest.raises(WrongTimers, match="2 timers"):
        check_timers([*timers, one], group)


def test_a_timer_that_outlives_its_group_or_its_generation_is_told() -> None:
    coordinators = coordinators_of_one_join()
    coordinators.fire("initial join")
    timers, group = coordinators.current.timers(), coordinators.group()
    with pytest.raises(WrongTimers, match="none or one may be there"):
        check_timers(timers, None)
    assert group is not None
    group.generation_id += 1
    with pytest.raises(WrongTimers, match="a sync of generation 1"):
        check_timers(timers, group)
