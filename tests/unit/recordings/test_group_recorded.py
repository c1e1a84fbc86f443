"""A small recording, written by hand as agent and tap write one, becomes events of the spec."""

from __future__ import annotations

import base64
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import DataError
from conformance.recordings.folder import RecordedTrace
from conformance.recordings.group import group_traces

UUID = "01234567-89ab-cdef-0123-456789abcdef"
M1, M2 = f"m1-{UUID}", f"i2-{UUID}"


def member(client: str, *, instance: str | None = None, **flags: bool) -> dict[str, Any]:
    return {
        "clientId": client,
        "groupInstanceId": instance,
        "isNew": flags.get("new", False),
        "awaitingJoin": flags.get("join", False),
        "awaitingSync": flags.get("sync", False),
        "protocols": ["range"],
        "assignment": base64.b64encode(b"").decode(),
    }


def state(name: str, generation: int, members: dict[str, Any], **further: Any) -> dict[str, Any]:
    return {
        "state": name,
        "generation": generation,
        "protocol": "range" if generation else None,
        "pendingMembers": [],
        "pendingSyncMembers": [],
        "awaitingJoin": 0,
        "newMemberAdded": False,
        "staticMembers": {},
        "leader": M1 if members else None,
        "members": members,
        **further,
    }


def recording(
    folder: Path, agent: list[tuple[int, str, Any]], tap: list[dict[str, Any]], node: str = "1"
) -> Path:
    (folder / f"node{node}").mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "node": node,
            "sequence": index,
            "entered": time,
            "time": time + 5,
            "operation": operation,
            "group": "g",
            "state": seen,
        }
        for index, (time, operation, seen) in enumerate(agent)
    ]
    other = {**lines[0], "group": "other"}
    text = "".join(json.dumps(line) + "\n" for line in [*lines, other])
    (folder / f"node{node}" / "agent.ndjson").write_text(text, "utf-8")
    (folder / "tap.ndjson").write_text("".join(json.dumps(one) + "\n" for one in tap), "utf-8")
    (folder / "recording.json").write_text("{}", "utf-8")
    return folder


def message(
    time: int, api: str, number: int, direction: str = "request", client: str = "m1", **body: Any
) -> dict[str, Any]:
    return {
        "time": time,
        "connection": 1,
        "link": "client->1",
        "direction": direction,
        "api": api,
        "correlation": number,
        "client": client,
        "body": {"groupId": "g", **body} if direction == "request" else body,
    }


def joined(**flags: bool) -> dict[str, Any]:
    return {M1: member("m1", **flags)}


AGENT = [
    (20, 'handleJoinGroup ["g","","m1"]', state("Empty", 0, {}, pendingMembers=[M1])),
    (
        40,
        f'handleJoinGroup ["g","{M1}","m1"]',
        state("PreparingRebalance", 0, joined(new=True, join=True)),
    ),
    (50, "", state("CompletingRebalance", 1, joined(), pendingSyncMembers=[M1])),
    (70, f'handleSyncGroup ["g",1,"{M1}"]', state("CompletingRebalance", 1, joined(sync=True))),
    (75, "", state("Stable", 1, joined())),
]
TAP = [
    message(4, "JoinGroup", 0),
    message(5, "JoinGroup", 0, "response", errorCode=16),  # not the coordinator: nothing happened
    message(10, "JoinGroup", 1),
    message(25, "JoinGroup", 1, "response", errorCode=79),
    message(30, "JoinGroup", 2),
    message(55, "JoinGroup", 2, "response", errorCode=0),
    message(60, "SyncGroup", 3),
    message(77, "SyncGroup", 3, "response", errorCode=0),
    message(80, "Heartbeat", 4),
    message(81, "Heartbeat", 4, "response", errorCode=0),
    message(90, "Heartbeat", 5),
    message(91, "Heartbeat", 5, "response", errorCode=27),
    message(95, "JoinGroup", 6, client="stranger"),
]


