"""Damaged input: every kind of file that kconform reads, damaged in every way, in every command.

    python -m tests.e2e.damage [--damage NAME] [--file NAME] [--all]

prints a table of what each command does with it: its exit code and the first line that it says.
A row that breaks a rule begins with `!`: a fault of kconform (exit code 4, a traceback), a command
that does not end, a pass from nothing, a good trace that was lost, a screen full of foreign text.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.commands import HUNG, Ended, in_fork

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"
MODEL = "models/store.toml"
LARGE = 50_000_000
MOST_SAID = 30_000
"""Characters that a command may say of damaged input."""


# ---- the files, undamaged ------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A kind of file, and the commands that read it.

    In the text `@NAME@` is a name within quotes (n) and `@NUMBER@` a whole number (1): places to
    damage. A file without text is made by kconform itself.
    """

    name: str
    commands: tuple[str, ...]
    text: str = ""
    form: str = ""
    """json, toml, tla, cfg or nothing of these: how its text is to be damaged."""
    optional: bool = False
    """Whether a command does without it, and an empty one says what none says."""
    repeated: tuple[tuple[str, str], ...] = ()
    """Edits that put a key twice where it may stand once."""


def _store(value: str, version: str, answer: str = "none") -> str:
    return (
        f'{{"value":{{"#map":[["a","{value}"],["b","absent"]]}},'
        f'"version":{{"#map":[["a",{version}],["b",0]]}},"answer":"{answer}"}}'
    )


_EVENTS = "".join(
    line + "\n"
    for line in (
        '{"trace":"good","step":0,"state":' + _store("absent", "0") + "}",
        '{"trace":"good","step":1,"action":{"name":"Put","args":["a","x"]},"state":'
        + _store("x", "1")
        + "}",
        '{"trace":"bad","step":0,"state":' + _store("absent", "0") + "}",
        '{"trace":"bad","step":1,"action":{"name":"Put","args":["a","x"]},'
        '"state":' + _store("x", "@NUMBER@") + ',"source":"@NAME@"}',
    )
)
_ITF = json.dumps(
    {
        "#meta": {"format": "ITF", "model": MODEL, "note": "@NAME@"},
        "vars": ["value", "version", "answer", "writes"],
        "states": [
            {
                "value": {"#map": [["a", value], ["b", "absent"]]},
                "version": {"#map": [["a", number], ["b", 0]]},
                "answer": "none",
                "writes": {"#map": [["a", number], ["b", 0]]},
                "#meta": {"index": index, "action": 'Put("a", "x")'} if index else {"index": 0},
            }
            for index, (value, number) in enumerate((("absent", 0), ("x", "@NUMBER@")))
        ],
    }
).replace('"@NUMBER@"', "@NUMBER@")
_MODEL_TOML = (TUTORIAL / MODEL).read_text().replace("two keys", "@NAME@")
_CFG = """CONSTANTS
  Keys = {"a", "b"}
  Values = {"x", "@NAME@"}
  Versions = {0, @NUMBER@}
INIT Init
NEXT Next
INVARIANT TypeOK
"""
_SPEC = (
    (TUTORIAL / "models" / "Store.tla")
    .read_text()
    .replace("Init ==", 'Note == "@NAME@"\n\nNumber == @NUMBER@\n\nInit ==', 1)
)
_OF_STORE = (
    "audit store",
    "export store -o out.ndjson",
    f"replay --store store --trace 0 --model {MODEL}",
)

