"""A broker's port: versions agreed on, requests sent, answers collected as they come."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kio.schema.errors import ErrorCode

from conformance.errors import UserError
from conformance.kafka.entities import (
    NEWEST,
    NO_TIME,
    Entity,
    api_of,
    class_of,
    in_version,
    make,
    newest,
)
from conformance.systems.protocol import SystemFailed, SystemHangs
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.wire.address import APIS, OPTIONAL, Address
from conformance.systems.wire.connection import (
    LoginFailed,
    Pending,
    WireConnection,
    wait_for,
)
from conformance.systems.wire.security import Security

ANSWER_SECONDS = 10.0
"""After which a request that a broker answers at once has not been answered: it hangs."""
COORDINATOR_SECONDS = 60.0
"""How long a broker may take to find a coordinator: at first it has to make the offsets topic."""
_RETRY = frozenset({ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress})
MOVING = frozenset({*_RETRY, ErrorCode.not_coordinator})
"""Answers of a broker that does not coordinate the group, or does not do so yet."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""FindCoordinator's types of keys."""
CLIENT_ID = "kconform"
_FEATURES_SINCE = 3
"""ApiVersions tells of features from this version on."""
ABSENT = -1
"""The version of a request that a broker does not offer and need not."""


class Asked(Protocol):
    """Whoever answers requests: a broker at a port, or one in this process."""

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of each request, by kio's names; ABSENT where there is none."""

    def offers(self, api: str, /) -> bool:
        """Whether there is such a request."""

    def ask_body(self, body: Any, /) -> Any:
        """The answer to an entity of kio."""

    def ask_all(self, bodies: Sequence[Any], /) -> list[Any]:
        """The answers to several, in their order."""

    def tell(self, body: Any, /) -> None:
        """Send what nobody answers: a Produce with acks=0."""


def not_offered(port: Asked, needed: Mapping[str, tuple[str, int]]) -> str:
    """The first request, with the least version that is needed, that is not offered; or nothing."""
    for api, (name, version) in needed.items():
        if port.versions[api] < version:
            return f"the broker does not offer {name} {version}"
    return ""


