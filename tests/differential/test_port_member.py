"""The consumer that is played wherever a coordinator is foreign, against the specification's."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from conformance.kafka.consumer_protocol import assignment_bytes
from conformance.kafka.entities import NO_TIME, Entity, make, newest
from conformance.modelcheck.check import graph_and_spec
from conformance.stages.context import constants_of, one_model
from conformance.systems.shared.group.exchange import Exchange
from conformance.systems.shared.group.observation import OF_PROCESSES, GroupObserver
from conformance.systems.shared.group.port_member import (
    MemberGeneration,
    PortMember,
    PortMemberState,
)
from conformance.systems.shared.group.settings import NO_INSTANCE, TOPIC, GroupSettings, settings_of
from conformance.systems.shared.group.steps import OF_A_PROCESS
from conformance.tla import Fn, Value

pytestmark = pytest.mark.tlc

MODELS = [
    "group/commits-2m",
    "group/fail-over-2m",
    "group/late-requests-2m",
    "group/losses-2m",
    "group/protocols-2m",
    "group/leave-2m",
    "group/static-restart-2m",
]


class States:
    """A state of the specification, as members that are in it."""

    def __init__(self, settings: GroupSettings, variables: tuple[str, ...]) -> None:
        self._settings = settings
        self._variables = variables
        self._real = settings.real_ids()
        self._observer = GroupObserver(settings)

    def entries(self, state: tuple[Value, ...], name: str) -> tuple[Value, ...]:
        """A member's values of the specification's variables."""
        return tuple(
            cast("Fn", state[self._variables.index(variable)])[name] for variable in OF_PROCESSES
        )

    def observed(self, member: PortMember) -> tuple[Value, ...]:
        """What a member shows of the same variables."""
        views = tuple(member.view() for _ in self._settings.members)
        shown = self._observer.of_processes(views)
        return tuple(cast("Fn", shown[variable])[member.name] for variable in OF_PROCESSES)

    def member(self, name: str, entries: tuple[Value, ...]) -> PortMember:
        """A member that has these values."""
        values = dict(zip(OF_PROCESSES, entries, strict=True))
        known, future = cast("Fn", values["memberGeneration"]), cast("Fn", values["joinFuture"])
        process = PortMember(name, self._settings)
        process.member = PortMemberState(
            protocols=cast("frozenset[str]", values["protocols"]),
            state=str(values["memberState"]),
            generation=MemberGeneration(
                cast("int", known["generation"]),
                self._id(known["memberId"]),
                None if known["protocol"] == NO_INSTANCE else str(known["protocol"]),
            ),
            rejoin_needed=values["rejoinNeeded"] is True,
            needs_join_prepare=values["needsJoinPrepare"] is True,
            future=str(future["state"]),
            future_assignment=cast("frozenset[int]", future["assignment"]),
            is_leader=values["isLeader"] is True,
            owned=cast("frozenset[int]", values["owned"]),
            failed=values["failed"] is True,
        )
        process.channel = self._channel(cast("Fn", values["channel"]))
        process.heartbeat = self._heartbeat(cast("Fn", values["heartbeat"]))
        return process

    def _id(self, id: Value) -> str:
        return self._real.get(str(id), str(id))

    def _channel(self, value: Fn) -> Exchange | None:
        kind = str(value["type"])
        if kind == "None":
            return None
        sent = MemberGeneration(
            cast("int", value["sentGeneration"]), self._id(value["sentMemberId"])
        )
        message = self._request(kind, value, sent)
        exchange = Exchange(message, sent, abandoned=value["abandoned"] is True)
        if kind.endswith("Parked"):
            exchange.parked_under = self._id(value["memberId"])
        elif kind.endswith("Response"):
            exchange.answer(self._answer(kind, value))
        return exchange

    def _request(self, kind: str, value: Fn, sent: MemberGeneration) -> Entity:
        fields: dict[str, Any] = {
            "group_id": "g",
            "member_id": sent.member_id,
            "generation_id": sent.generation_id,
            "session_timeout": NO_TIME,
            "protocol_type": "consumer",
        }
        if kind.startswith("JoinGroup"):
            module = newest("join_group", "request")
            fields["protocols"] = tuple(
                module.JoinGroupRequestProtocol(name=str(name), metadata=b"")
                for name in cast("frozenset[str]", value["protocols"])
            )
            return make(module.JoinGroupRequest, **fields)
        if kind.startswith("SyncGroup"):
            module = newest("sync_group", "request")
            given = cast("Fn", value["assignments"])
            fields["protocol_name"] = str(value["protocol"])
            fields["assignments"] = tuple(
                module.SyncGroupRequestAssignment(
                    member_id=self._id(id),
                    assignment=assignment_bytes(TOPIC, cast("frozenset[int]", partitions)),
                )
                for id, partitions in given.items()
                if partitions
            )
            if kind == "SyncGroupResponse":  # the answer does not repeat who asked
                fields["member_id"] = self._id(value["memberId"])
                fields["generation_id"] = value["sentGeneration"]
            return make(module.SyncGroupRequest, **fields)
        module = newest("leave_group", "request")
        leaving = make(module.MemberIdentity, member_id=sent.member_id)
        return make(module.LeaveGroupRequest, group_id="g", members=(leaving,))

    def _answer(self, kind: str, value: Fn) -> Entity:
        error = ErrorCode[str(value["error"]).lower()]
        protocol = None if value["protocol"] == NO_INSTANCE else str(value["protocol"])
        fields: dict[str, Any] = {
            "throttle_time": NO_TIME,
            "error_code": error,
            "protocol_name": protocol,
        }
        if kind == "SyncGroupResponse":
            given = cast("frozenset[int]", value["assignment"])
            kind_of_answer = newest("sync_group", "response").SyncGroupResponse
            return make(kind_of_answer, **fields, assignment=assignment_bytes(TOPIC, given))
        module = newest("join_group", "response")
        members = tuple(
            module.JoinGroupResponseMember(
                member_id=self._id(id), group_instance_id=self._instance(id), metadata=b""
            )
            for id in cast("frozenset[str]", value["members"])
        )
        return make(
            module.JoinGroupResponse,
            **fields,
            generation_id=value["generation"],
            leader=self._id(value["leader"]),
            skip_assignment=value["skipAssignment"] is True,
            member_id=self._id(value["memberId"]),
            members=members,
        )

    def _instance(self, id: str) -> str | None:
        owners = {each: name for name, ids in self._settings.member_ids.items() for each in ids}
        return self._settings.instances[owners[id]]

    def _heartbeat(self, value: Fn) -> Exchange | None:
        kind = str(value["type"])
        if kind == "None":
            return None
        sent = MemberGeneration(cast("int", value["generation"]), self._id(value["memberId"]))
        error = ErrorCode[str(value["error"]).lower()]
        api = "heartbeat" if kind.startswith("Heartbeat") else "offset_commit"
        asked, answered = newest(api, "request"), newest(api, "response")
        fields = {"group_id": "g", "member_id": sent.member_id, "topics": ()}
        if api == "heartbeat":
            generation = {"generation_id": sent.generation_id}
            request = make(asked.HeartbeatRequest, **fields, **generation)
            answer = make(answered.HeartbeatResponse, throttle_time=NO_TIME, error_code=error)
        else:
            generation = {"generation_id_or_member_epoch": sent.generation_id}
            request = make(asked.OffsetCommitRequest, **fields, **generation)
            partition = answered.OffsetCommitResponsePartition(partition_index=0, error_code=error)
            topic = answered.OffsetCommitResponseTopic(name=TOPIC, partitions=(partition,))
            answer = make(answered.OffsetCommitResponse, throttle_time=NO_TIME, topics=(topic,))
        exchange = Exchange(request, sent, abandoned=False)
        if kind.endswith("Response"):
            exchange.answer(answer)
        return exchange


@pytest.mark.parametrize("name", MODELS)
def test_every_step_of_a_member_is_the_specifications(name: str) -> None:
    graph, prepared = graph_and_spec(one_model(name))
    states = States(settings_of(constants_of(prepared)), tuple(graph.variables))
    values = list(graph.states)
    seen = set()
    for source, target, code in zip(graph.source, graph.target, graph.action, strict=True):
        action = graph.actions[code]
        if action.name not in OF_A_PROCESS:
            continue
        who = str(action.args[0])
        before, after = (states.entries(values[number], who) for number in (source, target))
        if (action, before, after) in seen:
            continue
        seen.add((action, before, after))
        member = states.member(who, before)
        assert states.observed(member) == before
        OF_A_PROCESS[action.name](member, action.args)
        assert states.observed(member) == after, action
    assert {"SendJoinGroup", "ProcessJoinGroup", "ProcessSyncGroup", "CompleteJoin"} <= {
        action.name for action, _, _ in seen
    }