FILES = (
    File(
        "run.ndjson",
        (f"judge run.ndjson --model {MODEL}", f"import run.ndjson -o out --model {MODEL}"),
        _EVENTS,
        "json",
        repeated=(
            ('"source":"@NAME@"', '"source":"n","source":"m"'),
            ('"trace":"bad","step":1', '"trace":"bad","step":0,"step":1'),
            ('"trace":"bad","step":1', '"trace":"bad","trace":"other","step":1'),
            ('"bad","step":1,"action":{', '"bad","step":1,"action":{"name":"Remove",'),
            ('["a",@NUMBER@]', '["a",0],["a",@NUMBER@]'),
            ('"answer":"none"},"source"', '"answer":"written","answer":"none"},"source"'),
            ('"answer":"none"},"source"', '"answer":"written","\\u0061nswer":"none"},"source"'),
        ),
    ),
    File(
        "run.itf.json",
        (
            f"judge run.itf.json --model {MODEL}",
            "story run.itf.json",
            "replay run.itf.json",
        ),
        _ITF,
        "json",
        repeated=(
            ('"vars":', '"vars": ["x"], "vars":'),
            ('["a", @NUMBER@]', '["a", 0], ["a", @NUMBER@]'),
            ('"answer": "none"', '"answer": "written", "answer": "none"'),
            ('"version", "answer"', '"version", "version", "answer"'),
        ),
    ),
    File(
        "mapping.toml",
        (f"judge whole.ndjson --model {MODEL} --mapping mapping.toml",),
        'schema = 1\nhidden = ["writes"]\n[limits]\ncandidates = 1000\n[[names]]\n'
        'match = "m.*"\nto = "@NAME@"\n[coverage]\nactions = 0\n[silent]\nsteps = @NUMBER@\n',
        "toml",
        repeated=(("steps =", "steps = 2\nsteps ="),),
    ),
    File(
        "models/store.toml",
        (f"check {MODEL}", f"suite {MODEL}", f"judge whole.ndjson --model {MODEL}"),
        _MODEL_TOML,
        "toml",
        repeated=(("spec =", 'spec = "Shop"\nspec ='),),
    ),
    File(
        "models/Store.tla",
        (f"check {MODEL}", "check models/Store.tla --config own.cfg", "show Put --model " + MODEL),
        _SPEC,
        "tla",
        repeated=(("Init ==\n", "Init == FALSE\n\nInit ==\n"),),
    ),
    File(
        "own.cfg",
        ("check models/Store.tla --config own.cfg",),
        _CFG,
        "cfg",
        repeated=(("INIT Init", "INIT Init\nINIT Next"), ("  Keys =", "  Keys = {}\n  Keys =")),
    ),
    File("store/manifest.json", _OF_STORE),
    File("store/states/part-00000.parquet", _OF_STORE),
    File("store/traces/part-00000.parquet", _OF_STORE),
    File("suite.npz", (f"replay {MODEL} --suite suite.npz",)),
    File(
        "kconform.toml",
        (f"check {MODEL}",),
        'seed = @NUMBER@\noutput = "@NAME@"\n',
        "toml",
        optional=True,
        repeated=(("seed =", "seed = 2\nseed ="),),
    ),
    File(
        "pyproject.toml",
        (f"check {MODEL}",),
        '[project]\nname = "@NAME@"\n[tool.kconform]\nseed = @NUMBER@\n',
        "toml",
        optional=True,
        repeated=(("seed =", "seed = 2\nseed ="),),
    ),
    File(
        "faults.toml",
        ("bugs --catalogue faults.toml --list",),
        'schema = 1\nsystem = "replication"\nshort = []\n[[fault]]\nid = "X@NUMBER@"\n'
        'jira = "@NAME@"\ntitle = "t"\nmodels = []\n[[fault.patches]]\nfile = "records.py"\n'
        'old = "x"\nnew = "y"\n',
        "toml",
        repeated=(("title =", 'title = "s"\ntitle ='),),
    ),
    File("patch.diff", ("bugs --patch patch.diff",), "--- a/@NAME@\n+++ b/@NUMBER@\n", "diff"),
    File(
        "rules.toml",
        ("tap 127.0.0.1:1 -o out.ndjson --rules rules.toml --kafka-lib nowhere",),
        '[[rule]]\naction = "delay"\napi = "@NAME@"\nseconds = @NUMBER@\n',
        "toml",
        repeated=(("seconds =", "seconds = 2\nseconds ="),),
    ),
    File(
        "scenario.toml",
        ("cluster record --scenario scenario.toml -o out --kafka-lib nowhere",),
        'brokers = 3\nseconds = @NUMBER@\n[[topic]]\nname = "@NAME@"\npartitions = 4\n',
        "toml",
        repeated=(("brokers =", "brokers = 1\nbrokers ="),),
    ),
    File("report.json", (f"check {MODEL} --report out --compare report.json",), "", "json"),
    File(
        "client.properties",
        ("cluster move 127.0.0.1:1 --wire-config client.properties",),
        "client.id=@NAME@\nretries=@NUMBER@\n",
        "properties",
    ),
    File(
        "models/Store.picture.toml",
        (f"story whole.itf.json --model {MODEL} --svg",),
        'schema = @NUMBER@\nprotocol = "@NAME@"\n[lanes]\nkeys_of = "value"\n',
        "toml",
        optional=True,
        repeated=(("protocol =", 'protocol = "a"\nprotocol ='),),
    ),
    File(
        "recording/recording.json",
        ("cluster traces recording -o out",),
        '{"topics": [], "note": "@NAME@", "seed": @NUMBER@}',
        "json",
        repeated=(('"seed":', '"seed": 0, "seed":'),),
    ),
    File(
        "recording/node1/agent.ndjson",
        ("cluster traces recording -o out",),
        '{"node": "1", "sequence": @NUMBER@, "time": 5, "operation": "@NAME@"}\n',
        "json",
        repeated=(('"time":', '"time": 1, "time":'),),
    ),
    File(
        "described.toml",
        ("bugs --history described.toml",),
        '[[bug]]\nname = "@NAME@"\ndescription = "d"\npatch = "patch@NUMBER@.diff"\n',
        "toml",
        repeated=(("description =", 'description = "c"\ndescription ='),),
    ),
    File(
        "departures.toml",
        ("score wire:127.0.0.1:1 --model group/maximum-size-2m --deviations departures.toml",),
        '[[deviation]]\nid = "d@NUMBER@"\ntitle = "@NAME@"\nseverity = "harmless"\n'
        "shown = { groupState = { '\"Empty\"' = '\"Dead\"' } }\n",
        "toml",
        repeated=(("title =", 'title = "s"\ntitle ='),),
    ),
    File(
        "card/card.json",
        ("score card/card.json -o cards", "score card/card.json card/card.json --compare"),
        '{"schema":1,"system":"@NAME@","version":"0.1.0","tier":"ci","seed":1,"incomplete":false,'
        '"areas":[{"id":"static-membership","title":"Static members","kips":[],"requests":[],'
        '"suites":[{"name":"group/static-3m","standing":"agrees","tests":@NUMBER@,"passed":1,'
        '"failed":0,"steps":5,"reason":"","departures":[]}]}]}',
        "json",
        repeated=(('"steps":5', '"steps":4,"steps":5'),),
    ),
    File(
        "releases/group.json",
        ("versions delayed/cancelled-key --system group -o releases",),
        '{"schema":1,"system":"group","deviations":{},"suites":{"@NAME@":'
        '{"answer":"agrees","key":"k","tests":@NUMBER@,"steps":5}}}',
        "json",
        repeated=(('"tests":', '"tests":2,"tests":'),),
    ),
)


