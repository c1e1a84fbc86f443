"""A consumer of the classic protocol as spec/GroupMember.tla has it, a step at a time.

It is the member's side wherever the coordinator is foreign: behind a port, in a JVM. It shares no
code with `impl`, so a fault there changes no verdict on somebody else's coordinator. Each step is
the specification's, by its name; tests/differential/test_port_member.py compares every one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kio.schema.errors import ErrorCode

from conformance.kafka.consumer_protocol import assignment_bytes, subscription_bytes
from conformance.kafka.entities import Entity, make, milliseconds, newest
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.exchange import (
    NO_GENERATION,
    Exchange,
    commit_error,
    heartbeat_view,
    kind_of,
    message_view,
    partitions,
)
from conformance.systems.shared.group.settings import (
    GROUP_ID,
    SESSION_TIMEOUT_MS,
    TOPIC,
    GroupSettings,
)
from conformance.systems.shared.group.views import ProcessView

PROTOCOL_TYPE = "consumer"
_SUBSCRIPTION_VERSION = 1
"""Before it told the generation (KIP-792), as in the spec."""
_UNJOINED, _PREPARING = "UNJOINED", "PREPARING_REBALANCE"
_COMPLETING, _STABLE = "COMPLETING_REBALANCE", "STABLE"
_FATAL = frozenset(
    {
        ErrorCode.fenced_instance_id,
        ErrorCode.inconsistent_group_protocol,
        ErrorCode.group_max_size_reached,
    }
)
_FORGETTING = frozenset({ErrorCode.unknown_member_id, ErrorCode.illegal_generation})
_DISCONNECTING = frozenset({ErrorCode.coordinator_not_available, ErrorCode.not_coordinator})
"""After these the client gives up the connection to the coordinator."""


@dataclass(frozen=True, slots=True)
class MemberGeneration:
    """Who the member is: NoMemberGeneration until it is told."""

    generation_id: int = NO_GENERATION
    member_id: str = ""
    protocol: str | None = None


_NOBODY = MemberGeneration()


@dataclass(frozen=True, slots=True)
class PortMemberState:
    """The specification's Member(p). `future`: None, Pending or Succeeded, with an assignment."""

    protocols: frozenset[str]
    state: str = _UNJOINED
    generation: MemberGeneration = _NOBODY
    rejoin_needed: bool = True
    needs_join_prepare: bool = True
    future: str = "None"
    future_assignment: frozenset[int] = frozenset()
    is_leader: bool = False
    owned: frozenset[int] = frozenset()
    failed: bool = False

    def reset(self, *, keeps_id: bool) -> PortMemberState:
        """resetStateAndRejoin; of whom an ILLEGAL_GENERATION puts out, the id stays."""
        kept = MemberGeneration(member_id=self.generation.member_id) if keeps_id else _NOBODY
        return replace(
            self, state=_UNJOINED, rejoin_needed=True, needs_join_prepare=True, generation=kept
        )

    def reset_if(self, sent: MemberGeneration, error: ErrorCode) -> PortMemberState:
        """The same, if the answer is to who the member still is."""
        if not self.is_unchanged(sent):
            return self
        return self.reset(keeps_id=error is ErrorCode.illegal_generation)

    def is_unchanged(self, sent: MemberGeneration) -> bool:
        """generationUnchanged."""
        now = self.generation
        return (now.member_id, now.generation_id) == (sent.member_id, sent.generation_id)

    def join_failed(self) -> PortMemberState:
        """JoinFailed: joinGroupIfNeeded tries again."""
        return replace(self, future="None", future_assignment=frozenset(), rejoin_needed=True)

    def fatal(self) -> PortMemberState:
        """Fatal: the error is thrown to the user."""
        return replace(self, future="None", future_assignment=frozenset(), failed=True)

    def prepared(self) -> PortMemberState:
        """Prepared: onJoinPrepare, eager."""
        if not self.needs_join_prepare:
            return self
        return replace(self, needs_join_prepare=False, owned=frozenset(), is_leader=False)

    @property
    def adopts_join(self) -> bool:
        """Only who still waits to join adopts the generation."""
        return self.state == _PREPARING and not self.failed

    @property
    def adopts_sync(self) -> bool:
        """An answer to who lost its generation meanwhile is stale."""
        in_generation = self.generation.generation_id != NO_GENERATION
        return in_generation and self.state == _COMPLETING and not self.failed

    # ---- what the answers make of it -----------------------------------------------------------

    def after_join(self, answer: Entity, sent: MemberGeneration) -> PortMemberState:
        """AfterJoin, where the generation is not adopted."""
        error = answer.error_code
        if error is ErrorCode.member_id_required:
            named = MemberGeneration(member_id=answer.member_id)
            return replace(self, generation=named).join_failed()
        if error is ErrorCode.unknown_member_id:
            return self.reset_if(sent, error).join_failed()
        return self.fatal() if error in _FATAL else self.join_failed()

    def joined(self, answer: Entity) -> PortMemberState:
        """AfterJoin, where the generation is adopted."""
        return replace(
            self,
            state=_COMPLETING,
            is_leader=self.is_leader or answer.leader == answer.member_id,
            generation=MemberGeneration(
                answer.generation_id, answer.member_id, answer.protocol_name
            ),
        )

    def after_sync(self, answer: Entity, sent: MemberGeneration) -> PortMemberState:
        """AfterSync."""
        error = answer.error_code
        if error is ErrorCode.none and self.adopts_sync:
            if answer.protocol_name != self.generation.protocol:
                return self.fatal()
            given = partitions(answer.assignment)
            return replace(
                self,
                state=_STABLE,
                rejoin_needed=False,
                future="Succeeded",
                future_assignment=given,
            )
        if error in _FORGETTING:
            return self.reset_if(sent, error).join_failed()
        return self.fatal() if error in _FATAL else self.join_failed()

    def after_heartbeat(self, error: ErrorCode, sent: MemberGeneration) -> PortMemberState:
        """AfterHeartbeat."""
        if error is ErrorCode.rebalance_in_progress and self.state == _STABLE:
            return replace(self, rejoin_needed=True)
        if error in _FORGETTING:
            return self.reset_if(sent, error)
        if error is ErrorCode.fenced_instance_id and self.is_unchanged(sent):
            return replace(self.reset(keeps_id=False), failed=True)
        return self

    def after_commit(self, error: ErrorCode, sent: MemberGeneration) -> PortMemberState:
        """AfterOffsetCommit: unlike a heartbeat's, the answer counts in a later generation too."""
        if error is ErrorCode.rebalance_in_progress:
            return replace(self, rejoin_needed=True)
        if error in _FORGETTING and self.state == _PREPARING:
            return self.reset_if(sent, error)
        if error in _FORGETTING:
            return self.reset(keeps_id=error is ErrorCode.illegal_generation)
        if error is ErrorCode.fenced_instance_id and self.is_unchanged(sent):
            return replace(self, failed=True)
        return self

    def completed(self) -> PortMemberState:
        """AfterFuture: onJoinComplete, unless the generation was reset meanwhile."""
        given = self.future_assignment
        done = replace(self, future="None", future_assignment=frozenset())
        if self.state == _STABLE and self.generation.generation_id != NO_GENERATION:
            return replace(done, needs_join_prepare=True, owned=given)
        return done.reset(keeps_id=False)