def group_trace(folder: Path, group: str) -> RecordedTrace:
    (found,) = [one for one in group_traces(folder) if one.name == group]
    return found


def told(event: dict[str, Any]) -> str:
    """The event's action; of several that it may be, all."""
    action = event["action"]
    names = [one["name"] for one in action] if isinstance(action, list) else [action["name"]]
    return " or ".join(names) if len(names) < 3 else "several"


JOINED = "HandleJoinGroup or HandleLateJoinGroup"
GIVEN_UP = "LoseMessage or GiveUpJoinGroup"


def test_requests_and_observations_in_their_order(tmp_path: Path) -> None:
    trace = group_trace(recording(tmp_path, AGENT, TAP), "g")
    actions = [event["action"] for event in trace.events]
    assert [told(event) for event in trace.events] == [
        "SendJoinGroup",
        JOINED,
        "SendJoinGroup",
        JOINED,
        "several",  # a timer, or a request whose section was not seen
        "ProcessJoinGroup",
        "several",
        "SendHeartbeat",  # only the one that was refused
        "ProcessHeartbeat",
    ]
    assert actions[3][0] == {"name": "HandleJoinGroup", "args": ["m1"]}
    assert {"name": "ExpireRebalance", "args": []} in actions[4]
    assert [event["source"] for event in trace.events][:2] == [
        "tap.ndjson:3",
        "node1/agent.ndjson:1",
    ]


def test_states_in_the_specifications_names(tmp_path: Path) -> None:
    trace = group_trace(recording(tmp_path, AGENT, TAP), "g")
    seen = [event["state"] for event in trace.events if "state" in event]
    assert seen[0]["pendingMembers"] == {"#set": ["m1-1"]}
    assert (seen[0]["protocolName"], seen[0]["leader"]) == ("none", "")
    assert seen[1]["awaitingJoin"] == seen[1]["newMembers"] == {"#set": ["m1-1"]}
    assert seen[1]["supported"] == {"#map": [["m1-1", {"#set": ["range"]}]]}
    assert [one["groupState"] for one in seen] == [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",  # the leader's SyncGroup counts when it is stored: one event, not two
    ]


def test_a_request_without_an_answer_was_lost_when_the_next_one_comes(tmp_path: Path) -> None:
    lost = [*TAP, message(100, "JoinGroup", 7), message(110, "JoinGroup", 8)]
    trace = group_trace(recording(tmp_path, AGENT, lost), "g")
    names = [told(event) for event in trace.events[-3:]]
    assert names == ["SendJoinGroup", GIVEN_UP, "SendJoinGroup"]


def test_a_client_that_was_killed_forgets_all(tmp_path: Path) -> None:
    made = recording(tmp_path, AGENT, TAP)
    faults = [
        {"action": "kill-client", "client": "m1", "time": 8},  # it has not asked to join yet
        {"action": "kill-client", "client": "m1", "time": 100},
        {"action": "kill-client", "client": "p1", "time": 101},
        {"action": "kill", "client": "", "time": 102},
    ]
    (made / "recording.json").write_text(json.dumps({"faults": faults}), "utf-8")
    trace = group_trace(made, "g")
    assert trace.events[-1]["action"] == {"name": "RestartProcess", "args": ["m1"]}
    assert str(trace.events).count("RestartProcess") == 1
    assert "LoseMessage" not in str(trace.events)


def test_what_waits_when_a_process_ends_may_be_handled_after_its_next_request(
    tmp_path: Path,
) -> None:
    tap = [*TAP[:8], message(100, "JoinGroup", 7), message(150, "JoinGroup", 8)]
    made = recording(tmp_path, AGENT, tap)
    fault = {"action": "kill-client", "client": "m1", "time": 120}
    (made / "recording.json").write_text(json.dumps({"faults": [fault]}), "utf-8")
    names = [told(event) for event in group_trace(made, "g").events[-4:]]
    assert names == ["SendJoinGroup", GIVEN_UP, "RestartProcess", "SendJoinGroup"]


