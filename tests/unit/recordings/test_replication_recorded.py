"""A small recording, written by hand as agents write one, becomes events of Replication."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import DataError, UserError
from conformance.recordings.folder import RecordedTrace
from conformance.recordings.replication import replication_traces, unfit_settings
from conformance.stages.recorded import write_traces

APPEND = "$anonfun$appendRecordsToLeader$1"


class Lines:
    """What the agents of two brokers write; every line is a moment later than the one before."""

    def __init__(self) -> None:
        self.nodes: dict[str, list[dict[str, Any]]] = {"1": [], "2": []}
        self.time = 0

    def add(self, node: int, **body: Any) -> int:
        self.time += 10
        head = {"node": str(node), "entered": self.time - 5, "time": self.time}
        self.nodes[str(node)].append({**head, **body})
        return self.time

    def registered(self, node: int, leader: int, epoch: int, isr: list[int], version: int) -> int:
        state = {"leader": leader, "leaderEpoch": epoch, "partitionEpoch": version, "isr": isr}
        return self.add(node, section="replay", registration="t-0", state=state)

    def section(self, node: int, section: str, state: dict[str, Any], **further: Any) -> int:
        return self.add(node, section=section, partition="t-0", state=state, **further)

    def fetch(self, node: int, replica: int, state: dict[str, Any], **further: Any) -> int:
        fetch = {"replica": replica, "fetchOffset": 0, "currentLeaderEpoch": 0, "error": None}
        section = further.pop("section", "fetchRecords")
        return self.section(node, section, state, fetch=fetch, **further)

    def request(self, node: int) -> int:
        return self.add(node, partition="t-0", request={"fetchOffset": 0, "currentLeaderEpoch": 0})

    def trace(self, folder: Path, faults: Sequence[dict[str, Any]] = ()) -> RecordedTrace:
        self.write(folder, {"faults": list(faults)})
        (trace,) = replication_traces(folder)
        return trace

    def write(self, folder: Path, told: dict[str, Any]) -> None:
        for node, lines in self.nodes.items():
            (folder / f"node{node}").mkdir()
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / f"node{node}" / "agent.ndjson").write_text(text, "utf-8")
        text = json.dumps({**told, "ended": self.time + 1})
        (folder / "recording.json").write_text(text, "utf-8")


def broker(
    leader: int, end: int, mark: int, position: int | None = None, **further: Any
) -> dict[str, Any]:
    leads = position is not None
    return {
        "leaderEpoch": 0,
        "leader": leader,
        "partitionEpoch": 0,
        "isr": [1, 2] if leads else [],
        "sentIsr": [],
        "log": {
            "logStartOffset": 0,
            "highWatermark": mark,
            "logEndOffset": end,
            "epochs": [[0, 0]] if end or leads else [],
        },
        "followers": {"2": {"logEndOffset": position}} if leads else {},
        **further,
    }


@pytest.fixture
def lines() -> Lines:
    """Both brokers know partition t-0; broker 1 leads, and has one record."""
    made = Lines()
    made.registered(1, leader=1, epoch=0, isr=[1, 2], version=0)
    made.registered(2, leader=1, epoch=0, isr=[1, 2], version=0)
    made.section(1, "$anonfun$makeLeader$1", broker(1, 0, 0, -1))
    made.section(2, "$anonfun$makeFollower$1", broker(1, 0, 0))
    made.section(1, APPEND, broker(1, 1, 0, -1))
    return made


def steps(trace: RecordedTrace) -> list[str]:
    def told(action: Any) -> str:
        several = action if isinstance(action, list) else [action]
        return " or ".join(f"{one['name']}{one['args']}" for one in several)

    return [told(event["action"]) for event in trace.events]


def test_a_fetch_that_waits_counts_when_it_comes_and_delivers_when_it_is_answered(
    tmp_path: Path, lines: Lines
) -> None:
    lines.request(2)
    lines.fetch(1, 2, broker(1, 1, 0, 0))
    lines.fetch(1, 2, broker(1, 1, 0, 0))
    lines.section(2, "processPartitionData", broker(1, 1, 0))
    trace = lines.trace(tmp_path)
    assert steps(trace) == [
        "AppendAsLeader['b1', 0]",
        "SendFetch['b2']",
        "HandleFetch['b1', 'b2']",
        "LoseMessage['b2']",
        "SendFetch['b2']",
        "HandleFetch['b1', 'b2']",
        "ProcessFetchResponse['b2']",
    ]
    assert trace.events[2]["state"]['followerState["b1"]["b2"].logEndOffset'] == 0
    assert trace.events[-1]["state"]['log["b2"]'] == [0]
    constants = tomllib.loads(trace.mapping)["constants"]
    assert (constants["Offsets"], constants["AppendCounts"]) == ("0..1", "0..1")
    assert constants["InitialLeader"] == '"b1"'


def test_a_fetch_that_a_paused_leader_reads_late_is_told_when_its_follower_gave_it_up(
    tmp_path: Path, lines: Lines
) -> None:
    lines.request(2)  # offset 0, epoch 0; the leader is paused and does not read it
    lines.add(2, partition="t-0", request={"fetchOffset": 0, "currentLeaderEpoch": 1})
    given_up = lines.time
    lines.fetch(1, 2, broker(1, 1, 0, 0))
    trace = lines.trace(tmp_path)
    assert steps(trace)[1:] == ["SendFetch['b2']", "HandleFetch['b1', 'b2']", "LoseMessage['b2']"]
    assert trace.events[-1]["time"] == (given_up - 1) / 1e9


def test_a_late_fetch_was_left_behind_where_its_leader_has_done_something_else_meanwhile(
    tmp_path: Path, lines: Lines
) -> None:
    lines.request(2)
    lines.add(2, partition="t-0", request={"fetchOffset": 0, "currentLeaderEpoch": 1})
    given_up = lines.time
    lines.section(1, APPEND, broker(1, 2, 0, -1))
    read = lines.fetch(1, 2, broker(1, 2, 0, 0))
    trace = lines.trace(tmp_path)
    assert steps(trace)[1:] == [
        "SendFetch['b2']",
        "LeaveFetch['b2']",
        "AppendAsLeader['b1', 1]",
        "HandleLeftFetch['b1', 'b2']",
    ]
    assert trace.events[2]["time"] == (given_up - 1) / 1e9
    assert trace.events[-1]["time"] == read / 1e9


def test_the_last_fetch_of_a_follower_that_leads_by_then_is_read_by_the_old_leader(
    tmp_path: Path, lines: Lines
) -> None:
    lines.request(2)  # the leader is paused; broker 2 leads before it goes on
    for node in (1, 2):
        lines.registered(node, leader=2, epoch=1, isr=[2], version=1)
    began = broker(2, 0, 0, -1, leaderEpoch=1, partitionEpoch=1, isr=[2], followers={})
    lines.section(2, "$anonfun$makeLeader$1", began)
    read = lines.fetch(1, 2, broker(1, 1, 0, 0))
    trace = lines.trace(tmp_path)
    assert steps(trace)[1:] == [
        "SendFetch['b2']",
        "FenceBroker[1, 'b1', 'b2']",
        "BecomeLeader['b2', 1]",
        "HandleFetch['b1', 'b2']",
        "LoseMessage['b2']",
    ]
    assert trace.events[4]["time"] == read / 1e9


def test_a_leader_that_applies_a_registration_late_adopts_its_isr(
    tmp_path: Path, lines: Lines
) -> None:
    """The controller has replaced it by then: the leader's loader comes to the metadata late."""
    for version, isr in ((1, [1]), (2, [1, 2])):
        lines.registered(1, leader=1, epoch=0, isr=isr, version=version)
    for version, isr in ((1, [1]), (2, [1, 2])):
        state = broker(1, 1, 1 if version == 1 else 0, -1, isr=isr, partitionEpoch=version)
        lines.section(1, "$anonfun$makeLeader$1", state)
    trace = lines.trace(tmp_path)
    assert steps(trace)[-2:] == ["UpdateIsrLate['b1', 0, 1]", "UpdateIsr['b1', 0]"]


