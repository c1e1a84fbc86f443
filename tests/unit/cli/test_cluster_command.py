"""`kconform cluster run`: what a command's end says of the run, and the faults meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from conformance.cli.cluster import _faults, _verdict_of
from conformance.errors import UserError
from conformance.kafka.recording import ScenarioRun
from conformance.kafka.scenario import Faults, faults_plan
from conformance.verdict import Verdict


@pytest.mark.parametrize(
    ("code", "verdict"), [(0, Verdict.PASS), (1, Verdict.FAIL), (3, Verdict.INCONCLUSIVE)]
)
def test_the_exit_code_is_the_verdict(code: int, verdict: Verdict) -> None:
    assert _verdict_of(f"python -c 'raise SystemExit({code})'", "127.0.0.1:9") is verdict


def test_the_address_is_filled_in() -> None:
    command = (
        "python -c 'import sys; sys.exit(sys.argv[1] != \"wire:127.0.0.1:9\")' wire:{bootstrap}"
    )
    assert _verdict_of(command, "127.0.0.1:9") is Verdict.PASS


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python -c 'raise SystemExit(2)'", "ended with 2"),
        ("no-such-program-anywhere", "cannot be started"),
        ("echo {topic}", "cannot be filled in"),
        ("", "is empty"),
    ],
)
def test_what_says_nothing_of_the_brokers_is_a_mistake(command: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        _verdict_of(command, "127.0.0.1:9")


def test_something_is_done_as_long_as_the_command_runs() -> None:
    turns = 0

    def meanwhile(goes_on: Callable[[], bool]) -> None:
        nonlocal turns
        while goes_on():
            turns += 1
            time.sleep(0.01)

    command = "python -c 'import time; time.sleep(0.3)'"
    assert _verdict_of(command, "127.0.0.1:9", meanwhile) is Verdict.PASS
    assert turns > 1


class DisturbedNode:
    """A node that notes what is done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def kill(self) -> None:
        self.done.append("kill")

    def start(self) -> None:
        self.done.append("start")


class DisturbedCluster:
    """A cluster of one such node."""

    def __init__(self) -> None:
        self.nodes = {1: DisturbedNode()}


def test_faults_happen_are_undone_and_end_with_the_command() -> None:
    cluster: Any = DisturbedCluster()
    plan = faults_plan(1, 1, Faults(["kill"], every=0.4, seconds=0.05), 3600.0)
    run = ScenarioRun(plan, cluster, None, {}, lambda _: None)
    run.drive(lambda: len(cluster.nodes[1].done) < 4)
    assert cluster.nodes[1].done == ["kill", "start", "kill", "start"]
    assert run.happened == 2
    assert [line.partition(": ")[2] for line in run.lines()] == ["kill of broker 1"] * 2


def test_without_faults_none_is_drawn_and_a_wrong_one_is_refused() -> None:
    assert _faults(Faults([]), 3, 1).faults == ()
    assert _faults(Faults(["kill"], every=12.0), 3, 1).faults
    with pytest.raises(UserError, match="elect is no fault of a broker"):
        _faults(Faults(["elect"]), 3, 1)
