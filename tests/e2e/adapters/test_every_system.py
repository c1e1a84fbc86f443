"""Every system with a model of every protocol that it is driven by, and stores of all of them."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from conformance.deviations.table import Deviating
from conformance.errors import ExitCode
from conformance.registry import SPECIFICATIONS, factory_path, load_factory
from tests.breadth import every
from tests.bundled import MODELS
from tests.e2e.commands import in_fork
from tests.e2e.every import DRIVE, HERE, PROTOCOLS, smallest, tell
from tests.kafka_needed import DRIVEN, jars_or_skip

pytestmark = pytest.mark.tlc

_EVENTS = "export {store} -o {spec}.ndjson"
_BEHAVIOUR = "export {store} --trace 0 -o {spec}.itf.json"
AFTER = (
    ("audit {store}",),
    (_EVENTS, "judge {spec}.ndjson --model {model}{known}"),
    (_EVENTS, "import {spec}.ndjson -o imported-{spec} --model {model}{known}"),
    (_BEHAVIOUR, "story {spec}.itf.json --model {model} --html"),
    (_BEHAVIOUR, "story {spec}.itf.json --model {model} --svg"),
    (_BEHAVIOUR, "replay --store {store} --trace 0 --model {model}"),
)
"""What is done with a store, another of these for each protocol."""
TAKEN_BY_4_4 = {"Transactions": "transaction/v2-instances-1-transaction"}
"""Where the smallest model is of an older protocol."""
THREADS_MEET = {"ConsumerPositions": "positions/resets"}
"""Where no two threads can meet in the smallest model."""
NOBODY_MEETS = ("TransactionalLogExpiry",)
"""Whose adapter lets no step be interrupted: what meets at its lock TransactionalLog has."""


PAIRS = [(system, spec) for system, specs in SPECIFICATIONS.items() for spec in specs]
DRIVER = {spec: system for system, spec in PAIRS}
"""Of every protocol the last system that has it."""


@pytest.mark.parametrize(
    ("system", "spec", "name"),
    [
        *((*pair, name) for pair, name in zip(PAIRS, cycle(("replay", "explore")), strict=False)),
        *((*pair, "interleave") for pair in PAIRS[::2]),
        *((system, spec, "turns") for system, spec in PAIRS if system in ("fetchers", "offsets")),
    ],
)
def test_a_system_that_fits_is_driven(system: str, spec: str, name: str, tmp_path: Path) -> None:
    """The gate drives every system in all these ways; here each command meets some of them.

    A recording has a test below, with what is done with it.

    Turns are of fetcher threads, and not every adapter's steps can be interrupted.
    """
    driven = [model for model in MODELS if model.spec == spec]
    model = smallest([model for model in driven if model.system and not model.mutant])
    named = THREADS_MEET.get(spec, model.name) if name == "interleave" else model.name
    command = DRIVE[name].format(model=named, system=system)
    ended = in_fork(command.split(), tmp_path, seconds=HERE)
    if name in ("turns", "interleave") and ended.code == ExitCode.USAGE:
        assert ended.paragraph(), tell(ended, command)
    elif name == "interleave" and spec in NOBODY_MEETS:
        assert ended.code == ExitCode.INCONCLUSIVE, tell(ended, command)
        assert "no two threads can be made to meet" in ended.out
    else:
        assert ended.code == ExitCode.PASS, tell(ended, command)


@pytest.mark.parametrize(
    ("spec", "name"),
    every(4, zip(sorted(DRIVEN), cycle(("replay", "explore", "record")), strict=False)),
)
def test_kafkas_classes_are_driven_by_what_they_take(spec: str, name: str, tmp_path: Path) -> None:
    jars_or_skip("4.4.0")
    model = TAKEN_BY_4_4.get(spec, PROTOCOLS[spec].name)
    command = DRIVE[name].format(model=model, system="kafka-4.4.0", store="store")
    ended = in_fork(command.split(), tmp_path, seconds=HERE)
    assert ended.code == ExitCode.PASS, tell(ended, command)


@pytest.mark.parametrize(
    ("spec", "system", "commands"),
    [(*pair, commands) for pair, commands in zip(DRIVER.items(), cycle(AFTER), strict=False)],
)
def test_a_store_of_every_protocol_can_be_judged_and_told(
    spec: str, system: str, commands: tuple[str, ...], tmp_path: Path
) -> None:
    departs = isinstance(load_factory(factory_path(system)), Deviating)
    words = {
        "spec": spec,
        "store": f"store-{spec}",
        "model": PROTOCOLS[spec].name,
        "known": f" --deviations {system}" if departs else "",
    }
    for template in (DRIVE["record"], *commands):
        command = template.format(system=system, **words)
        ended = in_fork(command.split(), tmp_path, seconds=HERE)
        # Two traces do not take every action.
        few = ended.code == ExitCode.INCONCLUSIVE and command.startswith("audit")
        assert ended.code == ExitCode.PASS or few, tell(ended, command)