class PortMember:
    """One process of the spec, through restarts, as `steps.MemberProcess` asks for."""

    def __init__(self, name: str, settings: GroupSettings) -> None:
        self.name = name
        self._settings = settings
        self._instance = settings.instances[name]
        self.member = PortMemberState(settings.protocols_of[name])
        self.channel: Exchange | None = None
        self.heartbeat: Exchange | None = None

    def _expect(self, possible: bool, what: str) -> None:
        if self.member.failed or not possible:
            raise ActionRefused(f"{self.name} is {self.member.state} and cannot {what}")

    def _sent(self, message: Entity, *, abandoned: bool = False) -> Exchange:
        return Exchange(message, self.member.generation, abandoned=abandoned)

    def at_most(self, message: Entity) -> int | None:
        """The newest version in which it sends this request; None: no member minds."""
        joins = kind_of(message) == "JoinGroupRequest"
        return self._settings.join_version(self.name) if joins else None

    # ---- the application ---------------------------------------------------------------------

    def send_join_group(self) -> None:
        """SendJoinGroup: joinGroupIfNeeded up to the request."""
        member = self.member
        ready = member.rejoin_needed and member.future == "None" and self.channel is None
        self._expect(ready, "join")
        self.channel = self._sent(self._join_group())
        self.member = replace(member.prepared(), state=_PREPARING, future="Pending")

    def _join_group(self) -> Entity:
        module, settings = newest("join_group", "request"), self._settings
        metadata = subscription_bytes((TOPIC,), _SUBSCRIPTION_VERSION)
        return make(
            module.JoinGroupRequest,
            group_id=GROUP_ID,
            session_timeout=milliseconds(SESSION_TIMEOUT_MS),
            rebalance_timeout=milliseconds(settings.rebalance_timeout_ms),
            member_id=self.member.generation.member_id,
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocols=tuple(
                module.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name in sorted(self.member.protocols)
            ),
        )

    def complete_join(self) -> None:
        """CompleteJoin: joinGroupIfNeeded sees the completed future."""
        self._expect(self.member.future == "Succeeded", "complete a join")
        self.member = self.member.completed()

    def send_offset_commit(self) -> None:
        """SendOffsetCommit: of a stable member only."""
        member = self.member
        ready = member.state == _STABLE and member.future == "None" and self.heartbeat is None
        self._expect(ready, "commit")
        module = newest("offset_commit", "request")
        partition = make(
            module.OffsetCommitRequestPartition,
            partition_index=0,
            committed_offset=0,
            committed_metadata="",
        )
        topic = make(module.OffsetCommitRequestTopic, name=TOPIC, partitions=(partition,))
        message = make(
            module.OffsetCommitRequest,
            group_id=GROUP_ID,
            generation_id_or_member_epoch=member.generation.generation_id,
            member_id=member.generation.member_id,
            group_instance_id=self._instance,
            topics=(topic,),
        )
        self.heartbeat = self._sent(message)

    def leave_group(self) -> None:
        """LeaveGroup: a static member does not tell the coordinator."""
        member = self.member
        knows_itself = member.state != _UNJOINED and member.generation.member_id != ""
        idle = self.channel is None and member.future == "None"
        self._expect(knows_itself and idle, "leave")
        if self._instance is None:
            module = newest("leave_group", "request")
            leaving = make(module.MemberIdentity, member_id=member.generation.member_id)
            message = make(module.LeaveGroupRequest, group_id=GROUP_ID, members=(leaving,))
            self.channel = self._sent(message, abandoned=True)
        self.member = member.reset(keeps_id=False)

    def request_rejoin(self) -> None:
        """RequestRejoin: enforceRebalance, new metadata."""
        ready = self.member.state == _STABLE and not self.member.rejoin_needed
        self._expect(ready, "ask for a rebalance")
        self.member = replace(self.member, rejoin_needed=True)

    def change_protocols(self, names: frozenset[str]) -> None:
        """ChangeProtocols: from its next join on the consumer tells of other assignors."""
        self._expect(self.member.state == _STABLE, "change its assignors")
        self.member = replace(self.member, protocols=names, rejoin_needed=True)

    def restart(self) -> None:
        """RestartProcess: what the old one has sent may still arrive."""
        left = self.channel
        if left is not None and left.is_under_way and self._settings.late_requests:
            left.abandoned = True
        if left is not None and not (left.is_under_way and left.abandoned):
            self.channel = None
        self.heartbeat = None
        self.member = PortMemberState(self.member.protocols)

    def end(self) -> None:
        """Nothing of it is left to end."""

    # ---- the heartbeat thread ----------------------------------------------------------------

    def send_heartbeat(self) -> None:
        """SendHeartbeat: who joins does not send heartbeats."""
        ready = self.heartbeat is None and self.member.state in (_COMPLETING, _STABLE)
        self._expect(ready, "send a heartbeat")
        generation = self.member.generation
        message = make(
            newest("heartbeat", "request").HeartbeatRequest,
            group_id=GROUP_ID,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._instance,
        )
        self.heartbeat = self._sent(message)

    # ---- answers -----------------------------------------------------------------------------

    def process(self, exchange: Exchange | None) -> None:
        """ProcessJoinGroup, ProcessSyncGroup, ProcessHeartbeat, ProcessOffsetCommit."""
        if exchange is None or exchange.response is None:
            raise ActionRefused(f"no answer has arrived at {self.name}")
        sent = exchange.sent
        assert isinstance(sent, MemberGeneration), "a member of ours has sent it"
        answer = exchange.response
        match kind_of(answer):
            case "JoinGroupResponse":
                self._process_join(answer, sent)
            case "SyncGroupResponse":
                self.channel = None
                self.member = self.member.after_sync(answer, sent)
                self._disconnect_if(answer.error_code)
            case "HeartbeatResponse":
                self.heartbeat = None
                self.member = self.member.after_heartbeat(answer.error_code, sent)
            case "OffsetCommitResponse":
                self.heartbeat = None
                error = ErrorCode[commit_error(answer).lower()]
                self.member = self.member.after_commit(error, sent)
            case other:
                raise ActionRefused(f"{other} is answered to nobody")

    def _process_join(self, answer: Entity, sent: MemberGeneration) -> None:
        if answer.error_code is ErrorCode.none and self.member.adopts_join:
            self.member = self.member.joined(answer)
            self.channel = self._sent(self._sync_group(answer))
            return
        self.channel = None
        self.member = self.member.after_join(answer, sent)
        self._disconnect_if(answer.error_code)

    def _disconnect_if(self, error: ErrorCode) -> None:
        if error in _DISCONNECTING:
            self.heartbeat = None

    def _sync_group(self, answer: Entity) -> Entity:
        """SyncRequest: the leader assigns, unless the coordinator has the assignment (KIP-814)."""
        module, assignments = newest("sync_group", "request"), ()
        if answer.leader == answer.member_id and not answer.skip_assignment:
            given = range_assignment(answer.members, self._settings.partitions)
            assignments = tuple(
                module.SyncGroupRequestAssignment(
                    member_id=member_id, assignment=assignment_bytes(TOPIC, numbers)
                )
                for member_id, numbers in given
            )
        return make(
            module.SyncGroupRequest,
            group_id=GROUP_ID,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            group_instance_id=self._instance,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=answer.protocol_name,
            assignments=assignments,
        )

    def lose(self, exchange: Exchange | None) -> None:
        """LoseMessage, LoseHeartbeat: the request or its answer does not arrive."""
        if exchange is None:
            raise ActionRefused(f"nothing of {self.name} is in flight")
        if exchange is self.heartbeat:
            self.heartbeat = None
            return
        self.channel = None
        if not exchange.abandoned:
            self.member = self.member.join_failed()

    def abandon(self) -> None:
        """AbandonRequest: the client gives up on its request, which arrives nevertheless."""
        exchange = self.channel
        if exchange is None or not exchange.is_under_way or exchange.abandoned:
            raise ActionRefused(f"{self.name} waits for no request")
        self.member = self.member.join_failed()
        exchange.abandoned = True

    # ---- what is seen ------------------------------------------------------------------------

    def view(self) -> ProcessView:
        """The process as the specification's variables see it."""
        member = self.member
        return ProcessView(
            member.state,
            member.generation.generation_id,
            member.generation.member_id,
            member.generation.protocol,
            member.rejoin_needed,
            member.needs_join_prepare,
            member.future,
            member.future_assignment,
            member.is_leader,
            member.owned,
            member.protocols,
            member.failed,
            message_view(self.channel),
            heartbeat_view(self.heartbeat),
        )


def range_assignment(members: Iterable[Entity], count: int) -> list[tuple[str, range]]:
    """RangeAssignment over the members that a leader is told of: who is static comes first, by
    instance id (AbstractPartitionAssignor.MemberInfo)."""
    ordered = sorted(members, key=_place)
    each, rest = divmod(count, len(ordered))
    starts = [each * place + min(place, rest) for place in range(len(ordered) + 1)]
    return [
        (member.member_id, range(starts[place], starts[place + 1]))
        for place, member in enumerate(ordered)
    ]


def _place(member: Entity) -> tuple[bool, str]:
    instance = member.group_instance_id
    return (instance is None, member.member_id if instance is None else instance)