def test_a_fail_over_is_a_step_of_its_own(tmp_path: Path) -> None:
    recording(tmp_path, [(200, "onGroupLoaded []", state("Stable", 1, joined()))], [], node="2")
    (tmp_path / "node1").mkdir()
    unloaded = (180, "onGroupUnloaded []", state("Dead", 1, joined()))
    trace = group_trace(recording(tmp_path, [*AGENT, unloaded], TAP), "g")
    assert trace.events[-1]["action"] == {"name": "FailOver", "args": []}
    states = [event["state"]["groupState"] for event in trace.events if "state" in event]
    assert "Dead" not in states


def test_a_group_that_is_gone_is_dead(tmp_path: Path) -> None:
    trace = group_trace(recording(tmp_path, [*AGENT, (99, "", None)], TAP), "g")
    assert trace.events[-1]["state"] == {"groupState": "Dead"}


def test_static_members_and_constants(tmp_path: Path) -> None:
    both = {**joined(), M2: member("m2", instance="i2", new=True, join=True)}
    agent = [*AGENT, (99, "", state("Stable", 3, both, staticMembers={"i2": M2}))]
    trace = group_trace(recording(tmp_path, agent, TAP), "g")
    last = [event["state"] for event in trace.events if "state" in event][-1]
    assert last["staticMembers"] == {"#map": [["i2", "m2-1"], ["none", ""]]}
    mapping = tomllib.loads(trace.mapping)
    assert mapping["constants"]["Members"] == '{"m1", "m2"}'
    assert 'p = "m2" -> "i2"' in mapping["constants"]["InstanceOf"]
    assert mapping["constants"]["Generations"] == "0..4"
    assert mapping["constants"]["MemberIds"] == (
        '<<[id |-> "m1-1", member |-> "m1"], [id |-> "m2-1", member |-> "m2"]>>'
    )
    assert "CompleteJoin" in mapping["silent"]["actions"]


def test_a_loaded_member_has_the_selected_protocol_only_but_started_with_more(
    tmp_path: Path,
) -> None:
    more = {M1: {**member("m1"), "protocols": ["range", "roundrobin"]}}
    agent = [(20, 'handleJoinGroup ["m1"]', state("Stable", 1, more)), *AGENT[4:]]
    trace = group_trace(recording(tmp_path, agent, TAP), "g")
    constants = tomllib.loads(trace.mapping)["constants"]
    assert 'p = "m1" -> {"range", "roundrobin"}' in constants["ProtocolsOf"]


def test_what_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no recording"):
        next(group_traces(tmp_path))
    made = recording(tmp_path, AGENT, TAP)
    assert [one.name for one in group_traces(made)] == ["g", "other"]
    (made / "tap.ndjson").write_text("{half a li", "utf-8")
    with pytest.raises(DataError, match=r"tap\.ndjson:1 is no part"):
        next(group_traces(made))


def test_a_member_that_joins_without_its_id_has_forgotten_it(tmp_path: Path) -> None:
    given = message(95, "Heartbeat", 6, memberId=M1, generationId=1)
    again = message(100, "JoinGroup", 7, memberId="")
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:-3], given, again]), "g")
    names = [event["action"]["name"] for event in trace.events[-2:]]
    assert names == ["RestartProcess", "SendJoinGroup"]


def test_of_two_refusals_in_flight_the_first_answer_counts(tmp_path: Path) -> None:
    both = [
        message(100, "Heartbeat", 7, memberId=M1),
        message(101, "OffsetCommit", 8, memberId=M1),
        message(105, "Heartbeat", 7, "response", errorCode=25),
        message(106, "OffsetCommit", 8, "response", topics=[{"partitions": [{"errorCode": 25}]}]),
    ]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], *both]), "g")
    names = [event["action"]["name"] for event in trace.events[-2:]]
    assert names == ["SendHeartbeat", "ProcessHeartbeat"]
    assert "OffsetCommit" not in str([event["action"] for event in trace.events])


