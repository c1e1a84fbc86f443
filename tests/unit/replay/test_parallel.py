"""Jobs in processes of their own, while their caller does something else."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.events import OWN_PROCESS, Emit, Progress
from conformance.replay.parallel import Crew, begun, side_by_side


@dataclass(frozen=True)
class Waiting:
    """Begins, and ends when its file is there; says in which process."""

    until: Path
    weight: int = 1

    def run(self, emit: Emit) -> tuple[str, int]:
        self.until.with_suffix(".begun").touch()
        while not self.until.exists():
            emit(Progress("waiting", 0))
            time.sleep(0.01)
        return self.until.name, os.getpid()


def waits(folder: Path, *names: str) -> list[Waiting]:
    return [Waiting(folder / name, len(names) - number) for number, name in enumerate(names)]


def test_what_ended_is_told_without_waiting_for_the_rest(tmp_path: Path) -> None:
    with begun(waits(tmp_path, "first", "second"), 2) as running:
        assert not [*running.ended()]
        before = time.monotonic()
        (tmp_path / "second").touch()
        told = []
        while not told:
            told = [*running.ended()]
        (tmp_path / "first").touch()
        rest = [*running.rest()]
    assert [(one.number, one.result[0]) for one in [*told, *rest]] == [(1, "second"), (0, "first")]
    assert before <= told[0].work.end <= rest[0].work.end <= time.monotonic()
    assert os.getpid() not in {told[0].result[1], rest[0].result[1]}


def test_leaving_stops_what_still_runs(tmp_path: Path) -> None:
    jobs = waits(tmp_path, "first", "second", "third")
    with begun(jobs, 2):
        while not (tmp_path / "second.begun").exists():
            time.sleep(0.01)
    # Their files are not there: had it waited for their ends, it would wait still.
    assert not any(job.until.exists() for job in jobs)


@pytest.mark.parametrize(("processes", "jobs"), [(1, ("a", "b")), (2, ("a",))])
def test_with_one_at_a_time_the_caller_does_it_when_it_asks(
    tmp_path: Path, processes: int, jobs: tuple[str, ...]
) -> None:
    for name in jobs:
        (tmp_path / name).touch()
    with begun(waits(tmp_path, *jobs), processes) as running:
        assert not [*running.ended()]
        assert not any(tmp_path.glob("*.begun"))
        assert [one.result for one in running.rest()] == [(name, os.getpid()) for name in jobs]


@pytest.mark.parametrize("processes", [1, 2])
def test_who_stops_asking_may_ask_for_the_others_later(tmp_path: Path, processes: int) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    with begun(waits(tmp_path, *"abc"), processes) as running:
        first = next(iter(running.rest()))
        others = [*running.rest()]
    assert sorted(one.result[0] for one in [first, *others]) == ["a", "b", "c"]


def test_the_heaviest_is_begun_first(tmp_path: Path) -> None:
    (tmp_path / "light").touch()
    (tmp_path / "heavy").touch()
    jobs = [Waiting(tmp_path / "light", 1), Waiting(tmp_path / "heavy", 9)]
    assert [number for number, _ in side_by_side(jobs, 1)] == [1, 0]


def test_a_crew_loads_while_its_caller_still_makes_the_jobs(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    with Crew(2, ("json.tool",)) as crew:
        with begun(waits(tmp_path, *"ab"), 2, crew) as running:
            first = [one.result for one in running.rest()]
        with begun(waits(tmp_path, *"ac"), 2, crew) as running:
            second = [one.result for one in running.rest()]
    assert sorted(name for name, _ in (*first, *second)) == ["a", "a", "b", "c"]
    assert os.getpid() not in {process for _, process in (*first, *second)}


def test_each_process_of_a_crew_is_a_worker_of_its_own(tmp_path: Path) -> None:
    with begun(waits(tmp_path, *"ab"), 2) as running:
        while len([*tmp_path.glob("*.begun")]) < 2:
            time.sleep(0.01)
        for name in "ab":
            (tmp_path / name).touch()
        ended = [*running.rest()]
    assert {one.work.worker for one in ended} == {"process 1", "process 2"}
    assert len({one.result[1] for one in ended}) == 2
    assert max(one.work.start for one in ended) < min(one.work.end for one in ended)


def test_what_the_caller_does_itself_is_its_own_work(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with begun(waits(tmp_path, "a"), 2) as running:
        (only,) = running.rest()
    assert only.work.worker == OWN_PROCESS
