"""Outputs that cannot be written are noticed before anything runs.

Each command is also given a model, store or file that does not exist: what it says first shows what
it looks at first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from conformance.cli.audit import audit
from conformance.cli.explore import explore
from conformance.cli.exports import export_command
from conformance.cli.history import history_command
from conformance.cli.imports import import_command
from conformance.cli.inspect import inspect_command
from conformance.cli.interleave import interleave
from conformance.cli.record import record
from conformance.cli.replay import replay
from conformance.cli.story import story
from conformance.cli.suite import suite
from conformance.cli.tap import tap
from conformance.cli.turns import turns
from conformance.cli.versions import versions
from conformance.cli.workload import workload
from conformance.errors import ExitCode

Command = Callable[[Path], None]
NO = Path("no-such-file")


def told_by(command: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> str:
    """The paragraph of a command that must end with a mistake of the user's."""
    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == ExitCode.USAGE
    return " ".join(capsys.readouterr().err.split())


STORES: dict[str, Command] = {
    "record": lambda path: record("no-model", output=path),
    "import": lambda path: import_command([NO], output=path, model="no-model"),
}
FOLDERS: dict[str, Command] = {
    **STORES,
    "audit": lambda path: audit(NO, listing=path),
    "inspect": lambda path: inspect_command(["no"], output=path),
    "history": lambda path: history_command(["no"], path),
    "workload": lambda path: workload("no-broker", output=path),
}
FILES: dict[str, Command] = {
    "suite": lambda path: suite("no-model", output=path),
    "export": lambda path: export_command(NO, output=path),
    "story": lambda path: story(NO, output=path),
    "tap": lambda path: tap("no-broker", output=path),
}
DRIVING: dict[str, Callable[[], None]] = {
    "replay": partial(replay, "no-model"),
    "interleave": partial(interleave, "no-model"),
    "turns": partial(turns, "no-model"),
    "explore": partial(explore, "no-model"),
    "versions": partial(versions, ["no-model"], system=["no-system"]),
}


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the current folder, where a folder might be wanted."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "taken"
    path.write_text("")
    return path


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_a_place_below_a_file_is_refused_first(
    name: str, taken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = taken / "out"
    told = told_by(lambda: {**FOLDERS, **FILES}[name](place), capsys)

    assert f"{place} " in told
    assert "so nothing was run" in told
    assert "partial" not in told


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_a_files_place_is_refused_first(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = told_by(lambda: FILES[name](tmp_path), capsys)

    assert f"{tmp_path} cannot be written (it is a folder)" in told


@pytest.mark.parametrize("name", STORES)
def test_a_file_in_a_stores_place_is_refused_first(
    name: str, taken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = told_by(lambda: STORES[name](taken), capsys)

    assert f"Nothing can be written to {taken} (it is a file)" in told


@pytest.mark.parametrize("name", STORES)
def test_a_store_that_is_there_is_refused_first(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = told_by(lambda: STORES[name](tmp_path), capsys)

    assert f"{tmp_path} exists already. Replace it with --force" in told


@pytest.mark.parametrize("name", DRIVING)
def test_where_divergences_would_go_is_looked_at_first(
    name: str, taken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken.rename(taken.with_name("kconform-out"))
    told = told_by(DRIVING[name], capsys)

    assert "Nothing can be written to kconform-out/divergences" in told