class Port:
    """One broker. Raises UserError where nobody listens or the versions do not meet."""

    def __init__(self, address: Address, security: Security) -> None:
        self.address = address
        self._security = security
        self._idle: list[WireConnection] = []
        self._busy: list[WireConnection] = []
        self.slowest = 0.0
        """The longest (s) that a request took which is answered at once, since it was reset."""
        self.versions = self._agree()

    # ---- versions --------------------------------------------------------------------------

    def _agree(self) -> Mapping[str, int]:
        """Of each API the newest version that both sides know, or the one that was asked for."""
        body = make(class_of("api_versions", 0, "request"))
        try:
            answer = self.ask_body(body)
        except SystemFailed as error:
            raise UserError(
                f"What listens at {self.address} does not answer as a Kafka broker does: {error}\n"
                "If it wants TLS or a login, say so with --tls-ca or --wire-config."
            ) from error
        offered = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        self._offered = {int(key): highest for key, (_, highest) in offered.items()}
        return {api: self._version(name, api, offered) for name, api in APIS.items()}

    def _version(self, name: str, api: str, offered: Mapping[int, tuple[int, int]]) -> int:
        key = class_of(api, _NEWEST[api], "request").__api_key__
        if key not in offered and api in OPTIONAL:
            return ABSENT
        if key not in offered:
            raise UserError(
                f"The broker at {self.address} does not offer {name}: it coordinates no groups."
            )
        low, high = offered[key]
        wanted = self.address.versions.get(api, min(high, _NEWEST[api]))
        if not low <= wanted <= min(high, _NEWEST[api]):
            raise UserError(
                f"The broker at {self.address} offers {name} {low} to {high}, kconform knows up to "
                f"{_NEWEST[api]}: version {wanted} cannot be used."
            )
        return wanted

    # ---- requests --------------------------------------------------------------------------

    def submit(self, message: Entity, client_id: str, at_most: int | None = None) -> Pending:
        """Send a group's request on a connection of its own, in the version that was agreed on, or
        in an older one."""
        version = self.versions[api_of(message)]
        version = version if at_most is None else min(version, at_most)
        return self._send(in_version(message, version), client_id)

    def _send(self, body: Any, client_id: str) -> Pending:
        connection = self._idle.pop() if self._idle else self._connect()
        self._busy.append(connection)
        return connection.send(body, client_id)

    def _connect(self) -> WireConnection:
        address = self.address
        try:
            return WireConnection(address.host, address.port, ANSWER_SECONDS, self._security)
        except LoginFailed as error:
            raise UserError(
                f"The broker at {address} does not accept the login of {address.config}: {error}."
            ) from error
        except ssl.SSLError as error:
            raise UserError(
                f"No TLS connection to {address}: {error}. Say whom to trust with --tls-ca, or in "
                "the file of --wire-config."
            ) from error
        except OSError as error:
            raise UserError(
                f"No broker answers at {address}: {error}. Start it, or name another address."
            ) from error

    def receive(self, seconds: float = 0.0) -> bool:
        """Take in what has arrived, after so long at most; whether anything has.

        A connection that fails is given up at once: it would spoil the next test too.
        """
        ready = wait_for(self._busy, seconds)
        for connection in ready:
            try:
                connection.receive()
            except SystemFailed:
                self._give_up(connection)
                raise
            if connection.pending is None and connection.ended:
                self._give_up(connection)
            elif connection.pending is None:
                self._busy.remove(connection)
                self._idle.append(connection)
        return bool(ready)

    def _give_up(self, connection: WireConnection) -> None:
        self._busy.remove(connection)
        connection.close()

    def ask(self, message: Entity) -> Entity:
        """A group's request that is answered at once, both in the newest version. Raises
        SystemHangs where it is not."""
        return decoded(self._answer_to(self.submit(message, CLIENT_ID)))

    def offers(self, api: str) -> bool:
        """Whether the broker offers a request, by kio's name."""
        return self.versions[api] != ABSENT

    def ask_body(self, body: Any, seconds: float = ANSWER_SECONDS, *, at_once: bool = True) -> Any:
        """An entity of kio, answered by another within so long. Raises SystemHangs.

        `at_once`: a broker that is not slow answers at once.
        """
        return self._answer_to(self._send(body, CLIENT_ID), seconds, at_once=at_once).body

    def tell(self, body: Any) -> None:
        """An entity of kio that is not answered, on the connection that is used next."""
        connection = self._idle.pop() if self._idle else self._connect()
        connection.tell(body, CLIENT_ID)
        self._idle.append(connection)

    def ask_all(self, bodies: Sequence[Any]) -> list[Any]:
        """Several entities at a time, each on a connection of its own, answered at once."""
        under_way = [self._send(body, CLIENT_ID) for body in bodies]
        return [self._answer_to(pending).body for pending in under_way]

    def finalized_level(self, feature: str) -> int:
        """The level of a feature that is on in the cluster (KIP-584); 0 if the broker has none."""
        key = class_of("api_versions", 0, "request").__api_key__
        if self._offered[key] < _FEATURES_SINCE:
            return 0
        kind = class_of("api_versions", _FEATURES_SINCE, "request")
        answer = self.ask_body(
            make(kind, client_software_name=CLIENT_ID, client_software_version="0")
        )
        levels = {each.name: int(each.max_version_level) for each in answer.finalized_features}
        return levels.get(feature, 0)

    def _answer_to(
        self, pending: Pending, seconds: float = ANSWER_SECONDS, *, at_once: bool = True
    ) -> Pending:
        asked = time.monotonic()
        while pending.body is None:
            left = asked + seconds - time.monotonic()
            if left <= 0:
                raise SystemHangs(f"{pending} was not answered within {seconds:.0f} s")
            self.receive(left)
        if at_once:
            self.slowest = max(self.slowest, time.monotonic() - asked)
        return pending

    def find_coordinator(self, key: str, key_type: int = GROUP_KEY) -> tuple[str, int]:
        """Where the coordinator of a group or of a transactional id listens."""
        until = time.monotonic() + COORDINATOR_SECONDS
        module = newest("find_coordinator", "request")
        request = make(module.FindCoordinatorRequest, key_type=key_type, coordinator_keys=(key,))
        while True:
            (answer,) = self.ask(request).coordinators
            if answer.error_code is ErrorCode.none:
                return answer.host, answer.port
            if answer.error_code not in _RETRY or time.monotonic() > until:
                raise SystemFailed(
                    f"FindCoordinator for {key} was answered {error_name(answer.error_code)}"
                )
            time.sleep(0.1)

    # ---- ends ------------------------------------------------------------------------------

    def await_all(self) -> None:
        """Wait until every request under way is answered. Raises SystemHangs."""
        until = time.monotonic() + ANSWER_SECONDS
        while self._busy:
            left = until - time.monotonic()
            if left <= 0:
                raise SystemHangs(f"{self._busy[0].pending} was not answered in time")
            self.receive(left)

    def renew(self) -> None:
        """After a fail-over: no connection is used again; a request whose connection broke was
        one of a coordinator that is gone, and is answered so, as a client takes it."""
        for connection in self._idle:
            connection.close()
        self._idle = []
        for connection in list(self._busy):
            pending = connection.pending
            try:
                connection.receive()
            except SystemFailed:
                self._give_up(connection)
                if pending is not None and pending.body is None:
                    pending.body = GONE

    def abandon(self) -> None:
        """Close the connections that wait for an answer; the others can be used again."""
        for connection in self._busy:
            connection.close()
        self._busy = []

    def close(self) -> None:
        """Close all connections."""
        self.abandon()
        for connection in self._idle:
            connection.close()
        self._idle = []


