"""Scenarios: what is read, what a seed draws, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.kafka.scenario import read_plan

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


def test_a_scenario_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_plan(tmp_path / "absent.toml", 1)
