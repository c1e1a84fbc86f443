"""Messages of the group protocol survive the wire, in every version that can say what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impl.errors import Errors
from impl.group.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupMemberResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from impl.types import TopicPartition
from impl.wire import group_requests, group_responses
from impl.wire.entities import (
    MalformedFrame,
    class_of,
    read_request,
    read_response,
    request_frame,
    response_frame,
)

names = st.text(max_size=20)
instances = st.none() | names
numbers = st.integers(-1, 2**31 - 1)
data = st.binary(max_size=40)
errors = st.sampled_from(list(Errors))

joins = st.builds(
    JoinGroupRequest,
    group_id=names,
    session_timeout_ms=st.integers(0, 2**31 - 1),
    rebalance_timeout_ms=st.integers(0, 2**31 - 1),
    member_id=names,
    protocol_type=names,
    protocols=st.lists(st.builds(JoinGroupRequestProtocol, names, data), max_size=3).map(tuple),
    group_instance_id=instances,
    reason=names,
    client_id=names,
    client_host=st.just("/127.0.0.1"),
)
syncs = st.builds(
    SyncGroupRequest,
    names,
    numbers,
    names,
    instances,
    instances,
    instances,
    st.lists(st.builds(SyncGroupRequestAssignment, names, data), max_size=3).map(tuple),
)
beats = st.builds(HeartbeatRequest, names, numbers, names, instances)
leaves = st.builds(
    LeaveGroupRequest,
    names,
    st.lists(st.builds(MemberIdentity, names, instances, names), min_size=1, max_size=3).map(tuple),
)
commits = st.builds(
    OffsetCommitRequest,
    names,
    st.lists(
        st.builds(
            OffsetCommitRequestPartition,
            st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 9)),
            st.integers(0, 2**62),
            numbers,
            names,
        ),
        max_size=4,
        unique_by=lambda one: one.topic_partition,
    ).map(lambda many: tuple(sorted(many, key=lambda one: one.topic_partition.topic))),
    numbers,
    names,
    instances,
)


@given(message=joins | syncs | beats | leaves | commits)
def test_a_request_of_the_newest_version_is_read_as_it_was_sent(message: object) -> None:
    newest = {"join_group": 9, "sync_group": 5, "heartbeat": 4, "leave_group": 5}
    version = newest.get(group_requests.api_of(message), 9)
    client = message.client_id if isinstance(message, JoinGroupRequest) else "me"
    frame = request_frame(group_requests.to_entity(message, version), 7, client)
    received = read_request(frame[4:])
    assert (received.version, received.correlation_id, received.client_id) == (version, 7, client)
    assert group_requests.from_entity(received, "/127.0.0.1") == message


@given(message=joins, version=st.integers(0, 8))
def test_an_older_join_says_what_its_version_can_say(
    message: JoinGroupRequest, version: int
) -> None:
    frame = request_frame(group_requests.to_entity(message, version), 1, message.client_id)
    expected = replace(
        message,
        version=version,
        reason=message.reason if version >= 8 else "",
        group_instance_id=message.group_instance_id if version >= 5 else None,
        rebalance_timeout_ms=(
            message.rebalance_timeout_ms if version >= 1 else message.session_timeout_ms
        ),
    )
    assert group_requests.from_entity(read_request(frame[4:]), "/127.0.0.1") == expected


answers = {
    "join_group": (
        9,
        st.builds(
            JoinGroupResponse,
            errors,
            names,
            numbers,
            instances,
            st.none() | st.text(min_size=1, max_size=9),
            names,
            st.booleans(),
            st.lists(st.builds(JoinGroupResponseMember, names, instances, data), max_size=3).map(
                tuple
            ),
        ),
    ),
    "sync_group": (5, st.builds(SyncGroupResponse, errors, instances, instances, data)),
    "leave_group": (
        5,
        st.builds(
            LeaveGroupResponse,
            errors,
            st.lists(st.builds(LeaveGroupMemberResponse, names, instances, errors), max_size=3).map(
                tuple
            ),
        ),
    ),
}


@pytest.mark.parametrize("api", answers)
@given(choose=st.data())
def test_an_answer_is_read_as_it_was_sent(api: str, choose: st.DataObject) -> None:
    version, messages = answers[api]
    message = choose.draw(messages)
    frame = response_frame(group_responses.to_entity(api, message, version), 5)
    correlation_id, body = read_response(frame[4:], class_of(api, version, "response"))
    assert correlation_id == 5
    assert group_responses.from_entity(api, body, version) == message


@given(frame=st.binary(max_size=60))
def test_bytes_that_are_no_request_are_told_as_such(frame: bytes) -> None:
    try:
        read_request(frame)
    except MalformedFrame:
        return


@given(message=beats, cut=st.integers(1, 8))
def test_a_request_that_is_cut_or_longer_is_malformed(message: HeartbeatRequest, cut: int) -> None:
    frame = request_frame(group_requests.to_entity(message, 4), 7, "me")[4:]
    for wrong in (frame[:-cut], frame + bytes(cut)):
        with pytest.raises(MalformedFrame):
            read_request(wrong)
