"""The first hour of somebody else: a module of his own, an adapter, and no manifest yet."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.cli.main import run
from conformance.stages.skeleton import VALUES, python_text
from conformance.tla import Action, Fn, ModelValue, make_function, parse_value

pytestmark = pytest.mark.tlc

DOCS = Path(__file__).resolve().parents[2] / "docs"
MODULE = r"""---- MODULE Lock ----
EXTENDS Naturals
CONSTANTS Nodes, MaxToken, NoOwner
VARIABLES owner, token
Init == owner = NoOwner /\ token = [n \in Nodes |-> 0]
Acquire(n) == owner = NoOwner /\ token[n] < MaxToken
           /\ owner' = n /\ token' = [token EXCEPT ![n] = @ + 1]
Release == owner # NoOwner /\ owner' = NoOwner /\ UNCHANGED token
Next == (\E n \in Nodes : Acquire(n)) \/ Release
TypeOK == owner \in Nodes \cup {NoOwner}
Never == token = [n \in Nodes |-> 0]
====
"""
CONFIG = """INIT Init
NEXT Next
CONSTANTS Nodes = {n1, n2}
 MaxToken = 2
 NoOwner = NoOwner
INVARIANT TypeOK
CHECK_DEADLOCK FALSE
"""
SETTINGS = "jobs = 1\n[tiers.ci]\ntraces = 50\nexamples = 20\n"
FILLED = {
    'gap("start the implementation")': (
        'self.owner, self.token = ModelValue("NoOwner"), dict.fromkeys(self.constants["Nodes"], 0)'
    ),
    'gap("take Acquire(n)")': "self.owner = n; self.token[n] += 1",
    'gap("take Release")': 'self.owner = ModelValue("NoOwner")',
    'gap("observe owner")': "self.owner",
    'gap("observe token")': "Fn(dict(self.token))",
}
"""What the skeleton asks for, and how it is filled in."""

Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """A folder with a module and its configuration, as the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KCONFORM_CACHE", str(cache))
    (tmp_path / "Lock.tla").write_text(MODULE)
    (tmp_path / "Lock.cfg").write_text(CONFIG)
    (tmp_path / "kconform.toml").write_text(SETTINGS)
    return tmp_path


@pytest.fixture
def kconform(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command in this process: its exit code, and what it said on both streams."""

    def call(command: str) -> tuple[int, str]:
        monkeypatch.delitem(sys.modules, "lock_adapter", raising=False)
        monkeypatch.setattr(sys, "path", list(sys.path))
        monkeypatch.setattr(sys, "argv", ["kconform", *command.split()])
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        out, err = capfd.readouterr()
        assert "Traceback (most recent call last)" not in err, err
        assert isinstance(ended.value.code, int)
        return int(ended.value.code), out + err

    return call


def fill_in(adapter: Path, *, but: str = "") -> None:
    """Fill the skeleton's gaps in, all of them or all but one."""
    text = adapter.read_text()
    for gap, filling in FILLED.items():
        assert gap in text
        if gap != but:
            text = text.replace(gap, filling)
    adapter.write_text(text)


def stages(folder: Path) -> dict[str, str]:
    report = json.loads((folder / "kconform-out" / "report.json").read_text())
    return {name: stage["verdict"] for name, stage in report["stages"].items()}


ALL = ("check", "suite", "replay", "explore", "record", "audit", "coverage")


def test_a_skeleton_runs_fails_and_passes_once_it_is_filled_in(
    here: Path, kconform: Command
) -> None:
    code, told = kconform("init Lock.tla")
    assert (code, "2 actions, 2 variables" in told) == (0, True)
    code, told = kconform("gate lock.toml")
    assert code == 1
    assert "the adapter does not say yet how to start the implementation" in told
    fill_in(here / "lock_adapter.py")
    code, told = kconform("gate lock.toml")
    assert code == 0, told
    assert "write `distinct_states = 21` below `[expect]` of lock.toml" in told
    assert stages(here) == dict.fromkeys(ALL, "pass")


@pytest.mark.parametrize("gap", FILLED)
def test_no_gap_of_a_skeleton_passes(here: Path, kconform: Command, gap: str) -> None:
    kconform("init Lock.tla")
    fill_in(here / "lock_adapter.py", but=gap)
    code, told = kconform("replay lock.toml")
    assert code == 1
    assert f"NotImplementedError: the adapter does not say yet how to {gap[5:-2]}" in told


@pytest.mark.parametrize("there", ["lock.toml", "lock_adapter.py"])
def test_nothing_is_overwritten_and_nothing_half_written(
    here: Path, kconform: Command, there: str
) -> None:
    (here / there).write_text("mine")
    code, told = kconform("init Lock.tla")
    assert (code, there in told) == (2, True)
    written = {path.name for path in here.glob("lock*")}
    assert written == {there}
    assert (here / there).read_text() == "mine"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("init Lock.tla --config Other.cfg", "There is no configuration Other.cfg"),
        ("init Other.tla", "There is no TLA+ module Other.tla"),
        ("init Lock.tla --config Merging.cfg", "merge states"),
        ("init Lock.tla --config Empty.cfg", "names no behaviours"),
    ],
)
def test_what_gives_no_suite_gives_no_skeleton(
    here: Path, kconform: Command, command: str, told: str
) -> None:
    (here / "Empty.cfg").write_text("CONSTANTS Nodes = {n1}\n MaxToken = 1\n NoOwner = 0\n")
    (here / "Merging.cfg").write_text(f"{CONFIG}VIEW token\n")
    code, text = kconform(command)
    assert (code, told in text) == (2, True), text
    assert not [*here.glob("lock*")]


