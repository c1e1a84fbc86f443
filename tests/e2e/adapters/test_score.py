"""`kconform score` drives an adapter and makes its card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import load
from tests.e2e.adapters.conftest import MODEL, PYTHON

pytestmark = pytest.mark.tlc


def test_a_card_of_a_right_adapter_and_of_a_faulty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    codes = {}
    for name, system in (("right", PYTHON), ("faulty", f"{PYTHON} exec=forgets")):
        args = [system, "--model", str(MODEL), "--traces", "20", "-o", name, "--json"]
        result = CliRunner().invoke(load("score"), args)
        assert isinstance(result.exception, SystemExit | None)
        codes[name] = result.exit_code
        assert json.loads(result.stdout)["command"] == "score"  # and nothing else stands there

    right, faulty = (json.loads(Path(n, "card.json").read_text()) for n in ("right", "faulty"))
    assert codes == {"right": 0, "faulty": 1}
    assert [area["standing"] for area in right["areas"]] == ["agrees"]
    (suite,) = faulty["areas"][0]["suites"]
    assert (suite["name"], suite["standing"]) == ("store", "departs")
    for departure in suite["departures"]:
        assert not departure["declared"]
        assert Path("faulty", departure["story"]).is_file()
    compared = CliRunner().invoke(load("score"), ["right", "faulty", "--compare", "-o", "both"])
    assert "store: agrees -> departs" in compared.output
    assert Path("both/1/card.md").is_file()
