"""From an incident's events to a verdict: judge, import, audit and replay say the same of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance.cli.main import load

pytestmark = pytest.mark.tlc

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial"
MODEL = "models/store.toml"
FIRST = {"step": 0, "state": {"answer": "none"}}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> dict[str, Any]:
        """Its JSON report."""
        found: dict[str, Any] = json.loads(self.out)
        return found


Command = Callable[[str], Ended]


@pytest.fixture
def kconform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command in this process, in the tutorial's folder."""
    ignored = shutil.ignore_patterns("__pycache__", "kconform-out")
    shutil.copytree(TUTORIAL, tmp_path / "here", ignore=ignored)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("KCONFORM_CACHE", str(tmp_path / "cache"))

    def run(command: str) -> Ended:
        name, *arguments = command.split()
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            load(name)(arguments, prog_name=f"kconform {name}")
        return Ended(int(ended.value.code or 0), *capfd.readouterr())

    return run


def put(key: str, step: int = 1, **state: object) -> dict[str, object]:
    action = {"name": "Put", "args": [key, "x"]}
    return {"step": step, "action": action, "state": state}


def write(*traces: list[dict[str, object]], name: str = "run.ndjson") -> None:
    lines = [
        json.dumps({"trace": f"run-{number}", **event}) + "\n"
        for number, events in enumerate(traces, 1)
        for event in events
    ]
    Path(name).write_text("".join(lines))


WRONG = {
    "another kind of value": {'version["a"]': "one"},
    "TRUE for 1": {'version["a"]': True},
    "another number": {'version["a"]': 2},
}


@pytest.mark.parametrize("seen", WRONG.values(), ids=WRONG)
def test_judge_import_audit_and_replay_agree_on_what_was_seen(
    kconform: Command, seen: dict[str, object]
) -> None:
    write([FIRST, put("a", **seen)])
    judged = kconform(f"judge run.ndjson --model {MODEL} --json")
    imported = kconform(f"import run.ndjson -o store --model {MODEL} --json")
    audited = kconform("audit store --json")
    (finding,) = audited.told["findings"]
    assert finding["reproduce"] == "kconform replay --store store --trace 0"
    replayed = kconform(finding["reproduce"].removeprefix("kconform "))
    assert [run.code for run in (judged, imported, audited, replayed)] == [1, 1, 1, 1]


def test_traces_with_one_cause_are_one_finding_with_file_and_line(kconform: Command) -> None:
    lies = [[FIRST, put(key, **{f'version["{key}"]': 3})] for key in "abababa"]
    write(*lies, [FIRST, put("a", answer="conflict")])
    run = kconform(f"judge run.ndjson --model {MODEL} --json")
    counts = {finding["title"]: finding["count"] for finding in run.told["findings"]}
    assert counts == {
        "Put: version cannot be as seen": 7,
        "Put: answer cannot be as seen": 1,
    }
    assert "(run.ndjson:1)" in run.told["findings"][0]["trace"]
    assert "run.ndjson:2" in run.told["findings"][0]["message"]


def test_an_import_that_fails_says_so_and_why(kconform: Command) -> None:
    write([FIRST, put("a", **{'version["a"]': 2})], [FIRST, {"step": 1, "action": "Steal"}])
    run = kconform(f"import run.ndjson -o store --model {MODEL}")
    assert run.code == 1
    assert "version.a  expected 1" in run.out
    assert "inconclusive: " in run.out
    assert "no action Steal" in run.out
    assert "run.ndjson:4" in run.out
    again = kconform(f"import run.ndjson -o store --model {MODEL}")
    assert (again.code, "--force" in again.err) == (2, True)


ANYWHERE = """schema = 1
[silent]
actions = ["Put"]
steps = 1
[start]
at = "any"
values = { answer = '"none"' }
invariants = ["TypeOK", "EveryWriteHasItsVersion"]
[constants]
Versions = '0..9'
"""


@pytest.mark.parametrize("master", ["", pytest.param("--master local[1]", marks=pytest.mark.spark)])
def test_a_trace_from_the_middle_passes_wherever_it_is_judged(
    kconform: Command, master: str
) -> None:
    """Neither Init nor the model's own constants are asked of it later."""
    write([{"state": {'version["a"]': 6}}, {"state": {'version["a"]': 7}}])
    Path("mapping.toml").write_text(ANYWHERE)
    imported = kconform(f"import run.ndjson -o store --model {MODEL} --mapping mapping.toml")
    audited = kconform(f"audit store {master}")
    replayed = kconform("replay --store store --trace 0")
    assert [imported.code, audited.code, replayed.code] == [0, 0, 0]
    assert "6 -> 7" in replayed.out
    refereed = kconform("audit store --referee 1")
    assert (refereed.code, "without --referee" in refereed.err) == (2, True)