def test_a_round_trip_that_changes_nothing_is_left_out(tmp_path: Path, lines: Lines) -> None:
    lines.request(2)
    lines.fetch(1, 2, broker(1, 1, 0, -1))
    lines.request(2)
    assert steps(lines.trace(tmp_path)) == ["AppendAsLeader['b1', 0]"]


def test_what_a_consumers_read_shows_to_be_new_is_of_the_section_around_it(
    tmp_path: Path, lines: Lines
) -> None:
    lines.request(2)
    lines.section(1, "fetchRecords", broker(1, 1, 1, 1))
    lines.fetch(1, 2, broker(1, 1, 1, 1))
    trace = lines.trace(tmp_path)
    assert steps(trace)[1:3] == ["SendFetch['b2']", "HandleFetch['b1', 'b2']"]
    assert trace.events[2]["state"]['highWatermark["b1"]'] == 1


def test_an_isr_change_that_a_fetch_sets_off_comes_after_it(tmp_path: Path, lines: Lines) -> None:
    lines.request(2)
    lines.fetch(1, 2, broker(1, 1, 0, 1, isr=[1], sentIsr=[1, 2]))
    lines.registered(1, leader=1, epoch=0, isr=[1], version=1)
    trace = lines.trace(tmp_path)
    assert steps(trace)[1:] == [
        "SendFetch['b2']",
        "HandleFetch['b1', 'b2']",
        "SubmitExpandIsr['b1', 'b2']",
        "LoseMessage['b2']",
        "FenceBroker[0, 'b2', 'b1'] or HandleAlterPartition['b1']",
    ]
    assert 'pendingIsr["b1"]' not in trace.events[2]["state"]
    assert trace.events[3]["state"]['pendingIsr["b1"]'] == {"#set": ["b1", "b2"]}