def prepared(folder: Path) -> Path:
    """A folder with all of these files, undamaged."""
    ignored = shutil.ignore_patterns("__pycache__", "kconform-out", "kconform.toml")
    shutil.copytree(TUTORIAL, folder, ignore=ignored)
    for file in FILES:
        if file.text and file.name not in ("pyproject.toml", "kconform.toml"):
            path = folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_whole(file.text))
    (folder / "whole.ndjson").write_text(_whole(_EVENTS))
    (folder / "whole.itf.json").write_text(_whole(_ITF))
    for command in (
        f"import whole.ndjson -o store --model {MODEL}",
        f"suite {MODEL} -o suite.npz",
        f"check {MODEL} --report .",
    ):
        ended = in_fork(command.split(), folder)
        assert ended.code == 0, ended
    return folder


def _whole(text: str) -> str:
    return text.replace("@NAME@", "n").replace("@NUMBER@", "1")


# ---- the damage ----------------------------------------------------------------------------------


Harm = Callable[[Path, File], bool]
"""Damages the file at a path; whether it can be damaged so."""


@dataclass(frozen=True)
class Damage:
    """A way to damage a file."""

    name: str
    harm: Harm
    harmless: bool = False
    """Whether a text means the same as before."""
    neutral: bool = False
    """Whether it is nothing that is wrong in itself: a command may pass, or refuse it."""
    of_value: bool = False
    """Whether it is one value within the file, so that the rest of it can be judged."""


