"""The broker that a system drives in real time: its ports, its coordinator, what was made there.

The same for groups of the classic protocol and of KIP-848.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kio.schema.errors import ErrorCode

from conformance.errors import UserError
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.address import Address
from conformance.systems.wire.admin import (
    OFFSETS_TOPIC,
    auto_created_topic,
    delete_group,
    delete_groups,
    delete_topics,
    make_topic,
)
from conformance.systems.wire.leadership import Leaders
from conformance.systems.wire.port import Port, Ports
from conformance.systems.wire.security import Security

_DELETED_AT_ONCE = 100


class WireBroker:
    """Of one system. `entry` is the broker of the address, `coordinator` that of the present group;
    `run` is part of every name that the system gives."""

    def __init__(self, address: Address, security: Security) -> None:
        self.address = address
        self.ports = Ports(address, security)
        self.entry = self.coordinator = self.ports.at(address.host, address.port)
        self.leaders = Leaders(self.entry, OFFSETS_TOPIC)
        self.run = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._numbers = itertools.count(1)
        self._topics: list[str] = []
        self._groups: list[tuple[Port, str]] = []

    def require(self, specification: str, lacking: str) -> None:
        """UserError with what is lacking to drive the broker by a specification, if anything is."""
        if lacking:
            raise UserError(
                f"The broker at {self.address} cannot be driven by {specification}: {lacking}."
            )

    def new_prefix(self) -> str:
        """Of names that nobody has used."""
        return f"{self.new_group_id()}-"

    def new_group_id(self) -> str:
        """One that nobody has used."""
        return f"kconform-{self.run}-{next(self._numbers)}"

    def find_coordinator(self, group_id: str, port: Port | None = None) -> None:
        """Ask for it at the entry, or at another broker's port."""
        self.coordinator = self.ports.at(*(port or self.entry).find_coordinator(group_id))

    def make_topic(self, partitions: int, name: str = "") -> tuple[str, uuid.UUID] | None:
        """A topic of this system's own, with its id; None if the broker makes none. `name`: if it
        is to have a certain one."""
        number = f"-{len(self._topics)}" if self._topics else ""
        name = name or f"kconform-{self.run}{number}"
        topic_id = make_topic(self.entry, name, partitions)
        if topic_id is None:
            return None
        self._topics.append(name)
        return name, topic_id

    def require_topic(self, partitions: int) -> tuple[str, uuid.UUID]:
        """The same; where CreateTopics is not offered, a topic that the question for its metadata
        makes. UserError if there is no topic with so many partitions."""
        made = self.make_topic(partitions)
        if made is not None:
            return made
        name = f"kconform-{self.run}-{next(self._numbers)}"
        return name, auto_created_topic(self.entry, name, partitions)

    def delete_group(self, group_id: str) -> None:
        """Delete a group without members: now, or with what was made if it cannot be done yet."""
        if delete_group(self.coordinator, group_id) is not ErrorCode.none:
            self.delete_at_end(group_id)

    def delete_at_end(self, group_id: str) -> None:
        """The group was made, and is deleted with the topic."""
        self._groups.append((self.coordinator, group_id))

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Delete what was made, after the block, and close the connections.

        A broker that fails even at that has been told of already, by the test before.
        """
        try:
            with suppress(SystemFailed):
                yield
                self._delete_groups()
                if self._topics:
                    delete_topics(self.entry, tuple(self._topics))
        finally:
            for port in self.ports:
                port.close()

    def _delete_groups(self) -> None:
        for port in self.ports:
            made = [group for owner, group in self._groups if owner is port]
            for start in range(0, len(made), _DELETED_AT_ONCE):
                delete_groups(port, tuple(made[start : start + _DELETED_AT_ONCE]))
