"""What follows `wire:`: where the broker listens, and what is known of its settings.

    127.0.0.1:9092?initial-delay=30&JoinGroup=5

A name says all of it, since a name is what a worker process and a command to repeat are given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import parse_qsl

from conformance.errors import UserError

FORM = "wire:HOST:PORT[?NAME=VALUE&...]"

_ADDRESS = re.compile(r"(\[[^\]]+\]|[^:\[\]]+):(\d{1,5})")
_DEFAULT_INITIAL_DELAY_MS = 3_000
"""group.initial.rebalance.delay.ms of Kafka as delivered."""
_DEFAULT_PATIENCE_MS = 300

APIS: Mapping[str, str] = MappingProxyType(
    {
        "JoinGroup": "join_group",
        "SyncGroup": "sync_group",
        "Heartbeat": "heartbeat",
        "LeaveGroup": "leave_group",
        "OffsetCommit": "offset_commit",
        "DescribeGroups": "describe_groups",
        "DeleteGroups": "delete_groups",
        "FindCoordinator": "find_coordinator",
    }
)
"""The requests whose version can be fixed, by Kafka's name."""


_NUMBERS = ("initial-delay", "patience", "max-size", "session", "rebalance", "groups")


@dataclass(frozen=True, slots=True)
class Address:
    """A broker. Times in ms: `initial_delay` is its group.initial.rebalance.delay.ms, `patience`
    how long a state that the specification does not allow is looked at again; `session` the timeout
    of a session that is to expire, at least its group.min.session.timeout.ms, 0 if none is to;
    `rebalance` that of a rebalance that is to expire; `groups`: so many side by side; `max_size`
    its group.max.size, 0 if it is not said; `versions`: of requests by kio's name, others get the
    newest that both sides know."""

    host: str
    port: int
    initial_delay: int = _DEFAULT_INITIAL_DELAY_MS
    patience: int = _DEFAULT_PATIENCE_MS
    max_size: int = 0
    session: int = 0
    rebalance: int = 800
    groups: int = 8
    versions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read what follows `wire:`. Raises UserError."""
    where, _, query = text.partition("?")
    found = _ADDRESS.fullmatch(where)
    if found is None or not 0 < int(found[2]) < 65_536:
        raise UserError(
            f"{where!r} is no address of a broker. Write the system as `{FORM}`, for example "
            "`wire:127.0.0.1:9092?initial-delay=3000`."
        )
    numbers: dict[str, int] = {}
    versions: dict[str, int] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in APIS:
            versions[APIS[name]] = _number(name, value)
        elif name in _NUMBERS:
            numbers[name.replace("-", "_")] = _number(name, value)
        else:
            known = ", ".join([*_NUMBERS, *APIS])
            raise UserError(f"wire: knows no setting {name!r}. Known: {known}.")
    return Address(found[1].strip("[]"), int(found[2]), versions=versions, **numbers)


def _number(name: str, value: str) -> int:
    if not value.isdecimal():
        raise UserError(f"wire: {name} is a number, not {value!r}: milliseconds, or a version.")
    return int(value)