def test_the_gate_drives_a_module_without_a_manifest(here: Path, kconform: Command) -> None:
    kconform("init Lock.tla")
    fill_in(here / "lock_adapter.py")
    (here / "Lock.cfg").rename(here / "Other.cfg")
    code, told = kconform("gate Lock.tla --config Other.cfg --system lock_adapter:create")
    assert code == 0, told
    assert stages(here) == dict.fromkeys(ALL, "pass")
    assert not (here / ".hypothesis").exists()


def test_a_model_that_does_not_hold_is_not_driven_and_the_others_are(
    here: Path, kconform: Command
) -> None:
    kconform("init Lock.tla")
    fill_in(here / "lock_adapter.py")
    (here / "Bad.cfg").write_text(CONFIG.replace("TypeOK", "Never"))
    bad = "gate Lock.tla:Bad.cfg --system lock_adapter:create"
    code, told = kconform(bad)
    assert code == 1
    assert "Never is violated" in told
    assert "no model that feeds a suite holds" in told
    code, told = kconform("gate Lock.tla:Bad.cfg lock.toml --system lock_adapter:create")
    assert code == 1
    assert stages(here) == {**dict.fromkeys(ALL, "pass"), "check": "fail"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("feeds_suite = true\n", ""), "set `feeds_suite = true` in lock.toml"),
        (('system = "lock_adapter:create"\n', ""), "it names no system"),
    ],
)
def test_a_gate_that_drives_nothing_says_which_key_would_change_that(
    here: Path, kconform: Command, change: tuple[str, str], told: str
) -> None:
    kconform("init Lock.tla")
    manifest = here / "lock.toml"
    manifest.write_text(manifest.read_text().replace(*change))
    code, text = kconform("gate lock.toml")
    assert (code, told in text) == (3, True), text


def test_a_system_that_is_not_known_is_no_silent_gap(here: Path, kconform: Command) -> None:
    kconform("init Lock.tla")
    manifest = here / "lock.toml"
    manifest.write_text(manifest.read_text().replace("lock_adapter:create", "look"))
    code, text = kconform("gate lock.toml")
    assert (code, "No system is called 'look'" in text) == (2, True), text


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("check", "1 model; name some to check fewer, --list lists them"),
        ("gate", "1 model, 1 of them with a suite to drive"),
    ],
)
def test_who_names_nothing_is_told_how_much_is_started(
    here: Path, kconform: Command, command: str, told: str
) -> None:
    kconform("init Lock.tla")
    fill_in(here / "lock_adapter.py")
    (here / "kconform.toml").write_text(f'{SETTINGS}models = ["lock.toml"]\n')
    assert told in kconform(command)[1]
    assert told not in kconform(f"{command} lock.toml")[1]


def test_strings_for_model_values_are_explained(here: Path, kconform: Command) -> None:
    kconform("init Lock.tla")
    adapter = here / "lock_adapter.py"
    fill_in(adapter)
    adapter.write_text(
        adapter.read_text().replace('"owner": self.owner', '"owner": str(self.owner)')
    )
    code, told = kconform("replay lock.toml")
    assert code == 1
    assert "NoOwner is a model value of the spec" in told


WITHOUT_SPARK = """
import sys
from importlib.abc import MetaPathFinder
class Without(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pandas", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
from conformance.cli.entry import run
run()
"""


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("gate lock.toml", 0, "PASS"),
        ("record lock.toml -o st --traces 10", 0, "PASS"),
        ("record lock.toml -o st --traces 10 --master local[1]", 2, "kafka-conformance[spark]"),
    ],
)
def test_few_traces_need_no_spark(
    here: Path, kconform: Command, command: str, code: int, told: str
) -> None:
    kconform("init Lock.tla")
    fill_in(here / "lock_adapter.py")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, *command.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_table_of_values_is_the_tutorials_and_true() -> None:
    tutorial = (DOCS / "tutorial.md").read_text()
    for tla, python in VALUES:
        assert f"| {tla} | {python} |".replace("|->", "\\|->") in _plain(tutorial), tla
    values = {
        '"a"': "a",
        "{1, 2}": frozenset({1, 2}),
        "<<1, 2>>": (1, 2),
        "[a |-> 1]": Fn({"a": 1}),
        "(n1 :> 0)": Fn({ModelValue("n1"): 0}),
        "<<>>": (),
        "TRUE": True,
    }
    for text, value in values.items():
        assert parse_value(text) == value
        assert eval(python_text(value), {"Fn": Fn, "ModelValue": ModelValue}) == value
    assert make_function({1: "x", 2: "y"}) == ("x", "y")
    assert Action("Acquire", (ModelValue("n1"),)) == ("Acquire", (ModelValue("n1"),))
    assert str(ModelValue("n1")) == "n1"


def _plain(text: str) -> str:
    return re.sub(r"`", "", text)
