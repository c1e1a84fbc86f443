"""The command line starts without what its commands need, and announces what they are."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType

import pytest
from typer.testing import CliRunner

from conformance.cli import entry
from conformance.cli.main import COMMANDS, app, load

HEAVY = ("pyspark", "ortools", "hypothesis", "networkx", "rustworkx", "pyarrow", "numpy", "jinja2")


def heavy_after(statement: str) -> list[str]:
    """Which of the heavy packages a fresh interpreter holds after a statement."""
    code = f"import sys\n{statement}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_the_command_line_loads_nothing_heavy() -> None:
    assert heavy_after("import conformance.cli.main") == []


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("check", {"numpy"}),
        ("suite", {"numpy", "ortools", "rustworkx"}),
        ("replay", {"numpy", "ortools", "rustworkx"}),
        ("import", {"networkx", "numpy", "pyarrow"}),
        ("judge", {"networkx", "numpy", "pyarrow"}),
        ("export", {"numpy", "pyarrow"}),
    ],
)
def test_a_command_loads_what_it_needs(command: str, needed: set[str]) -> None:
    statement = f"from conformance.cli.main import load; load({command!r})"
    assert set(heavy_after(statement)) <= needed


@pytest.mark.parametrize("name", COMMANDS)
def test_help_announces_each_command_in_its_own_words(name: str) -> None:
    _, summary = COMMANDS[name]
    own = load(name)
    if len(own.registered_commands) > 1:  # a family of commands has a help of its own
        assert own.info.help == summary
        return
    (info,) = own.registered_commands
    assert info.callback is not None
    assert (info.callback.__doc__ or "").splitlines()[0] == summary


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["chek"], "No such command 'chek'"),
        (["check", "--nonsense"], "kconform check"),
        (["replay", "--walks", "0", "--", "x"], "--walks"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_so(arguments: list[str], told: str) -> None:
    command = [sys.executable, "-m", "conformance.cli", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert told in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "arguments",
    [(), *((name,) for name in COMMANDS), ("cluster", "run"), ("cluster", "judge")],
    ids=" ".join,
)
def test_a_short_h_is_help_of_every_command(arguments: tuple[str, ...]) -> None:
    told = [CliRunner().invoke(app, [*arguments, option]) for option in ("-h", "--help")]
    assert [one.exit_code for one in told] == [0, 0]
    assert told[0].output == told[1].output
    assert "Usage: " in told[0].output


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("check --list", "models"),
        ("bugs --list", "bugs"),
        ("deviations kafka-4.4.0 --table", "deviations"),
    ],
)
def test_what_only_lists_something_checks_nothing_and_ends_well(command: str, key: str) -> None:
    told = CliRunner().invoke(app, [*command.split(), "--json"])
    assert told.exit_code == 0
    assert json.loads(told.stdout)[key]


class Interrupted(ModuleType):
    """A module in whose import Ctrl-C arrives."""

    @property
    def run(self) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_while_modules_are_imported_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "conformance.cli.main", Interrupted("main"))
    with pytest.raises(SystemExit) as ended:
        entry.run()
    assert ended.value.code == 130
    assert "interrupted" in capsys.readouterr().err
