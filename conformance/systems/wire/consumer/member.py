"""A consumer of `group.protocol=consumer` as far as its coordinator sees it, a step at a time.

What is sent and what becomes of an answer is the Java client's: ConsumerMembershipManager and
ConsumerHeartbeatRequestManager.HeartbeatState. Time and network are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import methodcaller
from types import MappingProxyType
from typing import Protocol

from conformance.systems.protocol import ActionRefused
from conformance.tla import Action

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
NO_EPOCH = -3
ASSIGNOR = "range"
"""Sorts members by instance id or member id, so that what it gives is known before."""
_NONE = "NONE"
_FENCING = frozenset({"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"})
"""After these a member gives up its partitions and joins again."""


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """What one knows: `given` is the assignment it was told, `owned` what its application has,
    `local` what it last reconciled itself to, `named` whether a heartbeat has said that. `reads`:
    the topics that its application subscribes to, `news` that no heartbeat has said so yet."""

    state: str = "Unsubscribed"
    epoch: int = 0
    given: frozenset[int] = frozenset()
    owned: frozenset[int] = frozenset()
    local: frozenset[int] = frozenset()
    named: bool = False
    reads: frozenset[str] = frozenset()
    news: bool = False


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A ConsumerGroupHeartbeat request; `owned` is None if it does not name partitions, `reads`
    empty if it does not name topics. `assignor`: what it names if it names partitions."""

    epoch: int
    owned: frozenset[int] | None = None
    reads: frozenset[str] = frozenset()
    assignor: str | None = ASSIGNOR


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """Its answer; `given` is None if it has no assignment. `interval_ms`: when the coordinator
    wants the next heartbeat; 0 if it says nothing of that."""

    error: str = _NONE
    epoch: int = NO_EPOCH
    given: frozenset[int] | None = None
    interval_ms: int = 0


@dataclass(frozen=True, slots=True)
class Commit:
    """An OffsetCommit request."""

    epoch: int
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class CommitAnswer:
    """Its answer: the partitions that were taken; `error` of the others, or NONE."""

    committed: frozenset[int]
    error: str = _NONE


class WireMember:
    """A consumer and what it has in flight; ActionRefused for a step that it cannot take now.

    `reads`: the topics that it subscribes to as it joins; `assignor`: group.remote.assignor.
    """

    def __init__(
        self,
        name: str,
        instance: str | None,
        reads: frozenset[str],
        *,
        names_while_reconciling: bool,
        assignor: str | None = ASSIGNOR,
    ) -> None:
        self.name = name
        self.instance = instance
        self._reads = reads
        self._assignor = assignor
        self._names_while_reconciling = names_while_reconciling
        self.consumer = ConsumerState()
        self.channel: Heartbeat | HeartbeatAnswer | None = None
        self.commit: Commit | CommitAnswer | None = None

    def _expect(self, possible: bool, what: str) -> None:
        if not possible:
            raise ActionRefused(f"{self.name} is {self.consumer.state} and cannot {what}")

    def join(self) -> None:
        """transitionToJoining, as the application subscribes."""
        self._expect(self.consumer.state == "Unsubscribed", "join")
        self.consumer = _beginning(self._reads)

    def resubscribe(self, reads: frozenset[str]) -> None:
        """subscribe() with other topics: the next heartbeat says so."""
        consumer = self.consumer
        ready = consumer.state == "Member" and not consumer.news and reads != consumer.reads
        self._expect(ready, "subscribe to other topics")
        self.consumer = replace(consumer, reads=reads, news=True)

    def send_heartbeat(self) -> None:
        """buildRequestData: what it owns is named as it joins, after a change, after a failure."""
        consumer = self.consumer
        ready = consumer.state in ("Joining", "Member") and self.channel is None
        self._expect(ready, "send a heartbeat")
        reconciled = consumer.local == consumer.given
        names = consumer.state == "Joining" or (
            not consumer.named and (self._names_while_reconciling or reconciled)
        )
        self.channel = Heartbeat(
            consumer.epoch,
            consumer.local if names else None,
            consumer.reads if names or consumer.news else frozenset(),
            self._assignor,
        )
        self.consumer = replace(consumer, named=consumer.named or names, news=False)

    def revoke(self) -> None:
        """onPartitionsRevoked of what the assignment no longer has."""
        consumer = self.consumer
        kept = consumer.owned & consumer.given
        self._expect(consumer.state == "Member" and kept != consumer.owned, "revoke partitions")
        self.consumer = replace(consumer, owned=kept)

    def assign(self) -> None:
        """onPartitionsAssigned of what is new; the next heartbeat says so."""
        consumer = self.consumer
        ready = consumer.local != consumer.given and consumer.owned <= consumer.given
        self._expect(consumer.state == "Member" and ready, "take its assignment")
        self.consumer = replace(consumer, owned=consumer.given, local=consumer.given, named=False)

    def abandon(self) -> None:
        """onPartitionsLost of everything (transitionToFenced), then a new join."""
        self._expect(self.consumer.state == "Fenced", "join again")
        self.consumer = _beginning(self.consumer.reads)

    def leave(self) -> None:
        """leaveGroup: everything is revoked, and one last heartbeat says so."""
        self._expect(self.consumer.state == "Member" and self.channel is None, "leave")
        self.consumer = ConsumerState(state="Leaving")
        epoch = LEAVE_EPOCH if self.instance is None else STATIC_LEAVE_EPOCH
        self.channel = Heartbeat(epoch, frozenset(), assignor=self._assignor)

    def receive_answer(self) -> None:
        """onHeartbeatSuccess, onErrorResponse."""
        answer = self.channel
        if not isinstance(answer, HeartbeatAnswer):
            raise ActionRefused(f"{self.name} has no answer")
        self.channel = None
        self.consumer = _after(self.consumer, answer)

    def lose_message(self) -> None:
        """onFailure: what was named is forgotten. Who leaves does not ask again."""
        if self.channel is None:
            raise ActionRefused(f"{self.name} has nothing in flight")
        sent, self.channel = self.channel, None
        unheard = isinstance(sent, Heartbeat) and bool(sent.reads) and sent.owned is None
        leaving, news = self.consumer.state == "Leaving", self.consumer.news or unheard
        self.consumer = (
            ConsumerState() if leaving else replace(self.consumer, named=False, news=news)
        )

    def send_commit(self) -> None:
        """CommitRequestManager: what it owns, in the epoch that it knows."""
        consumer = self.consumer
        ready = consumer.state == "Member" and bool(consumer.owned) and self.commit is None
        self._expect(ready, "commit")
        self.commit = Commit(consumer.epoch, consumer.owned)

    def receive_commit(self) -> None:
        """OffsetCommitRequestState.onResponse: it changes nothing of the membership."""
        if not isinstance(self.commit, CommitAnswer):
            raise ActionRefused(f"no commit of {self.name} is answered")
        self.commit = None

    def lose_commit(self) -> None:
        """The request or its answer never arrives."""
        if self.commit is None:
            raise ActionRefused(f"{self.name} commits nothing")
        self.commit = None