def _bytes(change: Callable[[bytes], bytes]) -> Harm:
    def harm(path: Path, _file: File) -> bool:
        path.write_bytes(change(path.read_bytes()))
        return True

    return harm


def _text(change: Callable[[bytes], bytes], *forms: str) -> Harm:
    """Of texts only: of all, or of these forms."""

    def harm(path: Path, file: File) -> bool:
        fits = file.form in forms if forms else bool(file.form)
        if fits:
            path.write_bytes(change(path.read_bytes()))
        return fits

    return harm


def _value(place: str, new: str, *forms: str) -> Harm:
    """Another text at a place of the file."""

    def harm(path: Path, file: File) -> bool:
        fits = place in file.text and (not forms or file.form in forms)
        if fits:
            path.write_text(_whole(file.text.replace(place, new)))
        return fits

    return harm


def _name(new: str, *forms: str) -> Harm:
    return _value("@NAME@", new, *forms)


def _number(new: str, *forms: str) -> Harm:
    return _value("@NUMBER@", new, *forms)


def _repeated(number: int) -> Harm:
    def harm(path: Path, file: File) -> bool:
        if number >= len(file.repeated):
            return False
        old, new = file.repeated[number]
        assert old in file.text, (file.name, old)
        path.write_text(_whole(file.text.replace(old, new)))
        return True

    return harm


def _instead(make: Callable[[Path], object]) -> Harm:
    """Something else in the file's place."""

    def harm(path: Path, _file: File) -> bool:
        path.unlink()
        make(path)
        return True

    return harm


def _unreadable(path: Path, _file: File) -> bool:
    path.chmod(0)
    return not os.access(path, os.R_OK)  # root reads everything


def _deep(opening: str, closing: str = "", depth: int = 100_000) -> str:
    return opening * depth + "1" + closing * depth


NOTHING = ("empty", "spaces only", "nothing there")
"""Damages that leave nothing of a file."""


