"""The session timeout of a group of KIP-848: a setting of the group, which a broker changes slowly.

A broker has one change of settings under way at a time (it forwards each to the controller, which
writes a record of it), so the tests that run side by side share one request: while it is under way,
the next one gathers what further tests want.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock

from kio.schema.errors import ErrorCode

from conformance.kafka.entities import make, module_of
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.port import Port

SESSION_MS = 45_000
"""Of members that are not to expire: Kafka's own."""

_GROUP, _SET, _DELETE = 32, 0, 1
"""IncrementalAlterConfigs: the type of the resource (KIP-848), and the operations."""
_SETTING_SECONDS = 60.0
_APPLIED_SECONDS = 0.005
"""A setting shows a little before the coordinator uses it."""
_SESSION, _INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
_HEARTBEATS_PER_SESSION = 4
"""Kafka wants the interval to be shorter than the session."""


def interval_of(session_ms: int) -> int:
    """The heartbeat interval (ms) that goes with a session; answers tell it, and so which of the
    group's settings the coordinator has used."""
    return session_ms // _HEARTBEATS_PER_SESSION


@dataclass(eq=False, slots=True)
class _Wish:
    """What a group is to have; `problem` is why it has not got it."""

    group_id: str
    session_ms: int
    over: bool = False
    problem: Exception | None = None


@dataclass(slots=True)
class Sessions:
    """The session timeouts of all groups that this process drives at a broker (HOST:PORT)."""

    broker: str
    _wishes: deque[_Wish] = field(default_factory=deque)
    _request: Lock = field(default_factory=Lock)
    """Held by the thread that has a request under way."""
    _tells: bool | None = None
    _learning: Lock = field(default_factory=Lock)

    def answers_tell(self, tried: Callable[[], bool]) -> bool:
        """Whether answers tell the interval that is a group's own; one thread tries it, once."""
        with self._learning:
            if self._tells is None:
                self._tells = tried()
            return self._tells

    @property
    def waiting(self) -> int:
        """How many wishes the next request will have."""
        return len(self._wishes)

    def set(self, port: Port, group_id: str, session_ms: int) -> None:
        """Let the session timers of the group that start from now on run for so long.

        `port` is the calling thread's, to the group's coordinator. SystemFailed if the broker
        refuses, or does not do it.
        """
        wish = _Wish(group_id, session_ms)
        self._wishes.append(wish)
        with self._request:
            if not wish.over:
                self._carry_out(port)
        if wish.problem is not None:
            raise wish.problem
        _await_shown(port, group_id, session_ms)

    def _carry_out(self, port: Port) -> None:
        """All wishes that there are by now, in one request."""
        wishes = [self._wishes.popleft() for _ in range(len(self._wishes))]
        problems: Mapping[str, Exception]
        try:
            problems = _alter(port, {wish.group_id: _settings(wish.session_ms) for wish in wishes})
        except Exception as error:  # noqa: BLE001  it is raised in each thread that waits
            problems = {wish.group_id: error for wish in wishes}
        for wish in wishes:
            wish.over, wish.problem = True, problems.get(wish.group_id)


@cache
def sessions_at(broker: str) -> Sessions:
    """Those of a broker, the same for all threads."""
    return Sessions(broker)


class SessionSettings:
    """The session timeouts that one system sets; no setting of a group stays behind."""

    def __init__(self, broker: WireBroker) -> None:
        self._broker = broker
        self._sessions = sessions_at(str(broker.address))
        self._altered: set[str] = set()
        self.interval_is_told = False
        """Whether answers tell the interval that is a group's own."""

    def try_interval(self, attempt: Callable[[], bool]) -> None:
        """Find out whether they do, unless another system of this process knows."""
        self.interval_is_told = self._sessions.answers_tell(attempt)

    def set(self, group_id: str, session_ms: int) -> None:
        """As `Sessions.set`, at the group's coordinator."""
        self._altered.add(group_id)
        self._sessions.set(self._broker.coordinator, group_id, session_ms)

    def forget(self) -> None:
        """Leave no settings of these groups behind."""
        forget(self._broker.entry, sorted(self._altered))


class GroupSession:
    """The session timeout of one group while a test runs."""

    def __init__(self, sessions: SessionSettings, group_id: str) -> None:
        self._sessions = sessions
        self._group_id = group_id
        self._length = SESSION_MS
        self._is_own = False

    def set(self, length: int) -> None:
        """Give the group this session timeout (ms), unless it has it."""
        if length != self._length:
            self._sessions.set(self._group_id, length)
            self._length, self._is_own = length, True

    def mistimed(self, interval_ms: int) -> str:
        """Why an answer with this heartbeat interval began another session; empty if it did not."""
        is_shown = interval_ms in (0, interval_of(self._length))
        if not self._is_own or not self._sessions.interval_is_told or is_shown:
            return ""
        return "the coordinator had not heard of the group's session timeout yet"


def forget(port: Port, group_ids: Iterable[str]) -> None:
    """Leave no settings of these groups behind."""
    nothing = dict.fromkeys(_settings(0))
    if altered := dict.fromkeys(group_ids, nothing):
        _alter(port, altered)


def _settings(session_ms: int) -> dict[str, str | None]:
    return {_SESSION: str(session_ms), _INTERVAL: str(interval_of(session_ms))}


def _alter(port: Port, groups: Mapping[str, Mapping[str, str | None]]) -> dict[str, Exception]:
    """Change the settings of groups, None being back to the broker's own; what was refused."""
    api = "incremental_alter_configs"
    module = module_of(api, port.versions[api], "request")
    resources = tuple(
        make(
            module.AlterConfigsResource,
            resource_type=_GROUP,
            resource_name=group_id,
            configs=tuple(
                make(
                    module.AlterableConfig,
                    name=name,
                    config_operation=_DELETE if value is None else _SET,
                    value=value,
                )
                for name, value in settings.items()
            ),
        )
        for group_id, settings in groups.items()
    )
    request = make(module.IncrementalAlterConfigsRequest, resources=resources, validate_only=False)
    answers = port.ask_body(request, _SETTING_SECONDS, at_once=False).responses
    return {
        answer.resource_name: SystemFailed(
            f"IncrementalAlterConfigs of the group {answer.resource_name} to "
            f"{groups[answer.resource_name]} was answered {answer.error_code.name.upper()}: "
            f"{answer.error_message}"
        )
        for answer in answers
        if answer.error_code is not ErrorCode.none
    }


def _await_shown(port: Port, group_id: str, session_ms: int) -> None:
    """Wait until the coordinator has heard of it."""
    wanted = _settings(session_ms)
    until = time.monotonic() + _SETTING_SECONDS
    while not wanted.items() <= _shown(port, group_id, tuple(wanted)).items():
        if time.monotonic() > until:
            raise SystemFailed(f"The settings of {group_id} do not become {wanted}")
        time.sleep(0.002)
    time.sleep(_APPLIED_SECONDS)


def _shown(port: Port, group_id: str, names: Sequence[str]) -> dict[str, str]:
    module = module_of("describe_configs", port.versions["describe_configs"], "request")
    resource = make(
        module.DescribeConfigsResource,
        resource_type=_GROUP,
        resource_name=group_id,
        configuration_keys=tuple(names),
    )
    request = make(
        module.DescribeConfigsRequest,
        resources=(resource,),
        include_synonyms=False,
        include_documentation=False,
    )
    (result,) = port.ask_body(request).results
    return {config.name: str(config.value) for config in result.configs}