def test_a_fetch_and_the_isr_change_within_it_are_one_round_trip(
    tmp_path: Path, lines: Lines
) -> None:
    lines.request(2)
    began = lines.time
    expanded = broker(1, 1, 0, 1, isr=[1], sentIsr=[1, 2])
    lines.fetch(1, 2, expanded, section="$anonfun$maybeExpandIsr$2")
    raised = broker(1, 1, 1, 1, isr=[1], sentIsr=[1, 2])
    lines.fetch(1, 2, raised, entered=began)
    lines.section(2, "processPartitionData", broker(1, 1, 0))
    assert steps(lines.trace(tmp_path))[1:] == [
        "SendFetch['b2']",
        "HandleFetch['b1', 'b2']",
        "SubmitExpandIsr['b1', 'b2']",
        "ProcessFetchResponse['b2']",
    ]


def test_an_isr_change_that_was_never_sent_is_none(tmp_path: Path, lines: Lines) -> None:
    """The answer to the change before it was awaited: OPERATION_NOT_ATTEMPTED."""
    out = {"isr": [1]}
    lines.section(1, "$anonfun$makeLeader$1", broker(1, 1, 1, 0, partitionEpoch=1, **out))
    lines.request(2)
    tried = broker(1, 1, 1, 1, partitionEpoch=1, sentIsr=[1, 2], **out)
    lines.fetch(1, 2, {**tried}, section="$anonfun$maybeExpandIsr$2")
    lines.fetch(1, 2, broker(1, 1, 1, 1, partitionEpoch=1, **out))
    assert [one.partition("[")[0] for one in steps(lines.trace(tmp_path))[-3:]] == [
        *("SendFetch", "HandleFetch", "LoseMessage"),
    ]


def test_a_process_that_ended_left_what_its_next_one_begins_with(
    tmp_path: Path, lines: Lines
) -> None:
    died = lines.time + 5
    lines.registered(1, leader=1, epoch=0, isr=[1], version=1)
    lines.section(2, "$anonfun$makeFollower$1", broker(1, 0, 0))
    fault = {"action": "kill", "node": 2, "time": died, "problem": ""}
    trace = lines.trace(tmp_path, [fault, {**fault, "problem": "it was down"}])
    assert steps(trace)[1:] == [
        "Crash['b2', 0, 0]",
        "FenceBroker[0, 'b2', 'b1'] or HandleAlterPartition['b1']",
        "Restart['b2']",
        "BecomeFollower['b2', 0]",
    ]
    assert tomllib.loads(trace.mapping)["constants"]["BrokerEpochs"] == "0..1"


