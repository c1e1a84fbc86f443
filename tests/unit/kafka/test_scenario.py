"""Scenarios: what is read, what a seed draws, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.kafka.scenario import (
    NODE_FAULTS,
    Faults,
    faults_plan,
    plan_of,
    read_plan,
    run_of,
)
from conformance.kafka.tapped import tapped

TEXT = """
brokers = 3
seconds = 60
[[topic]]
name = "t"
[[client]]
name = "p"
role = "producer"
topic = "t"
[[fault]]
at = 50
action = "kill"
node = "leader:t"
[random]
actions = ["pause", "kill", "elect", "kill-client"]
every = 10
"""


def scenario(folder: Path, text: str = TEXT) -> Path:
    path = folder / "scenario.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_seed_draws_the_same_faults(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    one, again, other = read_plan(path, 1), read_plan(path, 1), read_plan(path, 2)
    assert one == again
    assert one.faults != other.faults
    times = [fault.at for fault in one.faults]
    assert times == sorted(times)
    assert 50.0 in times
    assert len(times) > 4
    for fault in one.faults:
        assert fault.action != "kill-client" or fault.client == "p"
        assert fault.action != "elect" or fault.topic == "t"
        assert fault.action not in ("pause", "kill") or fault.node in (1, 2, 3, "leader:t")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('topic = "t"', 'topic = "u"', "topic 'u', which is not declared"),
        ('role = "producer"', 'role = "reader"', "producer or consumer"),
        ('role = "producer"', 'role = "consumer"', "needs a group"),
        ('role = "producer"', 'role = "producer"\nlibrary = "java"', "library is one of"),
        ('role = "producer"', 'role = "producer"\nacks = "2"', "acks is 0, 1 or all"),
        ('action = "kill"', 'action = "explode"', "no fault 'explode'"),
        ('action = "kill"', 'action = "kill-client"', "names client ''"),
        ("brokers = 3", "broker = 3", "unknown field"),
        ("brokers = 3", 'brokers = "3"', "cannot be read"),
        ("brokers = 3", "brokers = ", "cannot be read"),
        ("every = 10", "every = 0", "every must be positive"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        read_plan(scenario(tmp_path, TEXT.replace(old, new)), 1)


GROUPS = """
[[topic]]
name = "t"
[[client]]
name = "m1"
role = "consumer"
topic = "t"
group = "g"
instance = "i1"
[[fault]]
at = 1
action = "kill"
node = "coordinator:g"
[[fault]]
at = 2
action = "kill-client"
client = "m1"
[[fault]]
at = 3
action = "pause"
node = 2
[[fault]]
at = 4
action = "stop"
node = "controller"
"""


def test_each_run_of_a_series_has_names_and_faults_of_its_own() -> None:
    one, other = (run_of(plan_of(GROUPS, 1), number, 1) for number in (1, 2))
    (client,) = one.scenario.client
    assert (client.name, client.topic, client.group, client.instance) == (
        *("m1-r1", "t-r1", "g-r1", "i1-r1"),
    )
    assert [topic.name for topic in other.scenario.topic] == ["t-r2"]
    assert [fault.node or fault.client for fault in other.faults] == [
        *("coordinator:g-r2", "m1-r2", 2, "controller"),
    ]
    dynamic = run_of(plan_of(GROUPS.replace('instance = "i1"', ""), 1), 3, 1)
    assert dynamic.scenario.client[0].instance == ""


def test_each_run_of_a_series_draws_its_own_faults(tmp_path: Path) -> None:
    plan = read_plan(scenario(tmp_path), 1)
    drawn = [tuple(fault.at for fault in run_of(plan, 1, seed).faults) for seed in (1, 2)]
    assert drawn[0] != drawn[1]
    assert drawn[0] == tuple(fault.at for fault in plan.faults)


def test_a_scenario_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_plan(tmp_path / "absent.toml", 1)


def test_every_path_between_tapped_nodes_has_its_own_port() -> None:
    ends, links = tapped((1, 2, 3))
    listening = [link.listen for link in links]
    assert len(set(listening)) == len(links) == 3 + 3 + 3 + 9
    behind = {link.listen: link.port for link in links}
    for node in (1, 2, 3):
        assert behind[ends.advertised[node, "CLIENT"]] == ends.bound[node, "CLIENT"]
        assert behind[ends.advertised[node, "BROKER"]] == ends.bound[node, "BROKER"]
        assert behind[ends.advertised[node, "CONTROLLER"]] == ends.bound[node, "CONTROLLER"]
        for other in (1, 2, 3):
            assert behind[ends.voters[node, other]] == ends.bound[other, "CONTROLLER"]
    assert not set(listening) & set(ends.bound.values())


@pytest.mark.parametrize("name", ["groups", "replication"])
def test_the_scenarios_of_the_documentation_are_read(name: str) -> None:
    path = Path(__file__).resolve().parents[3] / "docs" / "scenarios" / f"{name}.toml"
    plan = read_plan(path, 1)
    assert plan.scenario.brokers == 3
    assert plan.faults


def test_a_seed_draws_faults_of_brokers_that_serve_others() -> None:
    faults = Faults(list(NODE_FAULTS), every=10.0, seconds=3.0)
    plan = faults_plan(3, 7, faults, 600.0)
    assert plan == faults_plan(3, 7, faults, 600.0)
    assert plan.faults != faults_plan(3, 8, faults, 600.0).faults
    assert {fault.action for fault in plan.faults} == set(NODE_FAULTS)
    assert {fault.node for fault in plan.faults} == {1, 2, 3}
    assert {fault.seconds for fault in plan.faults} == {3.0}


@pytest.mark.parametrize(
    "action",
    ["elect", "kill-client", "burn"],
)
def test_what_is_no_fault_of_a_broker_is_refused(action: str) -> None:
    with pytest.raises(UserError, match=f"{action} is no fault of a broker"):
        faults_plan(3, 1, Faults(["kill", action]), 600.0)
