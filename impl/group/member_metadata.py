"""One member of a group, as the coordinator knows it.

Source: kafka.coordinator.group.MemberMetadata.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..errors import IllegalArgumentException
from .messages import (
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupResponse,
)

JoinCallback = Callable[[JoinGroupResponse], None]
SyncCallback = Callable[[SyncGroupResponse], None]


class MemberMetadata:
    """A member: identity, timeouts (ms), protocols in order of preference, parked requests.

    Changed only by its group, whose lock guards it.
    """

    __slots__ = (
        "assignment",
        "awaiting_join_callback",
        "awaiting_sync_callback",
        "client_host",
        "client_id",
        "group_instance_id",
        "heartbeat_satisfied",
        "is_new",
        "member_id",
        "protocol_type",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "supported_protocols",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        supported_protocols: tuple[JoinGroupRequestProtocol, ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.supported_protocols = supported_protocols
        self.assignment = assignment
        self.awaiting_join_callback: JoinCallback | None = None
        self.awaiting_sync_callback: SyncCallback | None = None
        self.is_new = False
        self.heartbeat_satisfied = False

    @property
    def is_static_member(self) -> bool:
        """Whether the member has a group.instance.id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        """Whether a JoinGroup is parked."""
        return self.awaiting_join_callback is not None

    @property
    def is_awaiting_sync(self) -> bool:
        """Whether a SyncGroup is parked."""
        return self.awaiting_sync_callback is not None

    def has_satisfied_heartbeat(self) -> bool:
        """Whether the session must not expire now."""
        if self.is_new:
            # A new member may expire while its join is parked, hence this comes first (KAFKA-9232).
            return self.heartbeat_satisfied
        return self.is_awaiting_join or self.is_awaiting_sync or self.heartbeat_satisfied

    def metadata(self, protocol: str) -> bytes:
        """The member's metadata for one protocol.

        Raises `IllegalArgumentException` if the member does not support it.
        """
        for supported in self.supported_protocols:
            if supported.name == protocol:
                return supported.metadata
        raise IllegalArgumentException(f"{self.member_id} does not support protocol {protocol}")

    def matches(self, protocols: tuple[JoinGroupRequestProtocol, ...]) -> bool:
        """Whether names, order and metadata are those the member has already."""
        return self.supported_protocols == protocols

    def vote(self, candidates: Collection[str]) -> str:
        """The member's first choice among the candidates.

        Raises `IllegalArgumentException` if it supports none of them.
        """
        for supported in self.supported_protocols:
            if supported.name in candidates:
                return supported.name
        raise IllegalArgumentException(f"{self.member_id} supports none of {sorted(candidates)}")

    def __repr__(self) -> str:
        return f"MemberMetadata({self.member_id!r}, instance={self.group_instance_id!r})"