def test_a_record_that_a_leader_wrote_before_it_died_was_appended(
    tmp_path: Path, lines: Lines
) -> None:
    died = lines.time + 5
    lines.registered(2, leader=2, epoch=1, isr=[2], version=1)
    lines.section(1, "$anonfun$makeFollower$1", broker(2, 2, 0, leaderEpoch=1))
    fault = {"action": "kill", "node": 1, "time": died, "problem": ""}
    assert steps(lines.trace(tmp_path, [fault]))[1:3] == [
        "AppendAsLeader['b1', 1]",
        "Crash['b1', 2, 0]",
    ]


def test_a_record_that_a_follower_wrote_before_it_died_was_fetched(
    tmp_path: Path, lines: Lines
) -> None:
    lines.request(2)
    lines.fetch(1, 2, broker(1, 1, 0, 0))
    died = lines.time + 5
    lines.registered(1, leader=1, epoch=0, isr=[1], version=1)
    lines.section(2, "$anonfun$makeFollower$1", broker(1, 1, 0))
    fault = {"action": "kill", "node": 2, "time": died, "problem": ""}
    assert steps(lines.trace(tmp_path, [fault]))[1:5] == [
        "SendFetch['b2']",
        "HandleFetch['b1', 'b2']",
        "ProcessFetchResponse['b2']",
        "Crash['b2', 1, 0]",
    ]


def test_a_record_that_only_one_controller_tells_was_not_committed(
    tmp_path: Path, lines: Lines
) -> None:
    lines.registered(1, leader=-1, epoch=1, isr=[1], version=1)
    lines.nodes["3"] = []
    for node in (2, 3):
        lines.registered(node, leader=2, epoch=1, isr=[1, 2], version=1)
    trace = lines.trace(tmp_path)
    assert steps(trace)[1:] == ["ElectLeader[1, 'b2']"]
    assert trace.events[-1]["source"] == "node2/agent.ndjson:3"


def test_what_a_controller_takes_back_was_not_committed(tmp_path: Path, lines: Lines) -> None:
    """A paused controller wakes up, takes the others for dead, and hears then of its successor."""
    lines.nodes["3"] = []
    lines.registered(2, leader=-1, epoch=1, isr=[1], version=1)
    lines.registered(2, leader=1, epoch=2, isr=[1], version=2)
    for node in (3, 2):
        lines.registered(node, leader=2, epoch=1, isr=[1, 2], version=1)
    trace = lines.trace(tmp_path)
    assert steps(trace)[1:] == ["ElectLeader[1, 'b2']"]
    assert trace.events[-1]["source"] == "node3/agent.ndjson:1"


def test_what_a_controller_takes_back_and_tells_again_counts_from_the_first_time_on(
    tmp_path: Path, lines: Lines
) -> None:
    """The leader has its answer before the other controllers hear that the change is committed."""
    lines.nodes["3"] = []
    lines.section(1, "maybeShrinkIsr", broker(1, 1, 0, -1, sentIsr=[1]))
    made = lines.registered(1, leader=1, epoch=0, isr=[1], version=1)
    alone = broker(1, 1, 1, -1, isr=[1], partitionEpoch=1)
    lines.section(1, "handleAlterPartitionUpdate", alone)
    lines.registered(1, leader=2, epoch=1, isr=[2], version=2)
    for node in (2, 3, 1):
        lines.registered(node, leader=1, epoch=0, isr=[1], version=1)
    trace = lines.trace(tmp_path)
    assert steps(trace)[-3:] == [
        "SubmitShrinkIsr['b1', 'b2']",
        "FenceBroker[0, 'b2', 'b1'] or HandleAlterPartition['b1']",
        "ProcessAlterPartition['b1']",
    ]
    assert trace.events[-2]["time"] == made / 1e9