def test_a_step_that_is_none_is_found_in_a_trace_from_the_middle(kconform: Command) -> None:
    write([{"state": {'version["a"]': 6}}, {"action": "Put", "state": {'version["a"]': 4}}])
    Path("mapping.toml").write_text(ANYWHERE)
    options = f"--model {MODEL} --mapping mapping.toml"
    imported = kconform(f"import run.ndjson -o store {options}")
    audited, replayed = kconform("audit store"), kconform("replay --store store --trace 0")
    assert [imported.code, audited.code, replayed.code] == [1, 1, 1]


COVERAGE = {
    "nothing asked": ("", 0, "1 of 3 kinds of action taken"),
    "a share that is reached": ("actions = 0.3", 0, "1 of 3 kinds of action taken"),
    "a share that is missed": ("actions = 0.5", 3, "never CompareAndSet, Remove"),
    "an action that is taken": ('taken = ["Put"]', 0, "1 of 3"),
    "an action that is missed": ('taken = ["Put", "Remove"]', 3, "less than the mapping asks for"),
    "an action that is none": ('taken = ["Stael"]', 2, "which is no action of the model's"),
}


@pytest.mark.parametrize("case", COVERAGE)
def test_coverage_is_told_and_its_thresholds_are_the_mappings(kconform: Command, case: str) -> None:
    asked, code, told = COVERAGE[case]
    write([FIRST, put("a"), put("b", step=2)])
    Path("mapping.toml").write_text(f"schema = 1\n[coverage]\n{asked}\n")
    run = kconform(f"judge run.ndjson --model {MODEL} --mapping mapping.toml")
    assert run.code == code
    assert told in run.out + run.err


def test_the_page_shows_what_explains_the_trace_and_where_it_ends(kconform: Command) -> None:
    hidden = {"action": "Remove", "state": {'version["a"]': 2}}
    write([hidden, {"action": "Remove"}, {"state": {'version["a"]': 9}}])
    mapping = '[silent]\nactions = ["Put"]\nsteps = 1\n'
    Path("mapping.toml").write_text(f"schema = 1\n{mapping}")
    options = f"--model {MODEL} --mapping mapping.toml --report told"
    run = kconform(f"judge run.ndjson {options} --json")
    assert run.code == 1
    page = Path("told/report.html").read_text()
    assert "(not seen)" in page
    assert "<svg" in page
    (finding,) = run.told["findings"]
    assert any("(not seen)" in line for line in finding["story"])


def test_a_formula_without_a_value_is_told_once_and_with_its_trace(kconform: Command) -> None:
    spec, model = Path("models/Store.tla"), Path(MODEL)
    odd = 'Odd == answer = "none" \\/ version[answer] = 0\n'
    spec.write_text(spec.read_text().replace("\n=====", f"\n{odd}\n=====", 1))
    model.write_text(model.read_text().replace('"TypeOK"', '"Odd", "TypeOK"'))
    cas = {"name": "CompareAndSet", "args": ["a", 0, "x"]}
    write([FIRST, {"step": 1, "action": cas}])
    judged = kconform(f"judge run.ndjson --model {MODEL}")
    assert judged.code == 3
    assert judged.out.count("has no value") == 1
    assert "run-1" in judged.out
    assert kconform(f"import run.ndjson -o store --model {MODEL}").code == 3
    audited = kconform("audit store")
    assert audited.code == 3
    told = [line for line in audited.out.splitlines() if "inconclusive: " in line]
    assert len(told) == 1
    assert "trace 0" in told[0]


def test_a_store_is_not_audited_by_another_specification(kconform: Command) -> None:
    write([FIRST, put("a")])
    assert kconform(f"import run.ndjson -o store --model {MODEL}").code == 0
    audited = kconform("audit store --model group/dynamic-2m")
    assert audited.code == 2
    told = " ".join(audited.err.split())
    assert "store holds traces of Store, and group/dynamic-2m is a model of Group" in told
    assert "Name a model of Store with --model." in told