def test_a_heartbeat_under_an_id_that_its_member_has_given_up_says_nothing_new(
    tmp_path: Path,
) -> None:
    """kafka-python: its other thread joins without an id before the heartbeat is answered."""
    unknown = [{"partitions": [{"errorCode": 25}]}]
    tap = [
        message(100, "OffsetCommit", 7, memberId=M1),
        message(105, "OffsetCommit", 7, "response", topics=unknown),
        message(106, "Heartbeat", 8, memberId=M1),
        message(107, "JoinGroup", 9, memberId=""),
        message(108, "Heartbeat", 8, "response", errorCode=25),
        message(109, "Heartbeat", 10, memberId=M1),
        message(110, "Heartbeat", 10, "response", errorCode=25),
    ]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], *tap]), "g")
    names = [event["action"]["name"] for event in trace.events[-3:]]
    assert names == ["SendOffsetCommit", "ProcessOffsetCommit", "SendJoinGroup"]


def test_who_joins_under_its_id_has_not_processed_what_costs_it(tmp_path: Path) -> None:
    """kafka-python: a commit is refused while another thread is about to join."""
    unknown = [{"partitions": [{"errorCode": 25}]}]
    tap = [
        message(100, "OffsetCommit", 7, memberId=M1),
        message(105, "OffsetCommit", 7, "response", topics=unknown),
        message(106, "JoinGroup", 8, memberId=M1),
        message(107, "JoinGroup", 8, "response", errorCode=25),
        message(108, "JoinGroup", 9, memberId=""),
    ]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], *tap]), "g")
    names = [told(event) for event in trace.events[-4:]]
    assert names == ["SendOffsetCommit", "SendJoinGroup", "ProcessOffsetCommit", "SendJoinGroup"]


def test_a_broker_that_is_no_coordinator_refuses_nothing_in_the_groups_name(
    tmp_path: Path,
) -> None:
    """A commit and a heartbeat under way: the group refuses the second only."""
    elsewhere = [{"partitions": [{"errorCode": 15}]}]
    both = [
        message(100, "OffsetCommit", 7, memberId=M1),
        message(101, "Heartbeat", 8, memberId=M1),
        message(105, "OffsetCommit", 7, "response", topics=elsewhere),
        message(106, "Heartbeat", 8, "response", errorCode=25),
        message(110, "JoinGroup", 9, memberId=""),
    ]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], *both]), "g")
    names = [event["action"]["name"] for event in trace.events[-3:]]
    assert names == ["SendHeartbeat", "ProcessHeartbeat", "SendJoinGroup"]


def test_who_has_forgotten_its_id_may_lose_the_answer_too(tmp_path: Path) -> None:
    given = message(95, "Heartbeat", 6, memberId=M1, generationId=1)
    twice = [message(100, "JoinGroup", 7, memberId=""), message(120, "JoinGroup", 8, memberId="")]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], given, *twice]), "g")
    names = [told(event) for event in trace.events[-4:]]
    assert names == ["RestartProcess", "SendJoinGroup", GIVEN_UP, "SendJoinGroup"]


def test_who_leaves_has_given_up_the_join_group_that_waits(tmp_path: Path) -> None:
    """A Java consumer is closed; its JoinGroup is answered before its LeaveGroup is handled."""
    tap = [
        message(100, "JoinGroup", 7, memberId=M1),
        message(110, "LeaveGroup", 8, memberId=M1),
        message(115, "JoinGroup", 7, "response", errorCode=0),
        message(116, "LeaveGroup", 8, "response", errorCode=0),
    ]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], *tap]), "g")
    names = [told(event) for event in trace.events[-3:]]
    assert names == ["SendJoinGroup", GIVEN_UP, "LeaveGroup"]


