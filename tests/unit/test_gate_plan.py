"""Which models a gate drives a system along: whatever way a manifest names the system in."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.config import Settings, settled_tier
from conformance.errors import UserError
from conformance.gate import GatePlan, plan
from conformance.stages.context import Context

MANIFEST = """
schema = 1
spec = "Toy"
feeds_suite = true
system = '{system}'
[check]
init = "Init"
next = "Next"
"""


def planned(folder: Path, text: str) -> GatePlan:
    (folder / "Toy.tla").write_text("---- MODULE Toy ----\nVARIABLE x\n====\n")
    (folder / "toy.toml").write_text(text)
    settings = Settings(systems={"mine": "my.module:create"})
    return plan(Context(settings), settled_tier(settings, "ci"), [str(folder / "toy.toml")], folder)


@pytest.mark.parametrize(
    "system",
    [
        "replication",
        "mine",
        "my.module:create",
        "exec:./adapter --flag",
        "tcp:127.0.0.1:7000",
        "wire:127.0.0.1:9092?groups=3",
        "kafka-4.4.0",
        "kafka-4.4.0+client",
    ],
)
def test_a_manifests_own_system_is_driven(tmp_path: Path, system: str) -> None:
    (model,) = planned(tmp_path, MANIFEST.format(system=system)).feeding
    assert model.system == system


def test_a_system_that_is_not_known_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No system is called 'replicaton'"):
        planned(tmp_path, MANIFEST.format(system="replicaton"))


@pytest.mark.parametrize("change", [("feeds_suite = true", ""), ("system = '{system}'", "")])
def test_a_model_that_says_so_is_checked_only(tmp_path: Path, change: tuple[str, str]) -> None:
    gate = planned(tmp_path, MANIFEST.replace(*change).format(system="mine"))
    assert (len(gate.models), gate.feeding) == (1, ())