def test_what_a_process_reads_again_when_it_starts_is_taken_back_by_nobody(
    tmp_path: Path, lines: Lines
) -> None:
    lines.registered(1, leader=2, epoch=1, isr=[1, 2], version=1)
    made = lines.time
    kill = {"action": "kill", "node": 1, "problem": "", "time": lines.time + 5}
    lines.time += 10
    lines.registered(1, leader=1, epoch=0, isr=[1, 2], version=0)
    lines.registered(1, leader=2, epoch=1, isr=[1, 2], version=1)
    trace = lines.trace(tmp_path, [kill])
    assert trace.events[-2]["time"] == made / 1e9


def test_who_may_be_elected_of_an_empty_isr_is_who_was_its_last_member(
    tmp_path: Path, lines: Lines
) -> None:
    """KIP-966: the ISR is empty; an unclean shutdown makes of who is eligible the last known."""
    lines.registered(1, leader=1, epoch=0, isr=[1], version=1)
    for version, kind in ((2, "elr"), (3, "lastKnownElr")):
        state = {"leader": -1, "leaderEpoch": 1, "partitionEpoch": version, "isr": [], kind: [1]}
        lines.add(1, section="replay", registration="t-0", state=state)
    lines.registered(1, leader=1, epoch=2, isr=[1], version=4)
    lines.section(1, "$anonfun$makeLeader$1", broker(1, 1, 1, -1, leaderEpoch=2, partitionEpoch=4))
    trace = lines.trace(tmp_path)
    assert steps(trace)[2:] == [
        "TakeOffline[1, 'b1']",
        "ElectLeader[2, 'b1']",
        "BecomeLeader['b1', 2]",
    ]
    assert trace.events[2]["state"]["registration.isr"] == {"#set": ["b1"]}
    assert trace.events[3]["state"]["registration.partitionEpoch"] == 3
    assert trace.events[4]["state"]['partitionEpoch["b1"]'] == 3


def test_what_another_thread_is_changing_is_not_believed(tmp_path: Path, lines: Lines) -> None:
    lines.request(2)
    lines.fetch(1, 2, broker(1, 2, 1, 0), overlaps=[APPEND])
    lines.section(1, APPEND, broker(1, 2, 1, 0))
    trace = lines.trace(tmp_path)
    assert steps(trace)[1:4] == [
        "SendFetch['b2']",
        "AppendAsLeader['b1', 1]",
        "HandleFetch['b1', 'b2']",
    ]
    for event in trace.events[2:4]:
        assert not [place for place in event.get("state", {}) if "highW" in place]


def test_what_was_read_before_the_line_before_it_takes_no_record_away(
    tmp_path: Path, lines: Lines
) -> None:
    """Two threads read a partition at once, and the first to read wrote its line second."""
    lines.request(2)
    lines.section(1, APPEND, broker(1, 2, 0, -1))
    lines.fetch(1, 2, broker(1, 1, 0, -1))
    lines.section(1, APPEND, broker(1, 3, 0, -1))
    trace = lines.trace(tmp_path)
    appends = [step for step in steps(trace) if step.startswith("AppendAsLeader")]
    assert appends == [f"AppendAsLeader['b1', {offset}]" for offset in (0, 1, 2)]


def test_a_fetch_that_brought_nothing_was_read_before_the_append_that_its_line_shows(
    tmp_path: Path, lines: Lines
) -> None:
    """Broker 2 has the first record; another thread appends the second amid its next fetch."""
    lines.request(2)
    lines.fetch(1, 2, broker(1, 1, 0, 0))
    lines.section(2, "processPartitionData", broker(1, 1, 0))
    lines.add(2, partition="t-0", request={"fetchOffset": 1, "currentLeaderEpoch": 0})
    second = {"replica": 2, "fetchOffset": 1, "currentLeaderEpoch": 0, "error": None}
    lines.section(1, "fetchRecords", broker(1, 2, 1, 1), fetch=second, overlaps=[APPEND])
    lines.section(1, APPEND, broker(1, 2, 1, 1))
    lines.section(2, "processPartitionData", broker(1, 1, 1))
    trace = lines.trace(tmp_path)
    append = steps(trace).index("AppendAsLeader['b1', 1]")
    assert steps(trace)[append - 2 : append] == ["SendFetch['b2']", "HandleFetch['b1', 'b2']"]
    assert trace.events[append - 1]["state"]['log["b1"]'] == [0]


