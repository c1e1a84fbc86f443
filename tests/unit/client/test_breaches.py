"""What a client sends that no state of a group allows: bytes, positions, partitions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from conformance.client.breaches import (
    Breach,
    assignment_of,
    in_hex,
    subscription_of,
    unreadable_parts,
)
from conformance.client.given import GivenAnswers
from conformance.client.logs import RecordLogs
from conformance.client.requests import MemberRequest
from conformance.client.server import ClientLink, Server, narrower
from conformance.client.subject import assignment_bytes, subject_of
from conformance.kafka.consumer_protocol import subscription_bytes
from conformance.kafka.entities import (
    NO_TIME,
    Received,
    frame_size,
    in_version,
    make,
    module_of,
    newest,
    request_frame,
)
from tests.unit.client.asked import (
    commit_request,
    heartbeat_request,
    join_request,
    sync_request,
)
from tests.unit.client.readings import Readings

KAFKA_GO = bytes.fromhex("00010000000100086b636f6e666f726dffffffff")
"""The subscription of kafka-go 0.4.51, as it came: version 1 without OwnedPartitions."""
WHOLE = [subscription_bytes(("kconform",), version) for version in range(4)]


def join(metadata: bytes) -> MemberRequest:
    return join_request("", {"range": metadata})


# ---- bytes that members read -----------------------------------------------------------------


@pytest.mark.parametrize("metadata", [*WHOLE, WHOLE[0] + b"rest", b"\0\7" + WHOLE[3][2:]])
def test_what_members_can_read_breaks_nothing(metadata: bytes) -> None:
    assert list(unreadable_parts(join(metadata))) == []


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        (KAFKA_GO, "version 1, OwnedPartitions"),
        (WHOLE[2][:-4], "version 2, GenerationId"),
        (WHOLE[3][:-2], "version 3, RackId"),
        (WHOLE[0][:-4], "version 0, Topics or UserData"),
        (WHOLE[0][:6], "version 0, Topics or UserData"),
        (b"\0", "Version"),
        (b"\xff\xff" + WHOLE[0][2:], "version -1, Version"),
        (b"", "Version"),
    ],
)
def test_a_cut_subscription_is_a_breach_that_names_the_field(metadata: bytes, field: str) -> None:
    (breach,) = unreadable_parts(join(metadata))
    assert "ConsumerProtocolSubscription.json: " in breach.rule
    assert field in breach.rule
    assert breach.evidence == in_hex(metadata)


@pytest.mark.parametrize("metadata", [KAFKA_GO, WHOLE[3][:-1], WHOLE[0][:-4]])
def test_the_topics_of_a_cut_subscription_are_read_all_the_same(metadata: bytes) -> None:
    subscription = subscription_of(metadata)
    assert subscription is not None
    assert subscription.topics == ("kconform",)
    assert subject_of(join(metadata)).topic == "kconform"


def test_a_subscription_without_readable_topics_is_one_of_the_loops_topic() -> None:
    assert subject_of(join(b"\0\0\0\0\0\5ab")).topic == "kconform"


def test_a_cut_assignment_is_a_breach_and_its_partitions_are_read_if_they_are_there() -> None:
    whole = assignment_bytes("kconform", frozenset({0, 1}))
    for data, named, partitions in (
        (whole[:-4], "UserData", 2),
        (whole[:-8], "AssignedPartitions", None),
    ):
        (breach,) = unreadable_parts(sync_request(1, "m", {"m": data}))
        assert f"ConsumerProtocolAssignment.json: {named}" in breach.rule
        readable = assignment_of(data)
        assert (None if readable is None else len(readable)) == partitions


def test_long_bytes_are_shown_in_part() -> None:
    assert in_hex(bytes(100)).endswith(" ... and 4 bytes more")


# ---- what was given ----------------------------------------------------------------------------

PLACE = ("kconform", 0)


@pytest.fixture
def readings() -> Readings:
    return Readings()


@pytest.fixture
def given(readings: Readings) -> GivenAnswers:
    """Partition 0 in generation 2; records 0 to 2 of it."""
    subject = GivenAnswers(readings.clock, RecordLogs(3))
    subject.logs.read(PLACE, 0)
    answer = newest("sync_group", "response").SyncGroupResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        protocol_type="consumer",
        protocol_name="range",
        assignment=assignment_bytes("kconform", frozenset({0})),
    )
    subject.note(sync_request(2, "m", {}), answer)
    return subject


def commit(partition: int, offset: int, generation: int = 2) -> MemberRequest:
    return commit_request(generation, "m", {("kconform", partition): offset})


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        (commit(0, 0), ""),
        (commit(0, 3), ""),
        (commit(0, 4), "behind all records"),
        (commit(0, -1), "behind all records"),
        (commit(1, 0), "was not assigned"),
        (commit(1, 0, generation=1), ""),  # which the specification judges
    ],
)
def test_a_commit_is_of_records_and_partitions_that_were_given(
    given: GivenAnswers, request_: MemberRequest, what: str
) -> None:
    titles = [breach.title for breach in given.committed(request_)]
    assert len(titles) == (1 if what else 0)
    assert all(what in title for title in titles)


def fetch(*partitions: int) -> Any:
    module = module_of("fetch", 12, "request")
    asked = tuple(
        make(module.FetchPartition, partition=one, fetch_offset=0, partition_max_bytes=1)
        for one in partitions
    )
    topic = make(module.FetchTopic, topic="kconform", partitions=asked)
    return make(
        module.FetchRequest, max_wait=0, min_bytes=1, topics=(topic,), forgotten_topics_data=()
    )


def test_a_fetch_is_of_what_the_client_holds_once_it_has_read_its_assignment(
    given: GivenAnswers, readings: Readings
) -> None:
    readings.late(60.0)  # of which the loop was late for nearly all
    assert list(given.fetched(fetch(1), reads=1.5)) == []
    readings.in_time(2.0)
    assert list(given.fetched(fetch(0), reads=1.5)) == []
    (breach,) = given.fetched(fetch(0, 1), reads=1.5)
    assert "fetches a partition that it was not assigned" in breach.title
    given.forget()
    assert list(given.fetched(fetch(0, 1), reads=1.5)) == []


# ---- bytes that a server reads -----------------------------------------------------------------


@dataclass
class Notes:
    """What a server tells its handler."""

    arrivals: list[Any] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    others: list[Received] = field(default_factory=list)

    def arrived(self, request: Any) -> None:
        self.arrivals.append(request)

    async def exchange(self, request: Any, link: ClientLink) -> Any:
        return newest("heartbeat", "response").HeartbeatResponse(
            throttle_time=NO_TIME, error_code=ErrorCode.none
        )

    def dropped(self, requests: Any, link: ClientLink) -> None:
        pass

    def passed(self, received: Received) -> None:
        self.others.append(received)

    def breach(self, breach: Breach) -> None:
        self.breaches.append(breach)

    def no_request(self, text: str) -> None:
        self.cut.append(text)

    def limited(self, text: str) -> None:
        self.limits.append(text)


HEARTBEAT = heartbeat_request(1, "m").body


def frame(version: int = 4) -> bytes:
    return request_frame(in_version(HEARTBEAT, version), 1, "c")


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


async def _sent(data: bytes) -> tuple[Notes, bool]:
    """What a server makes of bytes, and whether the next client is served."""
    notes = Notes()
    async with Server(notes) as server:
        for content in (data, frame()):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(content)
            head = await reader.read(4)
            answered = bool(head) and bool(await reader.readexactly(frame_size(head)))
            writer.close()
    return notes, answered


def sent(data: bytes) -> Notes:
    notes, answered = asyncio.run(_sent(data))
    assert answered, "the loop goes on"
    return notes


@pytest.mark.parametrize("version", range(5))
def test_a_cut_request_is_a_breach_and_the_loop_goes_on(version: int) -> None:
    notes = sent(sized(frame(version)[4:-1]))
    (breach,) = notes.breaches
    assert breach.title == "sends bytes that are no request"
    assert f"heartbeat {version}: " in breach.rule
    assert "at byte" in breach.rule
    assert breach.evidence == in_hex(frame(version)[4:-1])
    assert len(notes.arrivals) == 1, "the next client's"


def test_bytes_behind_the_last_field_are_a_breach_and_the_request_is_answered() -> None:
    notes = sent(sized(frame()[4:] + b"\0\0"))
    (breach,) = notes.breaches
    assert "behind its last field" in breach.title
    assert [request.body for request in notes.arrivals] == [HEARTBEAT, HEARTBEAT]


@pytest.mark.parametrize(
    ("key", "version", "what"), [(12, 99, "Heartbeat 99"), (999, 0, "the API key 999")]
)
def test_what_kafka_does_not_have_is_a_breach(key: int, version: int, what: str) -> None:
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big")
    notes = sent(sized(head + frame()[8:]))
    assert f"{what} is none of Kafka's" in notes.breaches[0].rule
    assert notes.limits == []


@pytest.mark.parametrize(
    ("key", "version", "what"),
    [(68, 0, "does not serve ConsumerGroupHeartbeat"), (8, 10, "serves OffsetCommit 2 to 9 only")],
)
def test_what_kafka_has_and_the_loop_lacks_is_the_loops_limit(
    key: int, version: int, what: str
) -> None:
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big")
    notes = sent(sized(head + frame()[8:]))
    assert what in notes.limits[0]
    assert notes.breaches == []
    assert "OffsetCommit 2 to 9" in narrower()
