"""KIP-848 and transactions through the port of a real broker: Kafka 4.4.0 under their suites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.replay.engine import Driver, close, run_until_believed
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import spec_oracle
from conformance.systems.wire.address import parse_address
from conformance.systems.wire.admin import OFFSETS_TOPIC
from conformance.systems.wire.leadership import Leaders, move_leaders
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import Security
from conformance.tla import Action
from tests.kafka_needed import jars_or_skip

VERSION = "4.4.0"
PROPERTIES = {
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
"""Short sessions, and an assignment with each heartbeat (4.4.0 waits a second by default)."""
KNOWN = f"deviations=kafka-{VERSION}"
SEEN = (
    "commit-within-assignment-epoch",
    "empty-group-assigned",
    "join-always-accepted",
    "own-revocation-released",
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    jars = jars_or_skip(VERSION)
    folder = tmp_path_factory.mktemp("broker")
    with Cluster(jars, folder, ClusterSettings(properties=PROPERTIES)) as cluster:
        yield cluster.bootstrap


def replay(
    model: str, system: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    ended = CliRunner().invoke(app, ["replay", model, "--system", system])
    return ended.exit_code, ended.output


@pytest.mark.parametrize(
    ("model", "tests"), [("consumer/static-2m", 42), ("consumer/dynamic-2m", 168)]
)
def test_kafka_agrees_but_for_its_known_deviations(
    model: str, tests: int, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay(model, f"wire:{broker}?{KNOWN}", tmp_path, monkeypatch)
    assert f"{tests} tests passed, 0 failed, 0 inconclusive" in output
    for deviation in SEEN:
        assert f"{deviation} seen" in output
    assert code == 0, output


def test_without_them_a_deviation_is_a_finding(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay("consumer/leaves-2m", f"wire:{broker}", tmp_path, monkeypatch)
    assert code == 1, output
    assert "state not allowed" in output


def test_kafka_agrees_in_transactions(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay("transaction/port-v2", f"wire:{broker}", tmp_path, monkeypatch)
    assert " tests passed, 0 failed, 0 inconclusive" in output
    assert code == 0, output


TWO_OWNERS = """
    Join m1, SendHeartbeat m1, HandleHeartbeat m1, ReceiveAnswer m1,
    SendHeartbeat m1, LoseMessage m1, SendHeartbeat m1, Assign m1,
    Join m2, SendHeartbeat m2, HandleHeartbeat m2, HandleHeartbeat m1,
    ReceiveAnswer m2, SendHeartbeat m2, HandleHeartbeat m2, ReceiveAnswer m2, Assign m2
"""
"""m1 is given both partitions; while it takes them, a heartbeat fails, and the next one names what
it owned before: nothing. m2 joins, and gets what m1 is to give up while m1 still owns it."""


def test_after_a_failed_heartbeat_two_consumers_own_one_partition(broker: str) -> None:
    model = one_model("consumer/resent-exclusive-2m")
    bench = workbench(Context(), model, f"wire:{broker}?{KNOWN}", with_graph=False)
    oracle = spec_oracle(bench)
    actions = [Action(name, (who,)) for name, who in re.findall(r"(\w+) (m\d)", TWO_OWNERS)]
    system = bench.make_system()
    try:
        driver = Driver(system, oracle)
        result, _ = run_until_believed(driver, next(iter(oracle.initial_states())), actions)
        assert (result.divergence, result.disabled) == (None, "")
        exclusive = bench.prepared.spec.state_formula("OwnersAreExclusive")
        assert not any(map(exclusive, driver.candidates))
    finally:
        close(system)


def test_a_session_that_expires_is_waited_for(broker: str) -> None:
    bench = workbench(
        Context(),
        one_model("consumer/expiries-2m"),
        f"wire:{broker}?session=800&{KNOWN}",
        with_graph=False,
    )
    oracle = spec_oracle(bench)
    names = ("Join", "SendHeartbeat", "HandleHeartbeat", "ExpireSession")
    system = bench.make_system()
    try:
        driver = Driver(system, oracle)
        assert driver.in_real_time
        path = [Action(name, ("m2",)) for name in names]
        result, _ = run_until_believed(driver, next(iter(oracle.initial_states())), path)
        assert (result.divergence, result.disabled) == (None, "")
        assert result.steps == len(path)
    finally:
        close(system)


@pytest.fixture(scope="module")
def two_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = ClusterSettings(brokers=2, properties={"group.initial.rebalance.delay.ms": "150"})
    with Cluster(jars_or_skip(VERSION), tmp_path_factory.mktemp("two"), settings) as cluster:
        yield cluster.bootstrap.partition(",")[0]


MOVED = """
    SendJoinGroup m1, HandleJoinGroup m1, ExpireInitialDelay, ProcessJoinGroup m1,
    HandleSyncGroup m1, FailOver, ProcessSyncGroup m1
"""
"""A generation whose assignment is stored: the next coordinator has it."""


def test_kconform_moves_the_coordinator_by_itself(two_brokers: str) -> None:
    system = f"wire:{two_brokers}?initial-delay=150&fail-over=move&{KNOWN}"
    bench = workbench(Context(), one_model("group/fail-over-2m"), system, with_graph=False)
    oracle = spec_oracle(bench)
    path = [
        Action(name, (who,) if who else ()) for name, who in re.findall(r"(\w+)(?: (m\d))?", MOVED)
    ]
    driven, port = bench.make_system(), Port(parse_address(two_brokers), Security())
    try:
        port.find_coordinator("any group")  # the topic is made with it
        leaders = Leaders(port, OFFSETS_TOPIC)
        leaders.look(again=False)
        driver = Driver(driven, oracle)
        result, _ = run_until_believed(driver, next(iter(oracle.initial_states())), path)
        assert (result.divergence, result.disabled, result.steps) == (None, "", len(path))
        assert "the leader of __consumer_offsets-0 changed from broker" in leaders.changed()
    finally:
        port.close()
        close(driven)


def test_a_coordinator_that_moved_is_seen(two_brokers: str) -> None:
    port = Port(parse_address(two_brokers), Security())
    try:
        port.find_coordinator("any group")  # the topic is made with it
        leaders = Leaders(port, OFFSETS_TOPIC)
        leaders.look(again=False)
        assert leaders.changed() == ""
        move_leaders(port, OFFSETS_TOPIC)
        assert "the leader of __consumer_offsets-0 changed from broker" in leaders.changed()
    finally:
        port.close()
