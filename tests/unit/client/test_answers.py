"""Which answers the specification allows, and what client and coordinator say as events of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from conformance.client.answers import AllowedAnswers
from conformance.client.duties import AIMS, DutyKind
from conformance.client.example import LIMITS, silent
from conformance.client.messages import (
    SENDS,
    Messages,
    assigned_event,
    closed_event,
    given_up_event,
    has_read_event,
    lost_event,
    step_event,
)
from conformance.client.process import Callback, CallbackPipe, arguments
from conformance.client.requests import MemberRequest
from conformance.client.subject import JoiningClient, MemberNames, subject_of
from conformance.client.wishes import aims_of
from conformance.errors import UserError
from conformance.judge.events import Event
from conformance.judge.follow import FollowedRecording
from conformance.kafka.consumer_protocol import assignment_bytes, subscription_bytes
from conformance.modelcheck.prepare import bound
from conformance.stages.client import variant_model
from conformance.stages.context import with_constants
from conformance.tla import Spec, find_tools
from tests.unit.client.asked import (
    commit_request,
    heartbeat_request,
    join_request,
    sync_request,
)

SUBJECT = JoiningClient("orders", frozenset({"range"}), None, joins_twice=True)
STATIC = replace(SUBJECT, instance="instance")
FREE = {"FailureLimit": "-1", "MaxSize": "10", "RequestsBehind": "9"}
NAMES = MemberNames("salt")


def spec_of(variant: str, subject: JoiningClient = SUBJECT) -> Spec:
    model = with_constants(variant_model(variant), {**subject.constants(), **FREE})
    return bound(model, find_tools()).spec


@pytest.fixture(scope="module")
def spec() -> Spec:
    """The specification of a dynamic client that tells of its callbacks."""
    return spec_of("java")


@pytest.fixture(scope="module")
def librdkafka() -> Spec:
    return spec_of("librdkafka")


@pytest.fixture(scope="module")
def franz_go() -> Spec:
    return spec_of("franz-go")


def join(member: str, *protocols: str, version: int = 9) -> MemberRequest:
    wish = subscription_bytes(("orders",), 0)
    return join_request(member, dict.fromkeys(protocols or ("range",), wish), version=version)


def sync(generation: int, *members: str, numbers: Sequence[int] = (0, 1)) -> MemberRequest:
    given = assignment_bytes("orders", numbers)
    return sync_request(
        generation, NAMES.real("m1-01"), {NAMES.real(one): given for one in members}
    )


def heartbeat(generation: int, member: str = "m1-01") -> MemberRequest:
    return heartbeat_request(generation, NAMES.real(member))


def commit(generation: int, member: str) -> MemberRequest:
    return commit_request(generation, NAMES.real(member), {("orders", 0): 0})


class Loop:
    """A client and a coordinator that talk as the test says."""

    def __init__(self, spec: Spec, subject: JoiningClient = SUBJECT) -> None:
        self.following = FollowedRecording(spec, silent(is_told=True), LIMITS)
        self.answers = AllowedAnswers(spec, subject.others)
        self.messages = Messages(subject, NAMES, told=True)
        self.behind = 0

    def hears(self, event: Event) -> bool:
        return self.following.see(event)

    def sends(self, request: MemberRequest) -> bool:
        """Whether anything explains that the client sends it."""
        explained = all(
            self.hears(event) for event in self.messages.events(request, "it", self.behind)
        )
        if explained and request.api in ("heartbeat", "offset_commit"):
            return self.hears(self.messages.taken_up(request, 1, "it"))
        return explained

    def answers_with(self, wish: str, lane: str = "channel") -> str:
        """The coordinator answers so if it can; what it answers."""
        reader = self.answers.reader
        state = next(one for one in self.following.states if reader.waits(one, lane))
        way = self.answers.way(state, lane, [wish], random.Random(1))
        for taken in way.steps:
            assert self.hears(step_event(state, taken, reader))
            state = taken.state
        return way.outcome

    def joins(self) -> None:
        """The client becomes the only member, in generation 1."""
        assert self.sends(join(""))
        assert self.answers_with("MEMBER_ID_REQUIRED") == "MEMBER_ID_REQUIRED"
        assert self.sends(join(NAMES.real("m1-01")))
        assert self.answers_with("NONE, leader") == "NONE, leader"
        assert self.sends(sync(1, "m1-01"))
        assert self.answers_with("NONE") == "NONE"
        assert self.hears(assigned_event(frozenset({0, 1}), "assigned"))


@pytest.fixture
def loop(spec: Spec) -> Loop:
    return Loop(spec)


def test_a_client_that_follows_the_protocol_is_explained(loop: Loop) -> None:
    loop.joins()
    assert loop.sends(heartbeat(1))
    assert loop.answers_with("REBALANCE_IN_PROGRESS", "heartbeat") == "REBALANCE_IN_PROGRESS"
    assert loop.hears(given_up_event(frozenset({0, 1}), "revoked"))
    assert loop.sends(join(NAMES.real("m1-01")))


@pytest.mark.parametrize(
    ("error", "next_id"),
    [("UNKNOWN_MEMBER_ID", ""), ("REBALANCE_IN_PROGRESS", NAMES.real("m1-01"))],
)
def test_what_a_heartbeat_is_told_decides_how_the_client_joins_again(
    loop: Loop, error: str, next_id: str
) -> None:
    loop.joins()
    assert loop.sends(heartbeat(1))
    assert loop.answers_with(error, "heartbeat") == error
    assert loop.hears(given_up_event(frozenset({0, 1}), "lost"))
    other = "" if next_id else NAMES.real("m1-01")
    assert loop.following.explains(loop.messages.events(join(next_id), "it", 0)[0])
    assert not loop.following.explains(loop.messages.events(join(other), "it", 0)[0])


def test_who_joins_without_giving_up_its_partitions_is_not_explained(loop: Loop) -> None:
    loop.joins()
    assert loop.sends(heartbeat(1))
    loop.answers_with("REBALANCE_IN_PROGRESS", "heartbeat")
    assert not loop.sends(join(NAMES.real("m1-01")))


def test_partitions_are_given_up_once(loop: Loop) -> None:
    loop.joins()
    assert loop.sends(heartbeat(1))
    loop.answers_with("REBALANCE_IN_PROGRESS", "heartbeat")
    assert loop.hears(given_up_event(frozenset({0, 1}), "revoked"))
    assert not loop.hears(given_up_event(frozenset({0, 1}), "revoked"))


def test_an_error_may_be_read_late_but_not_for_ever(loop: Loop) -> None:
    loop.joins()
    assert loop.sends(heartbeat(1))
    loop.answers_with("UNKNOWN_MEMBER_ID", "heartbeat")
    assert loop.sends(heartbeat(1))
    loop.answers_with("UNKNOWN_MEMBER_ID", "heartbeat")
    assert loop.hears(has_read_event("later", channel=False))
    assert not loop.sends(heartbeat(1))


def test_a_heartbeat_of_another_generation_is_not_explained(loop: Loop) -> None:
    loop.joins()
    assert not loop.sends(heartbeat(2))


@pytest.mark.parametrize(
    ("member", "generation", "allowed"), [("m1-01", 1, True), ("m1-01", 0, False), ("", 1, False)]
)
def test_a_commit_has_the_generation_and_the_member_id_of_now(
    loop: Loop, member: str, generation: int, *, allowed: bool
) -> None:
    loop.joins()
    assert loop.sends(commit(generation, member)) is allowed


@pytest.mark.parametrize(("variant", "allowed"), [("java", False), ("aiokafka", True)])
def test_a_commit_as_nobody_is_of_a_variant_only(variant: str, *, allowed: bool) -> None:
    loop = Loop(spec_of(variant))
    loop.joins()
    assert loop.sends(heartbeat(1))
    loop.answers_with("UNKNOWN_MEMBER_ID", "heartbeat")
    assert loop.sends(commit(-1, "")) is allowed


@pytest.mark.parametrize(
    ("variant", "generation", "allowed"),
    [("spec", 1, False), ("franz_go", 1, True), ("franz_go", 0, False), ("franz_go", -1, False)],
)
def test_a_commit_of_a_lost_generation_is_of_a_variant_only_until_it_joins_again(
    request: pytest.FixtureRequest, variant: str, generation: int, *, allowed: bool
) -> None:
    loop = Loop(request.getfixturevalue(variant))
    loop.joins()
    assert loop.sends(heartbeat(1))
    assert loop.answers_with("UNKNOWN_MEMBER_ID", "heartbeat") == "UNKNOWN_MEMBER_ID"
    assert loop.hears(given_up_event(frozenset({0, 1}), "lost"))
    late = loop.messages.events(commit(generation, "m1-01"), "it", 0)[0]
    assert loop.following.explains(late) is allowed
    assert loop.sends(join(NAMES.real("" if variant == "spec" else "m1-01")))
    assert not loop.following.explains(late)


@pytest.mark.parametrize("numbers", [(0,), ()])
def test_a_leader_assigns_every_partition(loop: Loop, numbers: Sequence[int]) -> None:
    assert loop.sends(join(""))
    loop.answers_with("MEMBER_ID_REQUIRED")
    assert loop.sends(join(NAMES.real("m1-01")))
    loop.answers_with("NONE, leader")
    assert not loop.sends(sync(1, "m1-01", numbers=numbers))


@pytest.mark.parametrize("wish", ["NONE, leader", "NONE, follower"])
def test_a_lost_sync_group_is_sent_again_by_a_variant_only(
    spec: Spec, librdkafka: Spec, wish: str
) -> None:
    for variant, allowed in ((spec, False), (librdkafka, True)):
        loop = Loop(variant)
        assert loop.sends(join(""))
        loop.answers_with("MEMBER_ID_REQUIRED")
        assert loop.sends(join(NAMES.real("m1-01")))
        assert loop.answers_with(wish) == wish
        reader = loop.answers.reader
        generation = reader.of_client(loop.following.states[0], "channel")["generation"]
        assert isinstance(generation, int)
        request = sync(generation, *(["m1-01"] if wish == "NONE, leader" else []))
        assert loop.sends(request)
        assert loop.hears(lost_event("channel", "cut"))
        assert loop.hears(has_read_event("later", channel=False))
        assert loop.sends(request) is allowed


def test_an_answer_may_go_with_its_connection_and_else_counts(loop: Loop) -> None:
    assert loop.sends(join(""))
    loop.answers_with("MEMBER_ID_REQUIRED")
    assert loop.sends(join(NAMES.real("m1-01")))
    loop.answers_with("UNKNOWN_MEMBER_ID")
    again = loop.messages.events(join(NAMES.real("m1-01")), "it", 0)[0]
    anew = loop.messages.events(join(""), "it", 0)[0]
    assert loop.following.explains(anew)
    assert not loop.following.explains(again)
    assert loop.hears(closed_event("closed"))
    assert loop.following.explains(anew)
    assert loop.following.explains(again)


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"])
def test_a_refused_sync_group_is_sent_again_by_a_variant_only(
    librdkafka: Spec, franz_go: Spec, error: str
) -> None:
    for variant, allowed in ((librdkafka, False), (franz_go, True)):
        loop = Loop(variant)
        assert loop.sends(join(""))
        loop.answers_with("MEMBER_ID_REQUIRED")
        assert loop.sends(join(NAMES.real("m1-01")))
        loop.answers_with("NONE, leader")
        assert loop.sends(sync(1, "m1-01"))
        assert loop.answers_with(error) == error
        assert loop.sends(sync(1, "m1-01")) is allowed


KINDS_OF_CLIENTS = {
    "static": STATIC,
    "dynamic": SUBJECT,
    "dynamic of JoinGroup 3": replace(SUBJECT, joins_twice=False),
}


@pytest.fixture(scope="module", params=KINDS_OF_CLIENTS)
def client_kind(request: pytest.FixtureRequest) -> tuple[Spec, JoiningClient]:
    """The coordinator is the same in all variants."""
    subject = KINDS_OF_CLIENTS[request.param]
    return spec_of("java", subject), subject


def rejoins(loop: Loop) -> None:
    """A member of generation 1 is told to join again, and does."""
    assert loop.sends(heartbeat(1))
    loop.answers_with("REBALANCE_IN_PROGRESS", "heartbeat")
    assert loop.hears(given_up_event(frozenset({0, 1}), "revoked"))
    assert loop.sends(join(NAMES.real("m1-01")))


@pytest.mark.parametrize("aim", AIMS, ids=str)
def test_every_answer_that_an_example_aims_at_can_be_given(
    client_kind: tuple[Spec, JoiningClient], aim: DutyKind
) -> None:
    spec, subject = client_kind
    if aim not in aims_of(1, is_static=subject.instance is not None):
        assert aim.answer == "FENCED_INSTANCE_ID"
        return
    loop = Loop(spec, subject)
    lane = "heartbeat" if aim.api in ("Heartbeat", "OffsetCommit") else "channel"
    assert loop.sends(join(""))
    if subject is SUBJECT:
        assert loop.answers_with("MEMBER_ID_REQUIRED") == "MEMBER_ID_REQUIRED"
        assert loop.sends(join(NAMES.real("m1-01")))
    assert loop.answers_with("NONE, leader") == "NONE, leader"
    stale = aim.answer == "ILLEGAL_GENERATION"  # by a fail-over to the generation before
    if aim.api != "SyncGroup" or stale:
        assert loop.sends(sync(1, "m1-01"))
        assert loop.answers_with("NONE") == "NONE"
        assert loop.hears(assigned_event(frozenset({0, 1}), "assigned"))
    if aim.api == "JoinGroup" or (stale and aim.api != "OffsetCommit"):
        rejoins(loop)
    if stale and aim.api != "OffsetCommit":
        assert loop.answers_with("NONE, leader") == "NONE, leader"
    generation = 2 if stale and aim.api != "OffsetCommit" else 1
    if aim.api == "SyncGroup":
        assert loop.sends(sync(generation, "m1-01"))
    if aim.api == "Heartbeat":
        assert loop.sends(heartbeat(generation))
    if aim.api == "OffsetCommit":
        assert loop.sends(commit(1, "m1-01"))
    assert loop.answers_with(aim.answer, lane) == aim.answer


@pytest.mark.parametrize(
    ("variant", "subject", "allowed"),
    [("franz-go", STATIC, True), ("franz-go", SUBJECT, False), ("java", STATIC, False)],
)
def test_a_static_leader_of_a_variant_may_join_again_unasked(
    variant: str, subject: JoiningClient, *, allowed: bool
) -> None:
    loop = Loop(spec_of(variant, subject), subject)
    assert loop.sends(join(""))
    if subject is SUBJECT:
        loop.answers_with("MEMBER_ID_REQUIRED")
        assert loop.sends(join(NAMES.real("m1-01")))
    assert loop.answers_with("NONE, leader") == "NONE, leader"
    assert loop.sends(sync(1, "m1-01"))
    assert loop.answers_with("NONE") == "NONE"
    assert loop.hears(assigned_event(frozenset({0, 1}), "assigned"))
    assert loop.hears(given_up_event(frozenset({0, 1}), "revoked")) is allowed


@pytest.mark.parametrize(("variant", "next_id"), [("spec", ""), ("franz_go", "m1-01")])
def test_an_unknown_member_id_is_kept_by_a_variant_until_its_join_is_refused(
    request: pytest.FixtureRequest, variant: str, next_id: str
) -> None:
    loop = Loop(request.getfixturevalue(variant))
    loop.joins()
    assert loop.sends(heartbeat(1))
    loop.answers_with("UNKNOWN_MEMBER_ID", "heartbeat")
    assert loop.hears(given_up_event(frozenset({0, 1}), "lost"))
    assert loop.sends(join(NAMES.real(next_id)))
    loop.answers_with("UNKNOWN_MEMBER_ID")
    assert loop.sends(join(""))


@pytest.mark.parametrize(("variant", "allowed"), [("spec", False), ("franz_go", True)])
def test_a_lost_heartbeat_ends_the_session_of_a_variant_only(
    request: pytest.FixtureRequest, variant: str, *, allowed: bool
) -> None:
    loop = Loop(request.getfixturevalue(variant))
    loop.joins()
    assert loop.sends(heartbeat(1))
    assert loop.hears(lost_event("heartbeat", "cut"))
    assert loop.hears(given_up_event(frozenset({0, 1}), "lost")) is allowed


@pytest.mark.parametrize(("variant", "allowed"), [("spec", False), ("franz_go", True)])
def test_a_refused_heartbeat_ends_the_session_of_a_variant_only(
    request: pytest.FixtureRequest, variant: str, *, allowed: bool
) -> None:
    loop = Loop(request.getfixturevalue(variant))
    loop.joins()
    assert loop.sends(heartbeat(1))
    assert loop.answers_with("NOT_COORDINATOR", "heartbeat") == "NOT_COORDINATOR"
    assert loop.hears(given_up_event(frozenset({0, 1}), "lost")) is allowed


def test_instead_tells_what_would_have_been_allowed(loop: Loop) -> None:
    loop.joins()
    assert not loop.sends(heartbeat(2))
    steps = loop.following.instead(SENDS)
    reader = loop.answers.reader
    texts = {loop.messages.may_send(action.name, state, reader) for action, state in steps}
    assert "Heartbeat as m1-01, generation 1" in texts


def test_the_answer_is_made_of_the_state(loop: Loop) -> None:
    assert loop.sends(join(""))
    loop.answers_with("MEMBER_ID_REQUIRED")
    reader = loop.answers.reader
    told = loop.messages.answer(join(""), loop.following.states[0], reader)
    assert (told.error_code, told.member_id) == (ErrorCode.member_id_required, NAMES.real("m1-01"))
    assert loop.sends(join(NAMES.real("m1-01")))
    loop.answers_with("NONE, leader of others")
    told = loop.messages.answer(join(""), loop.following.states[0], reader)
    assert told.leader == told.member_id == NAMES.real("m1-01")
    assert [one.member_id for one in told.members] == [NAMES.real("m1-01"), NAMES.real("m2-01")]


def test_a_client_that_cannot_be_judged_is_told_so() -> None:
    with pytest.raises(UserError, match="cooperatively"):
        subject_of(join("", "cooperative-sticky"))
    assert not subject_of(join("", version=3)).joins_twice
    two = join_request("", {"range": subscription_bytes(("a", "b"), 0)})
    with pytest.raises(UserError, match="2 topics"):
        subject_of(two)


def test_callbacks_are_lines_in_a_pipe(tmp_path: Path) -> None:
    pipe = CallbackPipe(tmp_path)
    assert pipe.read() == []
    with pipe.path.open("a", encoding="utf-8") as file:
        file.write('{"event": "assigned", "partitions": [["orders", 1]]}\n{"event": "lo')
        file.flush()
        assert pipe.read() == [Callback("assigned", frozenset({1}))]
        file.write('st"}\n')
    assert pipe.read() == [Callback("lost", frozenset())]
    with pipe.path.open("a", encoding="utf-8") as file:
        file.write("rubbish\n")
    with pytest.raises(UserError, match="KCONFORM_CALLBACKS"):
        pipe.read()
    pipe.close()


def test_a_command_is_filled_in() -> None:
    values = {"bootstrap": "127.0.0.1:1", "instance": ""}
    assert arguments("c 'a b' {bootstrap} {instance}", values) == ["c", "a b", "127.0.0.1:1", ""]
    with pytest.raises(UserError, match="cannot be filled in"):
        arguments("c {port}", values)
