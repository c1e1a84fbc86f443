"""Groups of KIP-848 at a broker's port: a full one, an interval, topics, regular expressions.

What a port shows must tell Kafka from a coordinator with a fault. So the same broker is judged by
the specification, and by models of it that must fail: there it departs.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.replay.engine import Driver, PathResult, close, run_until_believed
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import spec_oracle
from conformance.tla import Action, Value
from tests.kafka_needed import jars_or_skip

VERSION, OLDEST, FIRST_WITH_INTERVAL = "4.4.0", "4.0.0", "4.3.0"
PATHS = Path("conformance/systems/kafka/paths")
JOINED = "Join m1, SendHeartbeat m1, HandleHeartbeat m1, "
NEXT = "SendHeartbeat m1, HandleHeartbeat m1"
SECOND = "Join m2, SendHeartbeat m2, "
RESOLVED = f"{JOINED}RunResolution, WriteResolution, ReceiveAnswer m1, "


def action(text: str) -> Action:
    """`Resubscribe m1 a b`: the first argument is a name, the others a set of names."""
    name, *words = text.split()
    sets: tuple[Value, ...] = (frozenset(words[1:]),) if len(words) > 1 else ()
    return Action(name, (*words[:1], *sets))


def driven(model: str, steps: str, version: str = VERSION) -> tuple[PathResult, int]:
    """What came of the path at a broker of the release, and how many steps it has."""
    jars_or_skip(version)
    bench = workbench(Context(), one_model(model), f"broker-{version}", with_graph=False)
    oracle = spec_oracle(bench)
    path = [action(text) for text in re.split(r", *", steps)]
    system = bench.make_system()
    try:
        initial = next(iter(oracle.initial_states()))
        result, _ = run_until_believed(Driver(system, oracle), initial, path)
        return result, len(path)
    finally:
        close(system)


@pytest.mark.parametrize(
    ("model", "steps"),
    [
        ("consumer/full-2m", f"{JOINED}{SECOND}RefuseHeartbeat m2"),
        (
            "consumer/interval-2m",
            f"{JOINED}ReceiveAnswer m1, {SECOND}HandleHeartbeat m2, {NEXT}, "
            f"PassAssignmentInterval, ReceiveAnswer m1, {NEXT}",
        ),
        ("consumer/topics-1m", f"{JOINED}ReceiveAnswer m1, AddPartition a, {NEXT}"),
        (
            "consumer/topics-1m",
            f"{JOINED}ReceiveAnswer m1, DeleteTopic a, CreateTopic a2, {NEXT}",
        ),
        ("consumer/regex-names-1m", f"{RESOLVED}Resubscribe m1 a, {NEXT}"),
        ("consumer/subscriptions-2m", f"{JOINED}{SECOND}HandleHeartbeat m2"),
    ],
)
def test_a_broker_does_what_the_specification_says(model: str, steps: str) -> None:
    result, length = driven(model, steps)

    assert (result.divergence, result.disabled, result.not_driven) == (None, "", "")
    assert result.steps == length


@pytest.mark.parametrize(
    ("mutant", "steps"),
    [
        ("consumer/mutant-full-2m", f"{JOINED}{SECOND}HandleHeartbeat m2"),
        ("consumer/mutant-interval-ignored-2m", f"{JOINED}{SECOND}HandleHeartbeat m2"),
        ("consumer/mutant-no-refresh-1m", f"{JOINED}ReceiveAnswer m1, AddPartition a, {NEXT}"),
        ("consumer/mutant-regex-given-up-1m", f"{RESOLVED}Resubscribe m1 a, {NEXT}"),
        ("consumer/mutant-regex-same-group-1m", f"{JOINED}RunResolution, WriteResolution"),
    ],
)
def test_a_port_tells_it_from_a_coordinator_with_a_fault(mutant: str, steps: str) -> None:
    result, length = driven(mutant, steps)

    assert result.divergence is not None, "the fault is not seen at a port"
    assert (result.divergence.step, result.late) == (length, "")


@pytest.mark.parametrize(
    ("path", "version", "departs"),
    [
        ("kafka-20601", OLDEST, True),  # a full group refuses a static member that comes back
        ("kafka-20601", VERSION, False),
        ("kafka-19891", OLDEST, True),  # who gives up its regular expression keeps its target
        ("kafka-19891", VERSION, False),
        ("kafka-19431", OLDEST, True),  # who unsubscribes keeps its partitions
    ],
)
def test_a_port_shows_departures_of_releases(
    path: str, version: str, departs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars_or_skip(version)
    file = (PATHS / f"{path}.itf.json").resolve()
    monkeypatch.chdir(tmp_path)

    ended = CliRunner().invoke(app, ["replay", str(file), "--system", f"broker-{version}"])

    assert ended.exit_code == int(departs), ended.output
    assert ("FAILED as before" in ended.output) is departs


def test_who_joins_an_empty_group_of_4_3_waits_for_the_former_members_interval() -> None:
    model = "consumer/interval-leaves-2m"
    both = "Join m1, Join m2, SendHeartbeat m1, SendHeartbeat m2, HandleHeartbeat m1, "
    steps = f"{both}ReceiveAnswer m1, Leave m1, HandleLeave m1, HandleHeartbeat m2"

    newest, length = driven(model, steps)
    first, _ = driven(model, steps, FIRST_WITH_INTERVAL)
    waiting, _ = driven("consumer/mutant-interval-outlasts-2m", steps)

    assert (newest.divergence, newest.steps) == (None, length)
    assert (first.divergence, first.steps) == (None, length), "it is a row of its table"
    assert waiting.divergence is not None, "4.4.0 does not wait"
    assert waiting.divergence.step == length