def test_what_a_closed_consumer_still_sends_is_nobodys(tmp_path: Path) -> None:
    """Its JoinGroup is answered after it has left, and it sends a SyncGroup."""
    tap = [
        message(100, "JoinGroup", 7, memberId=M1),
        message(110, "LeaveGroup", 8, memberId=M1),
        message(115, "JoinGroup", 7, "response", errorCode=0),
        message(117, "SyncGroup", 9, memberId=M1, generationId=2),
        message(118, "SyncGroup", 9, "response", errorCode=25),
    ]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], *tap]), "g")
    assert [told(event) for event in trace.events[-2:]] == [GIVEN_UP, "LeaveGroup"]


def test_a_closed_consumer_that_is_started_again_has_nothing_to_forget(tmp_path: Path) -> None:
    """Although a SyncGroup under its old id came after its LeaveGroup."""
    tap = [
        message(100, "JoinGroup", 7, memberId=M1),
        message(110, "LeaveGroup", 8, memberId=M1),
        message(115, "JoinGroup", 7, "response", errorCode=0),
        message(117, "SyncGroup", 9, memberId=M1, generationId=2),
        message(200, "JoinGroup", 2, memberId=""),
    ]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], *tap]), "g")
    assert [told(event) for event in trace.events[-2:]] == ["LeaveGroup", "SendJoinGroup"]


def test_who_never_became_a_member_has_the_protocols_that_it_asked_with(tmp_path: Path) -> None:
    agent = [(20, 'handleJoinGroup ["g","","m1"]', state("Empty", 0, {}, pendingMembers=[M1]))]
    tap = [message(10, "JoinGroup", 1, protocols=[{"name": "range"}, {"name": "sticky"}])]
    trace = group_trace(recording(tmp_path, agent, tap), "g")
    constants = tomllib.loads(trace.mapping)["constants"]
    assert constants["Protocols"] == '{"range", "sticky"}'
    assert 'p = "m1" -> {"range", "sticky"}' in constants["ProtocolsOf"]


def test_a_join_group_that_no_sync_group_follows_was_answered_to_nobody(tmp_path: Path) -> None:
    tap = [
        message(100, "JoinGroup", 7, memberId=M1),
        message(110, "JoinGroup", 7, "response", errorCode=0),
        message(115, "LeaveGroup", 8, memberId=M1),
    ]
    trace = group_trace(recording(tmp_path, AGENT, [*TAP[:8], *tap]), "g")
    assert [told(event) for event in trace.events[-2:]] == [GIVEN_UP, "LeaveGroup"]


OTHER = "m1-76543210-fedc-ba98-7654-3210fedcba98"


def test_what_a_coordinator_does_that_is_none_any_longer_is_nobodys(tmp_path: Path) -> None:
    """Broker 1 was paused: broker 2 has loaded the group, and 1 goes on until it hears of it."""
    recording(tmp_path, [(200, "onGroupLoaded []", state("Stable", 1, joined()))], [], node="2")
    zombie = [
        (300, f'onExpireHeartbeat ["{M1}"]', state("Empty", 2, {})),
        (310, 'handleJoinGroup ["g","","m1"]', state("Empty", 2, {}, pendingMembers=[OTHER])),
        (400, "onGroupUnloaded []", state("Dead", 2, {})),
    ]
    tap = [
        *TAP[:8],
        message(305, "JoinGroup", 10),
        message(306, "JoinGroup", 10, "response", errorCode=79),
        {**message(420, "JoinGroup", 11, memberId=OTHER), "link": "client->2"},
        {**message(430, "JoinGroup", 12, memberId=M1), "link": "client->2"},
    ]
    trace = group_trace(recording(tmp_path, [*AGENT, *zombie], tap), "g")
    after = [event["action"]["name"] for event in trace.events if event["time"] >= 200e-9]
    assert after == ["FailOver", "SendJoinGroup"]
    assert trace.events[-1]["source"] == "tap.ndjson:12"


