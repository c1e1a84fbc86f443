"""Groups that change their protocol, through the port of a real broker: Kafka 4.4.0."""

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
from conformance.tla import Action, State
from tests.breadth import every
from tests.kafka_needed import jars_or_skip

VERSION = "4.4.0"
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "10",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
    "group.consumer.assignors": "range",
}
QUERY = f"initial-delay=100&session=800&min-session=10&assignor=range&deviations=kafka-{VERSION}"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    jars = jars_or_skip(VERSION)
    folder = tmp_path_factory.mktemp("broker")
    with Cluster(jars, folder, ClusterSettings(properties=PROPERTIES)) as cluster:
        yield f"wire:{cluster.bootstrap}?{QUERY}"


def replay(
    model: str, system: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    ended = CliRunner().invoke(app, ["replay", model, "--system", system])
    return ended.exit_code, ended.output


def after(broker: str, model: str, steps: str) -> tuple[State, ...]:
    """The states in which the specification may be after these steps, with known deviations."""
    bench = workbench(Context(), one_model(model), broker, with_graph=False)
    oracle = spec_oracle(bench)
    path = [Action(name, (who,)) for name, who in re.findall(r"(\w+) (\w)", steps)]
    system = bench.make_system()
    try:
        driver = Driver(system, oracle)
        result, _ = run_until_believed(driver, next(iter(oracle.initial_states())), path)
        assert (result.divergence, result.disabled) == (None, "")
        assert result.steps == len(path)
        return driver.candidates
    finally:
        close(system)


@pytest.mark.parametrize(
    ("model", "tests"), every(2, [("mixed/eager-2m", 80), ("mixed/topics-3m", 97)])
)
def test_kafka_agrees_but_for_its_known_deviation(
    model: str, tests: int, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay(model, broker, tmp_path, monkeypatch)

    assert f"{tests} tests passed, 0 failed, 0 inconclusive" in output
    assert "9 of 10 variables compared" in output
    assert code == 0, output


def test_a_model_of_another_policy_needs_another_broker(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay("mixed/upgrade-3m", broker, tmp_path, monkeypatch)

    assert code == 2
    assert "group.consumer.migration.policy=upgrade" in " ".join(output.split())


@pytest.mark.parametrize(
    ("model", "steps"),
    [
        # c has not given it up when n gets it once more.
        ("mixed/moves-2m", "ConsumerJoin n, ConsumerLeave n, ConsumerJoin n"),
        # Nor when s takes the place of n, and the group does not rebalance.
        ("mixed/replaced-3m", "ConsumerJoin n, Crash n, ClassicJoin s, ClassicSync s"),
    ],
)
def test_two_consumers_own_one_partition_after_a_downgrade(
    model: str, steps: str, broker: str
) -> None:
    states = after(broker, model, steps)

    bench = workbench(Context(), one_model(model), broker, with_graph=False)
    nobody_owns_twice = bench.prepared.spec.state_formula("NobodyOwnsTwice")
    assert not any(map(nobody_owns_twice, states))


def test_a_session_that_expires_downgrades_the_group(broker: str) -> None:
    states = after(broker, "mixed/moves-2m", "ConsumerJoin n, Crash n, ExpireSession n")

    bench = workbench(Context(), one_model("mixed/moves-2m"), broker, with_graph=False)
    is_downgraded = bench.prepared.spec.state_formula("IsDowngraded")
    assert all(map(is_downgraded, states))
