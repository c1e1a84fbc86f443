"""Builds of Kafka with a plain fault each: what the recommended command drives finds them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.config import DEFAULT_TIERS
from conformance.events import Event, StageFinished
from conformance.gate import plan
from conformance.kafka.agent import BYTE_BUDDY
from conformance.kafka.java import compile_java
from conformance.kafka.maven import maven_jars
from conformance.stages.budget import within_budget
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay
from conformance.suites.postman import transition_cover
from conformance.systems.external import CHANNELS
from conformance.tla import find_tools
from conformance.verdict import Verdict
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

VERSION = "4.4.0"
MINUTES = 5.0
"""What README and docs/kafka.md recommend."""

UNCLEAN = "replication/bench/truncate-on-fetch-unclean-coarse-2b"
FINE = "replication/bench/truncate-on-fetch-fine-2b"

FAULTS = {
    "epoch-asked-for": UNCLEAN,
    "epochs-kept": FINE,
    "truncates-one-late": FINE,
    "high-watermark-not-taken": FINE,
    "old-heartbeat": "group/dynamic-2m",
    "old-commit": "group/dynamic-2m",
    "old-sync": "group/static-absent-2m",
    "joined-early": "group/protocols-2m",
}
"""Each fault of plant/Plant.java, and a suite that finds it."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The jars of a release with all faults in them, asleep; a JVM wakes the one that is named."""
    jars = jars_or_skip(VERSION)
    library = maven_jars("byte-buddy", [BYTE_BUDDY])
    source = Path(__file__).parent / "plant" / "Plant.java"
    classes = compile_java([source], [*jars.classpath, *library])
    folder = tmp_path_factory.mktemp("libs")
    for jar in jars.classpath:
        shutil.copy(jar, folder)
    planted = [
        folder / jars.jar(name).name for name in ("kafka-storage", "kafka-group-coordinator")
    ]
    path = os.pathsep.join(map(str, [classes, *library, *jars.classpath]))
    subprocess.run([str(find_tools().java), "-cp", path, "Plant", *planted], check=True)
    yield folder
    CHANNELS.close()


@pytest.mark.parametrize(("fault", "model"), FAULTS.items(), ids=FAULTS)
def test_a_plain_fault_is_found(
    build: Path, monkeypatch: pytest.MonkeyPatch, fault: str, model: str
) -> None:
    monkeypatch.setenv("KCONFORM_KAFKA_LIB", str(build))
    monkeypatch.setenv("PLANTED_FAULT", fault)
    CHANNELS.close()  # a JVM that runs has another fault
    bench = workbench(Context(), one_model(model), "kafka")

    result = replay(Context(), bench, transition_cover(bench.graph))

    assert result.verdict is Verdict.FAIL


def test_the_recommended_command_drives_the_suites_that_find_them() -> None:
    jars_or_skip(VERSION)
    events: list[Event] = []
    context, system = Context(emit=events.append), f"kafka-{VERSION}"
    gate = plan(context, DEFAULT_TIERS["ci"], (), Path("out"), system)

    chosen = within_budget(context, gate.feeding, system, MINUTES)

    assert {*FAULTS.values()} <= {model.name for model in chosen}
    told = events[-1]
    assert isinstance(told, StageFinished)
    assert f"{len(chosen)} of {len(gate.feeding)} suites" in told.summary