def _beginning(reads: frozenset[str]) -> ConsumerState:
    return ConsumerState(state="Joining", reads=reads)


def _after(consumer: ConsumerState, answer: HeartbeatAnswer) -> ConsumerState:
    if consumer.state == "Leaving":
        return ConsumerState()
    if answer.error == _NONE:
        given = consumer.given if answer.given is None else answer.given
        is_taken_back = given != consumer.given and given == consumer.local
        return replace(
            consumer,
            state="Member",
            epoch=answer.epoch,
            given=given,
            named=consumer.named and not is_taken_back,
        )
    if answer.error in _FENCING:
        if not consumer.owned:  # transitionToFenced has nothing to call onPartitionsLost of
            return _beginning(consumer.reads)
        return replace(consumer, state="Fenced", epoch=JOIN_EPOCH, named=False, news=False)
    return ConsumerState(state="Failed")


class ConsumerProcess(Protocol):
    """A consumer as it is driven, whoever's it is: a method for each of `OF_A_MEMBER`."""

    name: str
    instance: str | None
    channel: Heartbeat | HeartbeatAnswer | None
    commit: Commit | CommitAnswer | None

    @property
    def consumer(self) -> ConsumerState:
        """What it knows."""

    def resubscribe(self, reads: frozenset[str]) -> None:
        """Its application subscribes to other topics."""


OF_A_MEMBER: Mapping[str, Callable[[ConsumerProcess], None]] = MappingProxyType(
    {
        "Join": methodcaller("join"),
        "SendHeartbeat": methodcaller("send_heartbeat"),
        "Revoke": methodcaller("revoke"),
        "Assign": methodcaller("assign"),
        "Abandon": methodcaller("abandon"),
        "Leave": methodcaller("leave"),
        "ReceiveAnswer": methodcaller("receive_answer"),
        "LoseMessage": methodcaller("lose_message"),
        "SendCommit": methodcaller("send_commit"),
        "ReceiveCommit": methodcaller("receive_commit"),
        "LoseCommit": methodcaller("lose_commit"),
    }
)
"""Steps of a member that have no other argument; they leave the coordinator as it was."""
_RESUBSCRIBE = "Resubscribe"


def is_of_a_member(action: Action) -> bool:
    """Whether it leaves the coordinator as it was."""
    return action.name in OF_A_MEMBER or action.name == _RESUBSCRIBE


def step_of_member(member: ConsumerProcess, action: Action) -> None:
    """Let the member take a step that leaves the coordinator as it was. Raises ActionRefused."""
    if action.name != _RESUBSCRIBE:
        OF_A_MEMBER[action.name](member)
        return
    reads = action.args[1]
    assert isinstance(reads, frozenset), "a set of names"
    member.resubscribe(frozenset(map(str, reads)))


REQUESTS = frozenset({"HandleHeartbeat", "RefuseHeartbeat", "HandleLeave", "HandleStaticLeave"})
"""Steps in which the coordinator gets a member's heartbeat."""