GONE = object()
"""Stands for the answer of a coordinator that is gone."""


def _of_the_gone(api: str) -> Entity:
    """Of a request that may be parked."""
    return make(
        class_of(api, NEWEST[api], "response"),
        throttle_time=NO_TIME,
        error_code=ErrorCode.not_coordinator,
        generation_id=-1,
        leader="",
        member_id="",
        members=(),
        assignment=b"",
    )


@dataclass(slots=True)
class Ports:
    """The ports of a cluster's brokers, each made at its first use."""

    _address: Address
    _security: Security
    _known: dict[tuple[str, int], Port] = field(default_factory=dict)

    def at(self, host: str, port: int) -> Port:
        """The broker's that is reached there."""
        if (host, port) not in self._known:
            there = replace(self._address, host=host, port=port)
            self._known[host, port] = Port(there, self._security)
        return self._known[host, port]

    def __iter__(self) -> Iterator[Port]:
        return iter(tuple(self._known.values()))


def decoded(pending: Pending) -> Entity:
    """The answer in the newest version."""
    if pending.body is GONE:
        return _of_the_gone(pending.api)
    return in_version(pending.body, NEWEST[pending.api])


_NEWEST: Mapping[str, int] = {
    **NEWEST,
    "list_groups": 5,
    "metadata": 9,
    "create_topics": 7,
    "delete_topics": 5,
    "create_partitions": 3,
    "incremental_alter_configs": 1,
    "describe_configs": 4,
    "consumer_group_heartbeat": 1,
    "consumer_group_describe": 1,
    "produce": 13,
    "fetch": 18,
    "list_offsets": 11,
    "init_producer_id": 5,
    "describe_producers": 0,
    "add_partitions_to_txn": 3,
    "add_offsets_to_txn": 4,
    "txn_offset_commit": 5,
    "end_txn": 5,
    "write_txn_markers": 2,
    "describe_transactions": 0,
    "list_transactions": 2,
    "delete_records": 2,
    "offset_for_leader_epoch": 4,
}
"""The newest versions that are spoken here."""
