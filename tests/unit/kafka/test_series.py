"""A series: what agents and tap wrote during a run becomes that run's own recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.errors import DataError
from conformance.kafka.scenario import Scenario, plan_of, run_of
from conformance.kafka.series import Cuts
from conformance.stages.recorded import recordings, spoiled

PLAN = plan_of(
    """
[[topic]]
name = "t"
[[client]]
name = "m1"
role = "consumer"
topic = "t"
group = "g"
""",
    1,
)


def run(number: int) -> Scenario:
    return run_of(PLAN, number, 1).scenario


def agent(folder: Path, *lines: dict[str, str]) -> None:
    (folder / "node1").mkdir(exist_ok=True)
    with (folder / "node1" / "agent.ndjson").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def lines_of(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_run_has_the_lines_about_its_own_topics_and_groups(tmp_path: Path) -> None:
    cuts = Cuts(tmp_path)
    (tmp_path / "tap.ndjson").write_text('{"api": "Fetch"}\n', "utf-8")
    agent(tmp_path, {"partition": "t-r1-0"}, {"group": "g-r1"}, {"registration": "t-r1-0"})
    cuts.move(tmp_path / "r1", run(1))
    (tmp_path / "tap.ndjson").open("a", encoding="utf-8").write('{"api": "JoinGroup"}\n')
    own = [{"registration": "t-r2-0"}, {"problem": "what could not be hooked"}]
    agent(tmp_path, {"registration": "t-r1-0"}, {"group": "g-r1"}, *own)
    cuts.move(tmp_path / "r2", run(2))
    assert len(lines_of(tmp_path / "r1" / "node1" / "agent.ndjson")) == 3
    assert lines_of(tmp_path / "r2" / "node1" / "agent.ndjson") == own
    assert lines_of(tmp_path / "r2" / "tap.ndjson") == [{"api": "JoinGroup"}]


def test_a_line_that_is_being_written_is_the_next_runs(tmp_path: Path) -> None:
    cuts = Cuts(tmp_path)
    agent(tmp_path, {"group": "g-r1"})
    file = tmp_path / "node1" / "agent.ndjson"
    with file.open("a", encoding="utf-8") as open_file:
        open_file.write('{"group": ')
    cuts.move(tmp_path / "r1", run(1))
    with file.open("a", encoding="utf-8") as open_file:
        open_file.write('"g-r2"}\n')
    cuts.move(tmp_path / "r2", run(2))
    assert lines_of(tmp_path / "r1" / "node1" / "agent.ndjson") == [{"group": "g-r1"}]
    assert lines_of(tmp_path / "r2" / "node1" / "agent.ndjson") == [{"group": "g-r2"}]


def test_a_line_that_a_killed_process_did_not_finish_is_nobodys(tmp_path: Path) -> None:
    cuts = Cuts(tmp_path)
    agent(tmp_path, {"group": "g-r1"})
    with (tmp_path / "node1" / "agent.ndjson").open("a", encoding="utf-8") as file:
        file.write('{"group": "g-r1", "state{"group": "g-r1"}\n')
    cuts.move(tmp_path / "r1", run(1))
    assert lines_of(tmp_path / "r1" / "node1" / "agent.ndjson") == [{"group": "g-r1"}]


def test_the_recordings_of_a_series_and_which_of_them_are_spoiled(tmp_path: Path) -> None:
    for name, why in (("r1", ""), ("r2", "the machine was starved")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recording.json").write_text(json.dumps({"spoiled": why}), "utf-8")
    assert recordings(tmp_path / "r1") == [tmp_path / "r1"]
    (tmp_path / "series.json").write_text(json.dumps({"runs": {"r1": "", "r2": "x"}}), "utf-8")
    assert recordings(tmp_path) == [tmp_path / "r1", tmp_path / "r2"]
    assert [bool(spoiled(one)) for one in recordings(tmp_path)] == [False, True]
    (tmp_path / "series.json").write_text("{", "utf-8")
    with pytest.raises(DataError, match="is no part of a recording"):
        recordings(tmp_path)
