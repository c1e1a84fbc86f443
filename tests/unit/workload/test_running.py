"""Clients that take their time, on a clock of the test's: which of them are a problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.workload import running
from conformance.workload.plan import (
    InstancePlan,
    WorkloadSettings,
    ending_plan,
    workload_plan,
)
from conformance.workload.ports import ANSWER_S
from conformance.workload.running import WorkloadPlace, run_workload

SETTINGS = WorkloadSettings(seed=7, seconds=10.0, topics=("w",), crash_every=0.0)


class SlowMachine:
    """A clock that goes on when somebody sleeps, and the clients of a workload on it."""

    def __init__(self, starting: float = 0.0, ending: float = 0.0) -> None:
        self.now, self._starting, self._ending = 0.0, starting, ending
        self.killed: list[str] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.05)

    def process(self, _command: object, output: Path) -> SlowClient:
        return SlowClient(self, output, self._starting, self._ending)


class SlowClient:
    """Writes its first line `starting` seconds after its start; ends `ending` seconds after it has
    nothing more to do: it is asked to stop, or it is one of those at the end."""

    def __init__(self, machine: SlowMachine, output: Path, starting: float, ending: float) -> None:
        self._machine, self._name = machine, output.stem
        self._log = output.parent.parent / f"{self._name}.ndjson"
        self._starts = machine.now + starting
        at_the_end = self._name.startswith(("closer", "final"))
        self._ends = self._starts + ending if at_the_end else float("inf")
        self._ending = ending

    def start(self) -> None: ...

    @property
    def exit_code(self) -> int | None:
        if self._machine.now >= self._starts:
            self._log.touch()
        return 0 if self._machine.now >= self._ends else None

    def ask_to_stop(self) -> None:
        self._ends = min(self._ends, max(self._starts, self._machine.now) + self._ending)

    def await_end(self, _seconds: float) -> None: ...

    def kill(self) -> None:
        self._machine.killed.append(self._name)


def problems_on(
    machine: SlowMachine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    monkeypatch.setattr(running, "time", machine)
    monkeypatch.setattr(running, "RecordedClientProcess", machine.process)
    monkeypatch.setattr(running, "prepared", lambda *_: {})
    place = WorkloadPlace("127.0.0.1:1", folder, None)
    return run_workload(SETTINGS, place, lambda _: None).problems


@pytest.mark.parametrize(
    "machine",
    [SlowMachine(), SlowMachine(starting=40.0), SlowMachine(starting=40.0, ending=5 * ANSWER_S)],
    ids=("quick", "slow-to-start", "transactions-take-their-time-outs"),
)
def test_a_client_that_takes_its_time_outs_is_no_problem(
    machine: SlowMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert problems_on(machine, tmp_path, monkeypatch) == ()
    assert machine.killed == []


def test_a_client_that_never_ends_is_killed_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = SlowMachine(ending=1_000.0)
    problems = problems_on(machine, tmp_path, monkeypatch)
    assert len(machine.killed) == len(problems) == len(everybody())
    assert all("did not end in time" in problem for problem in problems)


def everybody() -> tuple[InstancePlan, ...]:
    return (*workload_plan(SETTINGS), *ending_plan(SETTINGS))
