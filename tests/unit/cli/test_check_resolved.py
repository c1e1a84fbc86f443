"""`kconform check --resolved`: a manifest together with its bases."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from conformance.cli.main import load


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(load("check"), [*args, "--resolved"])
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["client/sarama", "replication/mutant-fenced-reset-fine-2b"])
def test_the_whole_manifest_is_valid_toml(name: str) -> None:
    code, output = run(name)
    whole = msgspec.toml.decode(output)
    assert (code, output.splitlines()[0], "extends" in whole) == (0, f"# {name}", False)
    # What two levels of bases say stands in it.
    assert {"Members", "Brokers"} & whole["constants"].keys()
    assert whole["check"]["init"].endswith("Init")
    as_json = json.loads(run(name, "--json")[1])
    assert as_json["manifests"] == [{"model": name, "manifest": whole}]


def test_a_module_has_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "Toy.tla").write_text("---- MODULE Toy ----\n====\n")
    (tmp_path / "Toy.cfg").write_text("INIT Init\nNEXT Next\n")
    code, output = run(str(tmp_path / "Toy.tla"))
    assert (code, "has no manifest" in output) == (2, True)
