"""Names that can only be a mistake are refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import load

MISTAKES: dict[str, tuple[list[str], str]] = {
    "changelog": (["kafka-4.4.0", "kafka-4.4.0", "-o", "out"], "are both kafka-4.4.0"),
    "check": ([""], "name is empty"),
    "suite": ([" ", "-o", "out"], "name is empty"),
    "init": (["store.toml"], "store.toml is no TLA+ module"),
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_name_in_vain_is_a_mistake(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store.toml").write_text("")
    arguments, told = MISTAKES[command]
    ended = CliRunner().invoke(load(command), arguments)
    assert (ended.exit_code, told in " ".join(ended.output.split())) == (2, True), ended.output
    assert [path.name for path in tmp_path.iterdir()] == ["store.toml"]
