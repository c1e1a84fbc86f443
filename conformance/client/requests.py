"""A member's request as the loop has it: one of the five that the specification knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.kafka.entities import NEWEST, Entity, Received, in_version

MEMBER_APIS = {
    "join_group": "JoinGroup",
    "sync_group": "SyncGroup",
    "leave_group": "LeaveGroup",
    "heartbeat": "Heartbeat",
    "offset_commit": "OffsetCommit",
}
"""kio's names, and Kafka's."""


@dataclass(frozen=True, slots=True)
class MemberRequest:
    """`body` is in the newest version, whatever `version` the client has sent."""

    api: str
    version: int
    body: Entity

    @property
    def name(self) -> str:
        """Kafka's name of the API."""
        return MEMBER_APIS[self.api]

    @property
    def member_id(self) -> str:
        """Who sends it; of a LeaveGroup the first that leaves."""
        if self.api == "leave_group":
            return str(self.body.members[0].member_id) if self.body.members else ""
        return str(self.body.member_id)

    @property
    def generation_id(self) -> int:
        """In which generation, but for a JoinGroup and a LeaveGroup."""
        if self.api == "offset_commit":
            return int(self.body.generation_id_or_member_epoch)
        return int(self.body.generation_id)

    def committed(self) -> Iterator[tuple[str, int, int]]:
        """Topic, partition and offset of what an OffsetCommit commits; else nothing."""
        for topic in self.body.topics if self.api == "offset_commit" else ():
            for partition in topic.partitions:
                yield (
                    str(topic.name),
                    int(partition.partition_index),
                    int(partition.committed_offset),
                )

    def assignments(self) -> dict[str, bytes]:
        """A leader's assignments by member id, in a SyncGroup."""
        return {
            assignment.member_id: bytes(assignment.assignment)
            for assignment in self.body.assignments
        }


def member_request(received: Received) -> MemberRequest | None:
    """What the specification knows of a request; None if it does not know it."""
    if received.api not in MEMBER_APIS:
        return None
    body = in_version(received.body, NEWEST[received.api])
    return MemberRequest(received.api, received.version, body)