def _half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _in_middle(data: bytes, more: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + more + data[middle:]


_RANDOM = random.Random(43).randbytes(5000)

DAMAGES = (
    # All of a file's bytes.
    Damage("empty", _bytes(lambda _: b"")),
    Damage("spaces only", _bytes(lambda _: b" \n\n \n")),
    Damage("one byte", _bytes(lambda _: b"\x01")),
    Damage("the first half", _bytes(_half)),
    Damage("random bytes", _bytes(lambda _: _RANDOM)),
    Damage("random bytes after it", _bytes(lambda data: data + _RANDOM)),
    Damage("zeros", _bytes(lambda _: bytes(10_000))),
    Damage("a zero in the middle", _bytes(lambda data: _in_middle(data, b"\0"))),
    Damage("not UTF-8", _bytes(lambda data: _in_middle(data, b"\xff\xfe\xe9"))),
    Damage("half a surrogate pair as bytes",
           _bytes(lambda data: _in_middle(data, b"\xed\xa0\x80"))),
    Damage("UTF-16 without a mark", _text(lambda data: data.decode().encode("utf-16-le"))),
    Damage("a mark of UTF-16 before UTF-8",
           _text(lambda data: b"\xff\xfe" + data + b"\n" * (len(data) % 2 == 0))),
    Damage("half of gzip", _bytes(lambda data: _half(gzip.compress(data)))),
    Damage("gzip, damaged", _bytes(lambda data: gzip.compress(data)[:-6] + b"abcdef")),
    Damage("gzip of random bytes", _bytes(lambda _: gzip.compress(_RANDOM))),
    # A text that means the same.
    Damage("byte order mark", _text(lambda data: b"\xef\xbb\xbf" + data), harmless=True),
    Damage("UTF-16", _text(lambda data: data.decode().encode("utf-16")), harmless=True),
    Damage("UTF-16, big end first",
           _text(lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be")), harmless=True),
    Damage("gzip", _text(gzip.compress), harmless=True),
    Damage("gzip of a byte order mark",
           _text(lambda data: gzip.compress(b"\xef\xbb\xbf" + data)), harmless=True),
    Damage("CRLF", _text(lambda data: data.replace(b"\n", b"\r\n")), harmless=True),
    Damage("no end of the last line", _text(lambda data: data.rstrip(b"\n")), harmless=True),
    # A value.
    Damage("a name of 50 MB", _name("n" * LARGE), of_value=True, neutral=True),
    Damage("a name that steers the terminal", _name("\\u001b[2J\\u202e", "json", "toml"),
           of_value=True, neutral=True),
    Damage("half a surrogate pair", _name("\\ud800", "json", "toml"), of_value=True),
    Damage("the other half", _name("\\udc00x", "json", "toml"), of_value=True),
    Damage("a number of 5,000 digits", _number("9" * 5000, "json", "toml", "cfg", "tla"),
           of_value=True),
    Damage("a large number", _number("9" * 30, "json", "toml", "cfg", "tla"),
           of_value=True, neutral=True),
    Damage("NaN", _number("NaN", "json"), of_value=True),
    Damage("nan", _number("nan", "toml"), of_value=True),
    Damage("Infinity", _number("Infinity", "json"), of_value=True),
    Damage("inf", _number("inf", "toml"), of_value=True),
    Damage("1e999", _number("1e999", "json", "toml"), of_value=True),
    Damage("a text for a number", _number('"one"', "json", "toml"), of_value=True),
    Damage("null for a number", _number("null", "json"), of_value=True),
    Damage("a list for a number", _number("[]", "json", "toml"), of_value=True),
    Damage("a table for a number", _number("{a = 1}", "toml"), of_value=True),
    Damage("minus one", _number("-1", "json", "toml"), of_value=True),
    Damage("lists 100,000 deep", _number(_deep("[", "]"), "json", "toml"), of_value=True),
    Damage("lists 5,000 deep", _number(_deep("[", "]", 5000), "json", "toml"), of_value=True),
    Damage("lists 300 deep", _number(_deep("[", "]", 300), "json", "toml"), of_value=True),
    Damage("open lists 100,000 deep", _number(_deep("["), "json", "toml"), of_value=True),
    Damage("objects 100,000 deep", _number(_deep('{"a":', "}"), "json"), of_value=True),
    Damage("tables 100,000 deep", _number(_deep("{a=", "}"), "toml"), of_value=True),
    Damage("sets 100,000 deep", _number(_deep("{", "}"), "cfg", "tla"), of_value=True),
    Damage("TLA+ sets 100,000 deep in a text",
           _number(json.dumps({"#unserializable": _deep("{", "}")}), "json"), of_value=True),
    Damage("an interval without end",
           _number('{"#unserializable": "1..1000000000000"}', "json"), of_value=True),
    Damage("a number of 5,000 digits in a text",
           _number(json.dumps({"#bigint": "9" * 5000}), "json"), of_value=True),
    *(Damage(f"a key twice ({number + 1})", _repeated(number), of_value=True)
      for number in range(7)),
    Damage("another kind of document: list", _text(lambda _: b"[]", "json")),
    Damage("another kind of document: number", _text(lambda _: b"1", "json")),
    Damage("another kind of document: null", _text(lambda _: b"null", "json")),
    Damage("another kind of document: text", _text(lambda _: b'"x"', "json")),
    Damage("another kind of document: empty object", _text(lambda _: b"{}", "json")),
    # What is no file.
    Damage("nothing there", _instead(lambda _: None)),
    Damage("a folder", _instead(Path.mkdir)),
    Damage("no permission to read", _unreadable),
    Damage("a link to itself", _instead(lambda path: path.symlink_to(path.name))),
    Damage("a link to nothing", _instead(lambda path: path.symlink_to("nothing-there"))),
    Damage("a pipe", _instead(os.mkfifo)),
    Damage("/dev/zero", _instead(lambda path: path.symlink_to("/dev/zero"))),
    Damage("/dev/null", _instead(lambda path: path.symlink_to("/dev/null"))),
)  # fmt: skip


# ---- what comes of it ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What a command did with a damaged file."""

    file: str
    damage: str
    command: str
    ended: Ended
    broken: str
    """The rule that it broke, or nothing."""

    def __str__(self) -> str:
        mark = "!" if self.broken else " "
        said = (self.ended.err.strip() or self.ended.out.strip()).partition("\n")[0][:110]
        why = f" [{self.broken}]" if self.broken else ""
        return (
            f"{mark} {self.file:<34} {self.damage:<34} {self.command.split()[0]:<8} "
            f"{self.ended.code:>3}{why} {said}"
        )


def rows(
    folder: Path, files: Sequence[File] = FILES, damages: Sequence[Damage] = DAMAGES
) -> Iterator[Row]:
    """What each command does with each of these files, damaged in each of these ways.

    In `folder` the files are as `prepared` made them.
    """
    with tempfile.TemporaryDirectory(prefix="kconform-damage-") as scratch:
        for file in files:
            whole = [ended(folder, file, command, None, Path(scratch)) for command in file.commands]
            for damage in damages:
                for command, before in zip(file.commands, whole, strict=True):
                    after = ended(folder, file, command, damage, Path(scratch))
                    if after is not None and before is not None:
                        broken = broken_rule(file, damage, before, after)
                        yield Row(file.name, damage.name, command, after, broken)


def ended(
    folder: Path, file: File, command: str, damage: Damage | None, scratch: Path
) -> Ended | None:
    """How a command ends with the file damaged; None if it cannot be damaged so."""
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, symlinks=True)
    path = copy / file.name
    if file.text:
        path.write_text(_whole(file.text))
    if damage is not None and not damage.harm(path, file):
        return None
    return in_fork(command.split(), copy)


def broken_rule(file: File, damage: Damage, before: Ended, after: Ended) -> str:
    """The rule that a command broke, or nothing."""
    said = after.out + after.err
    if after.code == HUNG:
        return "does not end"
    if after.code not in (0, 1, 2, 3):
        return "a fault of kconform"
    if "Traceback (most recent" in said:
        return "a traceback"
    if len(said) > MOST_SAID:
        return f"says {len(said):,} characters"
    if re.search("[\x1b\u202e]", said):
        return "steers the terminal"
    if damage.harmless and file.form != "tla" and after.code != before.code:
        return f"it ended with {before.code} before"
    nothing = file.optional and damage.name in NOTHING
    # Outside of the module TLA+ has no text: SANY passes over it.
    nothing |= file.form == "tla" and damage.name in _OUTSIDE
    if damage.name in _SHOWN and after.out.startswith("run.itf.json\n0. Initial state"):
        return "" if _SHOWN[damage.name] in after.out else "the value is not shown"
    if not (damage.harmless or damage.neutral or nothing) and after.code == 0:
        return "a pass"
    if damage.of_value and file.name == "run.ndjson" and not re.search("[12] pass", after.out):
        return "the good trace is lost"
    return ""


_SHOWN = {"a text for a number": '"one"', "a list for a number": "<<>>", "minus one": "-1"}
"""Values of TLA+ that stand in a trace as well as another: a story judges none, and shows them."""
_OUTSIDE = ("random bytes after it", "a mark of UTF-16 before UTF-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", help="Only files whose name contains this.", default="")
    parser.add_argument("--damage", help="Only damages whose name contains this.", default="")
    parser.add_argument("--broken", action="store_true", help="Only what breaks a rule.")
    asked = parser.parse_args()
    files = [file for file in FILES if asked.file in file.name]
    damages = [damage for damage in DAMAGES if asked.damage in damage.name]
    count = broken = 0
    with tempfile.TemporaryDirectory(prefix="kconform-damage-") as scratch:
        os.environ["KCONFORM_CACHE"] = str(Path(scratch) / "cache")
        folder = prepared(Path(scratch) / "whole")
        for row in rows(folder, files, damages):
            count, broken = count + 1, broken + bool(row.broken)
            if row.broken or not asked.broken:
                print(row, flush=True)
    print(
        f"{count} runs of {len(files)} kinds of file, {len(damages)} damages: {broken} broke a rule"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
