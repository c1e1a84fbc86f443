"""A client of a workload against a library that answers as a table says: what it logs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.history.lines import read_block
from conformance.workload import client as module
from conformance.workload.client import ClientJob, WorkloadClient
from conformance.workload.log import HistoryLog
from conformance.workload.plan import (
    MAX_MESSAGE_BYTES,
    ClientRole,
    InstancePlan,
    PlannedAction,
    PlannedRecord,
    PlannedStep,
    ProducerKind,
)
from conformance.workload.ports import (
    ClientProblem,
    ConsumerListener,
    ConsumerPort,
    DeliveryReport,
    Partition,
    PolledRecord,
)

RECORDS = (PlannedRecord("t", 0, "a"), PlannedRecord("t", 1, "b"))
OK = (DeliveryReport(True, 5), DeliveryReport(True, 6))


class ScriptedProducer:
    """Answers what the script says; a step named in `fails` raises."""

    def __init__(self, answers: Sequence[DeliveryReport] = OK, fails: Sequence[str] = ()) -> None:
        self._answers, self._fails = answers, fails
        self.calls: list[str] = []

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self._fails:
            raise ClientProblem(f"{name} failed")

    def rest(self, seconds: float) -> None: ...

    def close(self) -> None:
        self._call("close")

    def send(self, records: Sequence[PlannedRecord]) -> list[DeliveryReport]:
        self._call("send")
        return list(self._answers[: len(records)])

    def begin(self) -> None:
        self._call("begin")

    def commit(self) -> None:
        self._call("commit")

    def abort(self) -> None:
        self._call("abort")

    def send_offsets(self, positions: Mapping[Partition, int], consumer: ConsumerPort) -> None:
        self._call("send_offsets")


class ScriptedConsumer:
    """Each poll does the next thing of the script: records, or an assignment."""

    def __init__(self, *script: Sequence[PolledRecord] | Sequence[Partition]) -> None:
        self._script = list(script)
        self.fails = False
        self.in_commit: Any = None

    def rest(self, seconds: float) -> None: ...

    def close(self) -> None: ...

    def subscribe(self, topics: Sequence[str], listener: ConsumerListener) -> None: ...

    def assign(self, partitions: Sequence[Partition]) -> None: ...

    def poll(self, most: int, seconds: float, listener: ConsumerListener) -> None:
        if not self._script:
            return
        item = self._script.pop(0)
        if item and isinstance(item[0], PolledRecord):
            listener.polled([r for r in item if isinstance(r, PolledRecord)])
        else:
            listener.assigned([p for p in item if isinstance(p, tuple)])

    def commit(self, positions: Mapping[Partition, int]) -> None:
        if self.in_commit is not None:
            self.in_commit()
        if self.fails:
            raise ClientProblem("not now")

    def fetch(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {("t", 0): 4}

    def seek(self, partition: Partition, offset: int) -> None: ...


def logged(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    role: ClientRole,
    *steps: PlannedStep,
    producer: ScriptedProducer | None = None,
    consumer: ScriptedConsumer | None = None,
) -> list[dict[str, Any]]:
    """The lines of a client that takes these steps, without those of its end."""
    monkeypatch.setattr(module, "producer_of", lambda _: lambda *_: producer)
    monkeypatch.setattr(module, "consumer_of", lambda _: lambda *_: consumer)
    plan = InstancePlan(
        process="p.1",
        client="p",
        role=role,
        kind=ProducerKind.TRANSACTIONAL,
        library="scripted",
        starts=0.0,
        dies=None,
        steps=steps,
        topics=("t",),
        partitions=2,
        group="g",
        output="out",
    )
    path = folder / "p.1.ndjson"
    with HistoryLog(path, "p.1") as log:
        WorkloadClient(ClientJob("", plan, str(path), {}), log, False).run()
    data = path.read_bytes()
    assert read_block(data, 1, cut=False).bad == ()
    lines = [json.loads(line) for line in data.splitlines()]
    return [line for line in lines if line["f"] != "close"]


def said(line: Mapping[str, Any], *names: str) -> list[Any]:
    return [line.get(name) for name in names]


def test_only_what_a_broker_must_refuse_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = PlannedRecord("t", 0, "a", key_bytes=MAX_MESSAGE_BYTES + 1)
    refused = DeliveryReport(False, error="too large", refused=True)
    lines = logged(
        tmp_path,
        monkeypatch,
        ClientRole.PRODUCER,
        PlannedStep(0.0, PlannedAction.SEND, (large, PlannedRecord("t", 1, "b"))),
        producer=ScriptedProducer((refused, refused)),
    )
    assert [said(line, "type", "error") for line in lines] == [
        ["invoke", None],
        ["fail", "too large"],
        ["info", "too large"],  # a small record: the error of an earlier one
    ]
    assert [line["sent"][0]["value"] for line in lines[1:]] == ["a", "b"]


def test_what_was_acknowledged_and_what_was_not_are_two_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = ScriptedProducer((DeliveryReport(True, 5), DeliveryReport(False, error="timed out")))
    lines = logged(
        tmp_path,
        monkeypatch,
        ClientRole.PRODUCER,
        PlannedStep(0.0, PlannedAction.SEND, RECORDS),
        producer=producer,
    )
    begun, ok, unknown = lines
    assert said(begun, "type", "f") == ["invoke", "send"]
    assert [record["value"] for record in begun["sent"]] == ["a", "b"]
    assert said(ok, "type", "sent") == ["ok", [{"key": "t-0", "value": "a", "offset": 5}]]
    assert said(unknown, "type", "sent", "error") == [
        "info",
        [{"key": "t-1", "value": "b"}],
        "timed out",
    ]
    assert begun["time"] >= ok["start"] == unknown["start"]


@pytest.mark.parametrize(
    ("commits", "fails", "answers", "outcome", "calls"),
    [
        (True, (), OK, "ok", ["begin", "send", "commit"]),
        (False, (), OK, "fail", ["begin", "send", "abort"]),
        (True, ("commit",), OK, "info", ["begin", "send", "commit", "abort"]),
        (True, ("commit", "abort"), OK, "info", ["begin", "send", "commit", "abort"]),
        (False, ("abort",), OK, "info", ["begin", "send", "abort"]),
        (True, ("send",), OK, "fail", ["begin", "send", "abort"]),
        (
            True,
            (),
            (DeliveryReport(False), DeliveryReport(True, 6)),
            "fail",
            ["begin", "send", "abort"],
        ),
    ],
)
def test_a_transaction_failed_for_certain_only_if_no_commit_was_tried(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commits: bool,
    fails: Sequence[str],
    answers: Sequence[DeliveryReport],
    outcome: str,
    calls: list[str],
) -> None:
    producer = ScriptedProducer(answers, fails)
    step = PlannedStep(0.0, PlannedAction.TRANSACTION, RECORDS, commits=commits)
    lines = logged(tmp_path, monkeypatch, ClientRole.TRANSACTIONS, step, producer=producer)
    assert [said(line, "type", "f") for line in lines] == [["invoke", "txn"], [outcome, "txn"]]
    assert producer.calls[: len(calls)] == calls


def test_a_producer_that_cannot_abort_is_replaced_by_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = PlannedStep(0.0, PlannedAction.TRANSACTION, RECORDS, commits=False)
    producer = ScriptedProducer(fails=("abort",))
    lines = logged(tmp_path, monkeypatch, ClientRole.TRANSACTIONS, step, step, producer=producer)
    assert [line["process"] for line in lines] == ["p.1", "p.1", "p.1.2", "p.1.2"]


READ = (PolledRecord("t", 0, 3, "x"), PolledRecord("t", 0, 5, "y"))


def test_a_transformation_says_what_it_read_sent_and_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = PlannedStep(0.0, PlannedAction.TRANSFORM, value="v", most=10)
    lines = logged(
        tmp_path,
        monkeypatch,
        ClientRole.TRANSFORMER,
        step,
        producer=ScriptedProducer(),
        consumer=ScriptedConsumer(READ),
    )
    done = lines[-1]
    assert said(done, "type", "f", "group") == ["ok", "txn", "g"]
    assert [record["value"] for record in done["polled"]] == ["x", "y"]
    assert [record["value"] for record in done["sent"]] == ["v-0", "v-1"]
    assert {record["key"] for record in done["sent"]} == {"out-0"}
    assert done["committed"] == [{"key": "t-0", "offset": 6}]


def test_what_an_aborted_transformation_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = PlannedStep(0.0, PlannedAction.TRANSFORM, value="v", most=10, commits=False)
    consumer = ScriptedConsumer(READ)
    lines = logged(
        tmp_path,
        monkeypatch,
        ClientRole.TRANSFORMER,
        step,
        producer=ScriptedProducer(),
        consumer=consumer,
    )
    assert said(lines[-1], "f", "moved") == ["seek", ["t-0"]]
    assert said(lines[-2], "type", "f") == ["fail", "txn"]


def test_a_commit_is_of_what_was_polled_since_the_assignment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll, commit = (
        PlannedStep(0.0, PlannedAction.POLL, most=5),
        PlannedStep(0.0, PlannedAction.COMMIT),
    )
    consumer = ScriptedConsumer([("t", 0)], READ, [("t", 1)])
    lines = logged(
        tmp_path,
        monkeypatch,
        ClientRole.MEMBER,
        *(poll, poll, commit, poll, commit, PlannedStep(0.0, PlannedAction.FETCH)),
        consumer=consumer,
    )
    assert [said(line, "type", "f") for line in lines] == [
        ["ok", "assign"],
        ["ok", "poll"],
        ["invoke", "commit"],
        ["ok", "commit"],
        ["ok", "assign"],
        ["ok", "fetch"],
    ]
    assert said(lines[3], "committed", "group") == [[{"key": "t-0", "offset": 6}], "g"]
    assert lines[5]["fetched"] == [{"key": "t-0", "offset": 4}]


def test_a_commit_without_an_answer_is_unknown_and_a_callback_amid_it_comes_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = ScriptedConsumer([("t", 0)], READ)
    consumer.fails = True
    clients: list[WorkloadClient] = []
    made = WorkloadClient.__init__

    def remembered(self: WorkloadClient, *arguments: Any) -> None:
        made(self, *arguments)
        clients.append(self)

    monkeypatch.setattr(WorkloadClient, "__init__", remembered)
    consumer.in_commit = lambda: clients[0].assigned([("t", 1)])
    poll = PlannedStep(0.0, PlannedAction.POLL, most=5)
    lines = logged(
        tmp_path,
        monkeypatch,
        ClientRole.MEMBER,
        poll,
        poll,
        PlannedStep(0.0, PlannedAction.COMMIT),
        consumer=consumer,
    )
    assert [said(line, "type", "f") for line in lines[2:]] == [
        ["invoke", "commit"],
        ["info", "commit"],
        ["ok", "assign"],
    ]
    times = [line["time"] for line in lines]
    assert times == sorted(times)


def test_the_closer_sends_until_all_is_acknowledged_and_no_value_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful(ScriptedProducer):
        def send(self, records: Sequence[PlannedRecord]) -> list[DeliveryReport]:
            self.calls.append("send")
            done = len(self.calls) > 2
            return [DeliveryReport(done, 9 if done else None)] * len(records)

    step = PlannedStep(0.0, PlannedAction.SEND, RECORDS[:1])
    lines = logged(tmp_path, monkeypatch, ClientRole.CLOSER, step, producer=Forgetful())
    ends = [(line["type"], line["sent"][0]["value"]) for line in lines if line["type"] != "invoke"]
    assert ends == [("info", "a"), ("info", "a-again"), ("ok", "a-again-again")]


def test_a_final_reader_reads_up_to_the_last_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = [PolledRecord("t", 0, 9, "end-t-0"), PolledRecord("t", 1, 4, "end-t-1")]
    consumer = ScriptedConsumer(READ, last[:1], last[1:], READ)
    drain = PlannedStep(0.0, PlannedAction.DRAIN, most=100)
    lines = logged(tmp_path, monkeypatch, ClientRole.FINAL_READER, drain, consumer=consumer)
    polls = [line for line in lines if line["f"] == "poll"]
    assert said(lines[0], "f", "assigned") == ["assign", ["t-0", "t-1"]]
    assert [record["value"] for line in polls for record in line["polled"]] == [
        "x",
        "y",
        "end-t-0",
        "end-t-1",
    ]