def test_who_waits_when_its_coordinator_resigns_had_joined(tmp_path: Path) -> None:
    """It is answered NOT_COORDINATOR, as who was refused at once; but the group has handled it."""
    waits = (100, f'handleJoinGroup ["g","{M1}","m1"]', state("PreparingRebalance", 1, joined()))
    tap = [
        *TAP[:8],
        message(95, "JoinGroup", 10, memberId=M1),
        message(120, "JoinGroup", 10, "response", errorCode=16),
        message(130, "JoinGroup", 11, memberId=M1),
        message(135, "JoinGroup", 11, "response", errorCode=16),
    ]
    trace = group_trace(recording(tmp_path, [*AGENT, waits], tap), "g")
    assert [told(event) for event in trace.events[-2:]] == ["SendJoinGroup", JOINED]


def test_what_a_zombie_answers_may_be_seen_after_its_end(tmp_path: Path) -> None:
    """Broker 1, cut off, refuses a heartbeat in its last millisecond; the tap sees it later."""
    recording(tmp_path, [(200, "onGroupLoaded []", state("Stable", 1, joined()))], [], node="2")
    zombie = [
        (300, f'onExpireHeartbeat ["{M1}"]', state("Empty", 2, {})),
        (400, "onGroupUnloaded []", state("Dead", 2, {})),
    ]
    refused = [
        message(190, "Heartbeat", 9, memberId=M1, generationId=1),
        message(401, "Heartbeat", 9, "response", errorCode=25),
    ]
    trace = group_trace(recording(tmp_path, [*AGENT, *zombie], [*TAP[:8], *refused]), "g")
    assert told(trace.events[-1]) == "FailOver"


def test_a_coordinator_that_finds_nothing_in_the_log_begins_without_the_group(
    tmp_path: Path,
) -> None:
    again = [(200, 'handleJoinGroup ["g","","m1"]', state("Empty", 0, {}, pendingMembers=[OTHER]))]
    recording(tmp_path, again, [], node="2")
    unloaded = (150, "onGroupUnloaded []", state("Dead", 0, {}))
    refused = [
        {**message(180, "JoinGroup", 9, memberId=M1), "link": "client->2"},
        {**message(185, "JoinGroup", 9, "response", errorCode=25), "link": "client->2"},
    ]
    trace = group_trace(recording(tmp_path, [*AGENT[:1], unloaded], [*TAP[:4], *refused]), "g")
    fail_over, send, join = trace.events[-3:]
    assert (told(send), told(join)) == ("SendJoinGroup", JOINED)
    assert (told(fail_over), fail_over["time"]) == ("FailOver", 179e-9)
    assert fail_over["state"] == {"groupState": "Dead"}
    assert join["state"]["pendingMembers"] == {"#set": ["m1-2"]}


def test_a_process_that_was_killed_and_loads_again_has_failed_over(tmp_path: Path) -> None:
    loaded = (200, "onGroupLoaded []", state("Stable", 1, joined()))
    made = recording(tmp_path, [*AGENT, loaded], TAP[:8])
    kill = {"action": "kill", "node": 1, "time": 150, "problem": ""}
    (made / "recording.json").write_text(json.dumps({"faults": [kill]}), "utf-8")
    assert group_trace(made, "g").events[-1]["action"] == {"name": "FailOver", "args": []}


def test_the_coordinator_of_4_0_has_a_model_of_its_own(tmp_path: Path) -> None:
    made = recording(tmp_path, AGENT, TAP)
    assert group_trace(made, "g").model == "group/recorded-2m"
    (made / "recording.json").write_text(json.dumps({"kafka": "4.4.0"}), "utf-8")
    assert group_trace(made, "g").model == "group/recorded-rewrite-2m"
