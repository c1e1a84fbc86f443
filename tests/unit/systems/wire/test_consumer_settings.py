"""The session timeouts of groups that are driven side by side are changed by few requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.consumer.settings import (
    SESSION_MS,
    GroupSession,
    Sessions,
    SessionSettings,
    forget,
    interval_of,
)
from conformance.systems.wire.port import Port

SESSION = "consumer.session.timeout.ms"


class Broker:
    """Keeps groups' settings; the first change takes until `let_go`."""

    versions = {"incremental_alter_configs": 1, "describe_configs": 4}

    def __init__(self, refused: str = "") -> None:
        self.groups: dict[str, dict[str, str]] = {}
        self.changes: list[set[str]] = []
        self.begun, self.let_go = Event(), Event()
        self._refused = refused
        self._one_at_a_time = Lock()

    def ask_body(self, body: Any, _seconds: float = 0.0, *, at_once: bool = True) -> Any:
        if at_once:
            (asked,) = body.resources
            found = self.groups.get(asked.resource_name, {})
            configs = [SimpleNamespace(name=name, value=value) for name, value in found.items()]
            return SimpleNamespace(results=[SimpleNamespace(configs=configs)])
        assert self._one_at_a_time.acquire(blocking=False), "two changes at a time"
        self.changes.append({one.resource_name for one in body.resources})
        self.begun.set()
        assert self.let_go.wait(10)
        self._one_at_a_time.release()
        return SimpleNamespace(responses=[self._changed(one) for one in body.resources])

    def _changed(self, resource: Any) -> Any:
        name = resource.resource_name
        refused = name == self._refused
        for config in () if refused else resource.configs:
            self.groups.setdefault(name, {})[config.name] = config.value
        error = ErrorCode.invalid_config if refused else ErrorCode.none
        return SimpleNamespace(resource_name=name, error_code=error, error_message="no")


def set_side_by_side(broker: Broker, groups: list[str]) -> list[BaseException | None]:
    """The first of the groups begins a change, and all others want one meanwhile."""
    sessions, port = Sessions("127.0.0.1:9092"), cast("Port", broker)
    with ThreadPoolExecutor(len(groups)) as pool:
        first = pool.submit(sessions.set, port, groups[0], 800)
        assert broker.begun.wait(10)
        others = [pool.submit(sessions.set, port, group, 900) for group in groups[1:]]
        while sessions.waiting < len(others):
            pass
        broker.let_go.set()
        return [one.exception(10) for one in (first, *others)]


def test_what_is_wanted_while_a_change_is_under_way_is_one_request() -> None:
    broker = Broker()
    groups = [f"g{number}" for number in range(20)]
    assert not any(set_side_by_side(broker, groups))
    assert broker.changes == [{"g0"}, set(groups[1:])]
    assert {group: settings[SESSION] for group, settings in broker.groups.items()} == {
        "g0": "800",
        **dict.fromkeys(groups[1:], "900"),
    }


def test_a_refusal_is_told_to_the_group_that_it_is_of() -> None:
    problems = set_side_by_side(Broker(refused="g2"), ["g0", "g1", "g2", "g3"])
    assert [type(one) for one in problems] == [type(None), type(None), SystemFailed, type(None)]
    assert "g2" in str(problems[2])
    assert "INVALID_CONFIG" in str(problems[2])


def test_a_broker_that_fails_is_told_to_all_who_wait() -> None:
    class Silent(Broker):
        def ask_body(self, _body: Any, _seconds: float = 0.0, *, at_once: bool = True) -> Any:
            self.begun.set()
            assert self.let_go.wait(10)
            raise SystemFailed(f"{at_once}: closed")

    problems = set_side_by_side(Silent(), ["g0", "g1", "g2"])
    assert [str(one) for one in problems] == ["False: closed"] * 3


def test_settings_are_taken_back_in_one_request() -> None:
    broker = Broker()
    broker.let_go.set()
    port = cast("Port", broker)
    forget(port, ())
    assert not broker.changes
    forget(port, ("g1", "g2"))
    assert broker.changes == [{"g1", "g2"}]
    assert broker.groups["g1"][SESSION] is None


@pytest.mark.parametrize("times", [1, 3])
def test_one_group_after_the_other_needs_a_request_each(times: int) -> None:
    broker = Broker()
    broker.let_go.set()
    sessions = Sessions("127.0.0.1:9092")
    for number in range(times):
        sessions.set(cast("Port", broker), f"g{number}", 500)
    assert len(broker.changes) == times


def test_whether_answers_tell_the_interval_is_tried_once() -> None:
    sessions = Sessions("broker:9092")
    tried: list[bool] = []

    def in_vain() -> bool:
        tried.append(True)
        return False

    assert [sessions.answers_tell(in_vain) for _ in range(3)] == [False] * 3
    assert len(tried) == 1


class Told:
    """Keeps what is set; `interval_is_told`: whether answers tell a group's own interval."""

    def __init__(self, *, interval_is_told: bool) -> None:
        self.interval_is_told = interval_is_told
        self.set_to: list[int] = []

    def set(self, _group_id: str, session_ms: int) -> None:
        self.set_to.append(session_ms)


def test_a_groups_session_is_set_where_it_becomes_another_one() -> None:
    told = Told(interval_is_told=True)
    session = GroupSession(cast("SessionSettings", told), "group")

    for length in (SESSION_MS, 800, 800, SESSION_MS):
        session.set(length)

    assert told.set_to == [800, SESSION_MS]


@pytest.mark.parametrize(
    ("interval_is_told", "length", "answered", "is_mistimed"),
    [
        (True, 800, interval_of(800), False),
        (True, 800, interval_of(SESSION_MS), True),
        (True, 800, 0, False),  # an error says nothing of it
        (False, 800, interval_of(SESSION_MS), False),
        (True, SESSION_MS, 5_000, False),  # the group has the broker's own
    ],
)
def test_an_answer_tells_whether_the_coordinator_had_heard_of_the_session(
    interval_is_told: bool, length: int, answered: int, is_mistimed: bool
) -> None:
    told = Told(interval_is_told=interval_is_told)
    session = GroupSession(cast("SessionSettings", told), "group")
    session.set(length)

    assert bool(session.mistimed(answered)) is is_mistimed
