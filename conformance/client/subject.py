"""The client under test as spec/GroupClient.tla knows it: constants, and names on both sides.

All of it is in the client's first JoinGroup: protocols, topic, instance id, version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.client.breaches import assignment_of, subscription_of
from conformance.client.requests import MemberRequest
from conformance.errors import UserError
from conformance.kafka import consumer_protocol

_CONSUMER = "consumer"
"""The type of consumers' groups (ConsumerProtocol.PROTOCOL_TYPE)."""
_JOINS_TWICE = 4
"""From this JoinGroup version on, a new dynamic member must join again with its id (KIP-394)."""

CLIENT = "m1"
"""The process under test."""
OTHER = "m2"
"""A member of ours, which joins and leaves as the coordinator's answers need it."""
DOUBLE = "m3"
"""A process of ours with the client's instance id, if it has one."""

TOPIC, GROUP = "kconform", "kconform"
"""What the client is told to subscribe to, and to join."""
PARTITIONS = 2
"""Of the topic. Two members share two partitions alike, whichever assignor they use."""
CLIENT_IDS = 10
OTHER_IDS = 3
GENERATIONS = 40
"""More than an example comes to."""


@dataclass(frozen=True, slots=True)
class JoiningClient:
    """What the first JoinGroup told."""

    topic: str
    protocols: frozenset[str]
    instance: str | None
    joins_twice: bool
    """Whether it is to be told its id first (JoinGroup 4 and later, KIP-394)."""

    @property
    def others(self) -> tuple[str, ...]:
        """Our processes."""
        return (OTHER,) if self.instance is None else (DOUBLE, OTHER)

    def constants(self) -> dict[str, str]:
        """GroupClient's constants that depend on the client, as TLA+."""
        processes = (CLIENT, *self.others)
        ids = [
            f'[id |-> "{id}", member |-> "{process}"]'
            for process in processes
            for id in ids_of(process)
        ]
        static = "{" + ", ".join(f'"{name}"' for name in (CLIENT, DOUBLE)) + "}"
        instance = f'IF p \\in {static} THEN "instance" ELSE "none"'
        protocols = "{" + ", ".join(f'"{name}"' for name in sorted(self.protocols)) + "}"
        return {
            "Members": "{" + ", ".join(f'"{process}"' for process in processes) + "}",
            "InstanceOf": f"[p \\in Members |-> {instance if self.instance else NO_INSTANCE}]",
            "MemberIds": f"<<{', '.join(ids)}>>",
            "Generations": f"0..{GENERATIONS}",
            "Partitions": f"0..{PARTITIONS - 1}",
            "Protocols": protocols,
            "ProtocolsOf": f"[p \\in Members |-> {protocols}]",
            "RequireKnownMemberId": "TRUE" if self.joins_twice else "FALSE",
        }


NO_INSTANCE = '"none"'


def ids_of(process: str) -> tuple[str, ...]:
    """The specification's member ids of a process, as assignors sort them."""
    count = CLIENT_IDS if process == CLIENT else OTHER_IDS
    return tuple(f"{process}-{number:02}" for number in range(1, count + 1))


def subject_of(request: MemberRequest) -> JoiningClient:
    """What a client's first JoinGroup says. UserError for a client that cannot be judged.

    A subscription whose topics cannot be read is taken for one of the loop's topic.
    """
    body = request.body
    if body.protocol_type != _CONSUMER:
        raise UserError(
            f"The client joins a group of the type {body.protocol_type!r}. Only consumers are "
            f"judged: their groups are of the type {_CONSUMER!r}."
        )
    subscriptions = [subscription_of(bytes(protocol.metadata)) for protocol in body.protocols]
    topics = {
        topic
        for subscription in subscriptions
        for topic in (subscription.topics if subscription else (TOPIC,))
    }
    if len(topics) != 1:
        raise UserError(
            f"The client subscribes to {len(topics)} topics ({', '.join(sorted(topics))}). Let it "
            "subscribe to exactly one, whatever its name."
        )
    names = frozenset(protocol.name for protocol in body.protocols)
    cooperative = sorted(name for name in names if "cooperative" in name)
    if cooperative and len(cooperative) == len(names):
        raise UserError(
            f"The client rebalances cooperatively ({', '.join(cooperative)}), which the "
            "specification does not describe. Configure an eager assignor, for example range "
            "(partition.assignment.strategy)."
        )
    return JoiningClient(
        topics.pop(),
        names,
        body.group_instance_id,
        request.version >= _JOINS_TWICE,
    )


class MemberNames:
    """Member ids as they travel: the specification's in front, so that they sort alike."""

    def __init__(self, salt: str) -> None:
        self._salt = salt

    def real(self, id: str) -> str:
        """The id on the wire."""
        return f"{id}-{self._salt}" if id else ""

    def spec(self, real: str) -> str:
        """The specification's id; of one that was never given, the text itself."""
        return real.removesuffix(f"-{self._salt}")


def assignment_bytes(topic: str, partitions: frozenset[int]) -> bytes:
    """A member's assignment; none at all where it has no partition, as a coordinator has it."""
    return consumer_protocol.assignment_bytes(topic, partitions)


def assigned(data: bytes) -> frozenset[int]:
    """The partitions in an assignment's bytes; none where they cannot be read."""
    if not data:
        return frozenset()
    return frozenset(number for _, number in assignment_of(data) or ())


def assignments_of(request: Mapping[str, bytes], names: MemberNames) -> dict[str, frozenset[int]]:
    """A leader's assignments by the specification's ids."""
    return {names.spec(real): assigned(data) for real, data in request.items()}
