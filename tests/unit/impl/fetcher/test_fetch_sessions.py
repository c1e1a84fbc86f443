"""The follower's half of incremental fetch sessions, and what it leaves out of a fetch."""

from __future__ import annotations

import pytest

from impl.errors import Errors
from impl.fetcher.fetch_session_handler import FetchSessionHandler
from impl.fetcher.state import PartitionFetchState, ReplicaState
from impl.network import (
    FetchResponse,
    TopicIdPartition,
)
from impl.types import (
    FetchPartitionData,
    ProtocolConfig,
)
from tests.unit.impl.fetcher.replica_world import (
    T1P0,
    T1P1,
    T2P0,
    T2P1,
    FakeReplica,
    World,
)


def ready(offset: int, topic_id: str) -> PartitionFetchState:
    return PartitionFetchState(topic_id, offset, None, 1, None, ReplicaState.FETCHING, None)


def test_r17_incremental_session_sends_only_what_changed() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    states = {T1P0: ready(150, "id1"), T1P1: ready(155, "id1"), T2P1: ready(160, "id2")}
    world.replicas.replicas = {tp: FakeReplica() for tp in states}
    first = world.end_point.build_fetch(states)
    assert first.partitions_with_error == ()
    assert first.replica_fetch is not None
    request = first.replica_fetch.request
    assert list(request.to_send) == [T1P0, T1P1, T2P1]
    assert (request.removed, request.replaced) == ((), ())
    assert request.to_send[T2P1].fetch_offset == 160

    answers = {tp: FetchPartitionData(Errors.NONE, 0, 0) for tp in states}
    world.end_point.handle_fetch_response(FetchResponse(answers, session_id=123))
    second = world.end_point.build_fetch({T1P1: ready(155, "id1"), T2P1: ready(160, "id3")})
    assert second.replica_fetch is not None
    request = second.replica_fetch.request
    assert (request.metadata.session_id, request.metadata.epoch) == (123, 1)
    assert list(request.to_send) == [T2P1]
    assert request.replaced == (TopicIdPartition("id2", T2P1),)
    assert request.removed == (TopicIdPartition("id1", T1P0),)
    # The answer may also speak of what was not repeated.
    assert set(second.replica_fetch.partition_data) == {T1P1, T2P1}


def test_session_ends_with_a_request_that_only_forgets() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.replicas.replicas = {T1P0: FakeReplica()}
    world.end_point.build_fetch({T1P0: ready(0, "id1")})
    answers = {T1P0: FetchPartitionData(Errors.NONE, 0, 0)}
    world.end_point.handle_fetch_response(FetchResponse(answers, session_id=7))
    forgets = world.end_point.build_fetch({}).replica_fetch
    assert forgets is not None
    assert forgets.request.removed == (TopicIdPartition("id1", T1P0),)
    world.end_point.handle_fetch_response(FetchResponse({}, session_id=7))
    assert world.end_point.build_fetch({}).replica_fetch is None


@pytest.mark.parametrize(
    ("response", "accepted", "next_session"),
    [
        (FetchResponse({}, Errors.FETCH_SESSION_ID_NOT_FOUND), False, (0, 0)),
        (FetchResponse({}, Errors.INVALID_FETCH_SESSION_EPOCH), False, (7, 0)),
        (FetchResponse({T2P0: FetchPartitionData(Errors.NONE, 0, 0)}, session_id=7), False, (7, 0)),
        (FetchResponse({}, session_id=7), True, (7, 2)),
        (FetchResponse({}, session_id=0), True, (0, 0)),
    ],
    ids=["session evicted", "wrong session epoch", "foreign partition", "unchanged", "closed"],
)
def test_answers_within_a_session(
    response: FetchResponse, accepted: bool, next_session: tuple[int, int]
) -> None:
    session = FetchSessionHandler()
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.replicas.replicas = {T1P0: FakeReplica()}
    built = world.end_point.build_fetch({T1P0: ready(0, "id1")}).replica_fetch
    assert built is not None
    wanted = dict(built.partition_data)
    session.build(wanted)
    answers = {T1P0: FetchPartitionData(Errors.NONE, 0, 0)}
    assert session.handle_response(FetchResponse(answers, session_id=7))
    session.build(wanted)
    assert session.handle_response(response) is accepted
    assert tuple(session.build(wanted).metadata) == next_session


def test_session_starts_anew_after_a_failed_send() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.sender.session_id = 9
    world.follow(T1P0, offset=100)
    world.work(rounds=2)
    world.sender.failure = ConnectionError()
    world.work()
    world.sender.failure = None
    world.work()
    sessions = [tuple(request.metadata) for request in world.sender.fetch_requests]
    assert sessions == [(0, 0), (9, 1), (9, 2), (9, 0)]
    assert list(world.sender.fetch_requests[-1].to_send) == [T1P0]


def test_topic_id_error_of_the_session_counts_as_no_answer() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    response = FetchResponse({}, Errors.FETCH_SESSION_TOPIC_ID_ERROR)
    with pytest.raises(Exception, match="FETCH_SESSION_TOPIC_ID_ERROR"):
        world.end_point.handle_fetch_response(response)


def test_without_sessions_every_fetch_is_full() -> None:
    """FetchMetadata.LEGACY: the leader remembers nothing that a restart could lose."""
    session = FetchSessionHandler(incremental=False)
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.replicas.replicas = {T1P0: FakeReplica()}
    built = world.end_point.build_fetch({T1P0: ready(0, "id1")}).replica_fetch
    assert built is not None
    wanted = dict(built.partition_data)
    answers = {T1P0: FetchPartitionData(Errors.NONE, 0, 0)}
    for outcome in ("answered", "failed", "answered", "rejected"):
        data = session.build(wanted)
        assert (tuple(data.metadata), data.to_send) == ((0, -1), wanted)
        if outcome == "failed":
            session.handle_error()
        elif outcome == "rejected":
            error = Errors.FETCH_SESSION_ID_NOT_FOUND
            assert not session.handle_response(FetchResponse({}, error))
        else:
            assert session.handle_response(FetchResponse(answers))
    assert tuple(session.build(wanted).metadata) == (0, -1)