def test_a_fetch_is_told_before_the_one_that_was_answered_with_what_it_raised(
    tmp_path: Path,
) -> None:
    """Broker 2's fetch raises the high watermark; 3's, which waited, is answered amid it."""
    lines = Lines()
    lines.nodes["3"] = []
    lines.registered(1, leader=1, epoch=0, isr=[1, 2, 3], version=0)
    followers = {"2": {"logEndOffset": 0}, "3": {"logEndOffset": 1}}

    def leader(mark: int, second: int) -> dict[str, Any]:
        positions = {**followers, "2": {"logEndOffset": second}}
        return broker(1, 1, mark, 0, isr=[1, 2, 3], followers=positions)

    lines.section(1, "$anonfun$makeLeader$1", leader(0, 0))
    for node in (2, 3):
        lines.section(node, "$anonfun$makeFollower$1", broker(1, 1, 0))
        lines.request(node)
    began = lines.time
    waited = lines.fetch(1, 3, leader(1, 1), overlaps=["fetchRecords"])
    lines.fetch(1, 2, leader(1, 1), entered=began)
    lines.section(3, "processPartitionData", broker(1, 1, 1))
    trace = lines.trace(tmp_path)
    assert steps(trace) == [
        "SendFetch['b2']",
        "SendFetch['b3']",
        "HandleFetch['b1', 'b2']",
        "LoseMessage['b2']",
        "HandleFetch['b1', 'b3']",
        "ProcessFetchResponse['b3']",
    ]
    assert trace.events[2]["state"]['highWatermark["b1"]'] == 1
    assert trace.events[4]["time"] == waited / 1e9


def test_a_batch_of_several_records_is_told_with_the_remedy(tmp_path: Path, lines: Lines) -> None:
    lines.section(1, APPEND, broker(1, 3, 0, -1))
    with pytest.raises(DataError, match=r"2 records came at once.*`batch = 1`"):
        lines.trace(tmp_path)


def test_a_recording_that_does_not_show_the_creation(tmp_path: Path) -> None:
    made = Lines()
    made.registered(1, leader=1, epoch=3, isr=[1, 2], version=5)
    with pytest.raises(DataError, match="does not show the creation of t-0"):
        made.trace(tmp_path)


FIT = {"replica.fetch.max.bytes": "100", "num.io.threads": "1"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (FIT, ""),
        (FIT | {"replica.fetch.max.bytes": "1000"}, "`replica.fetch.max.bytes` was 1000"),
        ({"num.io.threads": "1"}, "`replica.fetch.max.bytes` was 1048576"),
        (FIT | {"num.io.threads": "3"}, "`num.io.threads` was 3"),
    ],
)
def test_partitions_of_brokers_whose_fetches_carry_more_are_left_out_with_the_remedy(
    tmp_path: Path, lines: Lines, settings: dict[str, str], told: str
) -> None:
    lines.write(tmp_path, {"faults": [], "settings": settings})
    assert told in unfit_settings(tmp_path)
    assert bool(told) == ("under [settings]" in unfit_settings(tmp_path))
    if told:
        with pytest.raises(UserError, match="Record with"):
            write_traces(tmp_path, tmp_path / "traces")
    else:
        assert [one.trace.name for one in write_traces(tmp_path, tmp_path / "traces")] == ["t-0"]


def test_of_one_broker_alone_nobody_fetches(tmp_path: Path, lines: Lines) -> None:
    lines.write(tmp_path, {"brokers": [1], "settings": {"num.io.threads": "3"}})
    assert unfit_settings(tmp_path) == ""
