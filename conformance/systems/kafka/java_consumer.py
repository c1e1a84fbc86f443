"""A member of KIP-848 whose consumer is Kafka's, with its membership, heartbeats and commits."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from conformance.kafka.entities import Entity, Received, read_request
from conformance.systems.external import AdapterChannel
from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.wire.consumer.member import (
    Commit,
    CommitAnswer,
    ConsumerState,
    Heartbeat,
    HeartbeatAnswer,
)
from conformance.systems.wire.consumer.requests import REBALANCE_MS

_STATES: Mapping[str, str] = MappingProxyType(
    {
        "UNSUBSCRIBED": "Unsubscribed",
        "JOINING": "Joining",
        "STABLE": "Member",
        "RECONCILING": "Member",
        "ACKNOWLEDGING": "Member",
        "FENCED": "Fenced",
        "FATAL": "Failed",
    }
)
"""MemberState, by Kafka's name. The others are passed through within a step."""
_OUTSIDE = frozenset({"Unsubscribed", "Leaving"})
"""Its epoch is the one that it left with, and what it named is of its last membership."""


class _BridgeJavaConsumer(msgspec.Struct, frozen=True, array_like=True):
    """A member as the bridge writes it: ConsumerMember.java. Requests are (number, frame)."""

    state: str
    leaving: bool
    epoch: int
    given: frozenset[int]
    owned: frozenset[int]
    local: frozenset[int]
    named: bool
    sent: tuple[tuple[int, bytes], ...]


_as_member = msgspec.json.Decoder(_BridgeJavaConsumer).decode


class JavaConsumer:
    """A ConsumerProcess. What it sends is read off its frames; answers go to the JVM as frames."""

    def __init__(
        self,
        channel: AdapterChannel,
        name: str,
        instance: str | None,
        partitions: int,
        reads: frozenset[str],
        offsets: Iterator[int],
    ) -> None:
        self._reads = reads
        self.name = name
        self.instance = instance
        self.channel: Heartbeat | HeartbeatAnswer | None = None
        self.commit: Commit | CommitAnswer | None = None
        self.heartbeat_frame = b""
        """Its heartbeat that is in flight, or the answer, without the size."""
        self.commit_frame = b""
        """The same of its commit."""
        self.offset = 0
        """What its last commit is of."""
        self._jvm = channel
        self._offsets = offsets
        self._numbers = {"heartbeat": 0, "commit": 0}
        self._run("start", instance=instance, rebalance_ms=REBALANCE_MS, partitions=partitions)

    def _run(self, step: str, **members: object) -> None:
        command = {"command": f"consumer_{step}", "member": self.name, **members}
        self._seen = _as_member(self._jvm.call([command])[0])
        for number, frame in self._seen.sent:
            self._note(number, frame, read_request(frame))

    def _note(self, number: int, frame: bytes, request: Received) -> None:
        body = request.body
        if request.api == "offset_commit":
            (topic,) = body.topics
            partitions = frozenset(int(part.partition_index) for part in topic.partitions)
            self.commit = Commit(int(body.generation_id_or_member_epoch), partitions)
            self.commit_frame, self._numbers["commit"] = frame, number
            return
        reads = frozenset(map(str, body.subscribed_topic_names or ()))
        self.channel = Heartbeat(int(body.member_epoch), _owned(body), reads)
        self.heartbeat_frame, self._numbers["heartbeat"] = frame, number

    @property
    def consumer(self) -> ConsumerState:
        """What the consumer's objects know. SystemFailed in a state that no step ends in."""
        seen = self._seen
        state = "Leaving" if seen.leaving else _STATES.get(seen.state, "")
        if not state:
            raise SystemFailed(f"{self.name} stays {seen.state}")
        if state in _OUTSIDE:
            return ConsumerState(state, 0, seen.given, seen.owned, seen.local)
        named = seen.named and (state != "Joining" or self.channel is not None)
        known = seen.given, seen.owned, seen.local, named
        reads = frozenset() if state == "Failed" else self._reads
        return ConsumerState(state, seen.epoch, *known, reads=reads)

    # ---- its steps -----------------------------------------------------------------------------

    def join(self) -> None:
        """KafkaConsumer.subscribe, and poll."""
        self._run("join")

    def send_heartbeat(self) -> None:
        """ConsumerHeartbeatRequestManager.poll, once the interval is over."""
        if self.channel is not None:
            raise ActionRefused(f"{self.name} has a heartbeat in flight")
        self._run("heartbeat")

    def revoke(self) -> None:
        """The reconciliation begins, and onPartitionsRevoked is called."""
        self._run("revoke")

    def assign(self) -> None:
        """onPartitionsAssigned is called: the reconciliation ends."""
        self._run("assign")

    def resubscribe(self, _reads: frozenset[str]) -> None:
        """Its topic is the bridge's: ActionRefused."""
        raise ActionRefused(f"{self.name} subscribes to one topic")

    def abandon(self) -> None:
        """onPartitionsLost is called."""
        if self.consumer.state != "Fenced":
            raise ActionRefused(f"{self.name} is not fenced")
        self.poll()

    def begin_reconciliation(self) -> None:
        """What the background thread does before `assign`: the application has not polled yet.

        No step of the specification: another one is taken in the middle of `assign`.
        """
        self._run("begin_reconciliation")

    def poll(self) -> None:
        """KafkaConsumer.poll calls back what waits."""
        self._run("poll")

    def leave(self) -> None:
        """KafkaConsumer.unsubscribe."""
        self._run("leave")

    def send_commit(self) -> None:
        """KafkaConsumer.commitAsync of all that it owns."""
        self.offset = next(self._offsets)
        self._run("commit", offset=self.offset)

    def receive_answer(self) -> None:
        """The answer arrives."""
        if not isinstance(self.channel, HeartbeatAnswer):
            raise ActionRefused(f"{self.name} has no answer")
        self.channel = None
        self._answer("heartbeat", self.heartbeat_frame)

    def lose_message(self) -> None:
        """The heartbeat or its answer is lost: the connection broke."""
        if self.channel is None:
            raise ActionRefused(f"{self.name} has nothing in flight")
        self.channel = None
        self._answer("heartbeat", None)

    def receive_commit(self) -> None:
        """The answer to the commit arrives."""
        if not isinstance(self.commit, CommitAnswer):
            raise ActionRefused(f"no commit of {self.name} is answered")
        self.commit = None
        self._answer("commit", self.commit_frame)

    def lose_commit(self) -> None:
        """The commit or its answer is lost."""
        if self.commit is None:
            raise ActionRefused(f"{self.name} commits nothing")
        self.commit = None
        self._answer("commit", None)

    def _answer(self, what: str, frame: bytes | None) -> None:
        text = None if frame is None else base64.b64encode(frame).decode("ascii")
        self._run("answer", number=self._numbers[what], frame=text)


def _owned(body: Entity) -> frozenset[int] | None:
    """The partitions that a heartbeat names; None if it names none.

    Who leaves owns nothing, whether it says so or has said so before: the coordinator does not ask.
    """
    if body.topic_partitions is None:
        return frozenset() if int(body.member_epoch) < 0 else None
    return frozenset(int(index) for topic in body.topic_partitions for index in topic.partitions)
