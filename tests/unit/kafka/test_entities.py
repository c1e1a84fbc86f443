"""kio's messages between versions, and beside the compiler of the schemas in Kafka's jars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from conformance.kafka.batches import batch_bytes, header_at, sealed
from conformance.kafka.consumer_protocol import (
    assigned_partitions,
    assignment_bytes,
    read_subscription,
    subscription_bytes,
)
from conformance.kafka.entities import (
    NEWEST,
    NO_TIME,
    Entity,
    MalformedFrame,
    TrailingBytes,
    has_request,
    in_milliseconds,
    in_version,
    make,
    milliseconds,
    newest,
    read_request,
    read_response,
    request_frame,
    response_frame,
)
from conformance.kafka.schemas import Schemas
from tests.breadth import every
from tests.kafka_needed import VERSIONS, jars_or_skip


def requests() -> Iterator[Entity]:
    """One of each group's request, with something in every field that old versions have."""
    module = newest("join_group", "request")
    wish = module.JoinGroupRequestProtocol(name="range", metadata=b"wish")
    yield make(
        module.JoinGroupRequest,
        group_id="g",
        session_timeout=milliseconds(6_000),
        rebalance_timeout=milliseconds(6_000),
        member_id="m",
        protocol_type="consumer",
        protocols=(wish,),
    )
    module = newest("sync_group", "request")
    given = module.SyncGroupRequestAssignment(member_id="m", assignment=b"given")
    yield make(
        module.SyncGroupRequest,
        group_id="g",
        generation_id=2,
        member_id="m",
        assignments=(given,),
    )
    kind = newest("heartbeat", "request").HeartbeatRequest
    yield make(kind, group_id="g", generation_id=2, member_id="m")
    module = newest("leave_group", "request")
    leaving = make(module.MemberIdentity, member_id="m")
    yield make(module.LeaveGroupRequest, group_id="g", members=(leaving,))
    kind = newest("find_coordinator", "request").FindCoordinatorRequest
    yield make(kind, key_type=0, coordinator_keys=("g",))
    module = newest("offset_fetch", "request")
    topic = make(module.OffsetFetchRequestTopics, name="t", partition_indexes=(0, 1))
    group = make(module.OffsetFetchRequestGroup, group_id="g", topics=(topic,))
    yield make(module.OffsetFetchRequest, groups=(group,), require_stable=False)


def responses() -> Iterator[Entity]:
    """Answers with several shapes of versions."""
    module = newest("join_group", "response")
    member = module.JoinGroupResponseMember(member_id="m", group_instance_id=None, metadata=b"w")
    yield module.JoinGroupResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        generation_id=2,
        protocol_type=None,
        protocol_name="range",
        leader="m",
        skip_assignment=False,
        member_id="m",
        members=(member,),
    )
    module = newest("find_coordinator", "response")
    found = make(
        module.Coordinator,
        key="",
        node_id=1,
        host="h",
        port=9092,
        error_code=ErrorCode.none,
        error_message=None,
    )
    yield make(module.FindCoordinatorResponse, throttle_time=NO_TIME, coordinators=(found,))


def api(body: Entity) -> str:
    return str(type(body).__module__.split(".")[2])


def versions(body: Entity) -> list[int]:
    return [number for number in range(NEWEST[api(body)] + 1) if has_request(api(body), number)]


@pytest.mark.parametrize("body", [*requests(), *responses()], ids=lambda one: type(one).__name__)
def test_a_message_comes_back_from_every_version(body: Entity) -> None:
    for version in versions(body):
        other = in_version(body, version)
        assert other.__version__ == version
        assert in_version(other, NEWEST[api(body)]) == body, version


def test_before_joins_had_a_rebalance_timeout_the_sessions_was_it() -> None:
    (join, *_) = requests()
    old = in_version(join, 0)
    assert not hasattr(old, "rebalance_timeout")
    assert in_milliseconds(in_version(old, 9).rebalance_timeout) == 6_000


def test_what_an_old_version_has_only_one_of_cannot_be_two() -> None:
    module = newest("leave_group", "request")
    leaving = tuple(make(module.MemberIdentity, member_id=name) for name in ("a", "b"))
    body = make(module.LeaveGroupRequest, group_id="g", members=leaving)
    assert len(in_version(body, 3).members) == 2
    with pytest.raises(ValueError, match="LeaveGroupRequest 2 has no 2 members"):
        in_version(body, 2)


@pytest.mark.parametrize("body", [*requests()], ids=lambda one: type(one).__name__)
def test_a_request_is_read_as_it_was_written_and_a_cut_one_names_its_field(body: Entity) -> None:
    for version in versions(body):
        sent = in_version(body, version)
        frame = request_frame(sent, 7, "c")[4:]
        received = read_request(frame)
        assert (received.body, received.correlation_id, received.client_id) == (sent, 7, "c")
        with pytest.raises(MalformedFrame, match="at byte"):
            read_request(frame[:-1])
        with pytest.raises(TrailingBytes) as over:
            read_request(frame + b"\0")
        assert over.value.received == received


@pytest.mark.parametrize("release", every(2, VERSIONS, first=1))
def test_the_compiler_of_the_jars_schemas_reads_what_kio_writes(release: str) -> None:
    schemas = Schemas.of(jars_or_skip(release).classpath)
    for body in requests():
        for version in versions(body):
            sent = in_version(body, version)
            kind: Any = type(sent)
            if version not in schemas.requests[kind.__api_key__].versions:
                continue
            frame = request_frame(sent, 7, "c")[4:]
            read = schemas.decode_request(frame)
            assert (read.version, read.correlation_id, read.client_id) == (version, 7, "c")
            assert read.body == as_json(sent)
            assert schemas.encode_request(read.api, version, 7, "c", read.body) == frame
    for body in responses():
        for version in versions(body):
            sent = in_version(body, version)
            kind = type(sent)
            if version in schemas.responses[kind.__api_key__].versions:
                frame = response_frame(sent, 7)[4:]
                assert schemas.decode_response(kind.__api_key__, version, frame)[1] == as_json(sent)
                assert read_response(frame, kind) == (7, sent)


def as_json(entity: Any) -> Any:
    """An entity in the form of the schemas' compiler."""
    if isinstance(entity, tuple):
        return [as_json(one) for one in entity]
    if isinstance(entity, timedelta):
        return in_milliseconds(entity)
    if is_dataclass(entity):
        values = {field.name: getattr(entity, field.name) for field in fields(entity)}
        return {json_name(name, value): as_json(value) for name, value in values.items()}
    return entity


def json_name(name: str, value: Any) -> str:
    """kio drops the unit that a duration's field has in Kafka's schemas."""
    (first, *rest) = name.split("_")
    unit = "Ms" if isinstance(value, timedelta) else ""
    return first + "".join(part.capitalize() for part in rest) + unit


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_of_every_version_and_of_a_later_one_is_read(version: int) -> None:
    data = subscription_bytes(("b", "a"), version)
    assert read_subscription(data).topics == ("a", "b")
    assert read_subscription(data + b"what a later version has").topics == ("a", "b")
    with pytest.raises(MalformedFrame):
        read_subscription(data[:-1])


def test_an_assignment_is_read_and_who_was_left_out_has_no_bytes() -> None:
    assert assigned_partitions(assignment_bytes("t", {2, 0})) == {0, 2}
    assert assigned_partitions(b"") == frozenset()


def test_a_batch_has_the_header_that_is_written_and_a_checksum() -> None:
    data = batch_bytes([b"x", b"y"], first_ms=1_700_000_000_000, base_offset=5, leader_epoch=3)
    header = header_at(data, 0)
    assert header is not None
    assert (header.base_offset, header.leader_epoch, header.records) == (5, 3, 2)
    assert (header.magic, header.last_offset_delta, header.size) == (2, 1, len(data))
    assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_001)
    assert sealed(data) == data
    assert sealed(data[:-1] + b"\1") != data[:-1] + b"\1"
    assert header_at(data, len(data) - 60) is None
