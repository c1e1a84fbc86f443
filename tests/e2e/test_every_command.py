"""Every command that takes a model, with a model of every protocol and every kind of system.

What fits is driven, what does not is refused in a paragraph; nothing is a fault of kconform.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

import pytest

from conformance.errors import ExitCode
from conformance.modelcheck.manifest import Model, find_models
from conformance.registry import BUILT_IN, SPECIFICATIONS
from tests.e2e.commands import Ended, in_fork
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

DRIVE = {
    "gate": "gate {model} --system {system} --traces 1 --no-canary -o out",
    "replay": "replay {model} --system {system} --suite walks --walks 2",
    "interleave": "interleave {model} --system {system} --samples 1",
    "turns": "turns {model} --system {system} --walks 1",
    "explore": "explore {model} --system {system} --examples 2 --steps 5",
    "record": "record {model} --system {system} --traces 2 --length 5 -o {store}",
    "score": "score {system} --model {model} --traces 1 -o card",
}
"""Commands that take a model and a system."""
COMPARE = {
    "versions": "versions {model} --system {system}",
    "changelog": "changelog {system} {system} --model {model} --no-broker",
}
"""Commands that leave out what does not fit; then there was nothing to check."""
ALONE = {
    "check": "check {model} --continue --engine python",
    "diff": "diff {model} {model} --limit 200",
    "show": "show {formula} --python --model {model}",
    "suite": "suite {model}",
}
"""Commands that take a model only."""
_EVENTS = "export {store} -o {spec}.ndjson"
_BEHAVIOUR = "export {store} --trace 0 -o {spec}.itf.json"
AFTER = (
    ("audit {store}",),
    (_EVENTS, "judge {spec}.ndjson --model {model}"),
    (_EVENTS, "import {spec}.ndjson -o imported-{spec} --model {model}"),
    (_BEHAVIOUR, "story {spec}.itf.json --model {model} --html"),
    (_BEHAVIOUR, "story {spec}.itf.json --model {model} --svg"),
    (_BEHAVIOUR, "replay --store {store} --trace 0 --model {model}"),
)
"""What is done with a store, another of these for each protocol."""
SYSTEMS = (
    *sorted(BUILT_IN),
    "kafka-4.4.0",
    "kafka-4.4.0+client",
    "wire:127.0.0.1:1",
    "exec:false",
    "tcp:127.0.0.1:1",
    "no_such_module:create",
)
KAFKA_DRIVES = frozenset(
    {
        "ConsumerGroup",
        "CoordinatorStore",
        "GroupMembership",
        "IdempotentProduce",
        "Replication",
        "ReplicationInterruptedFetches",
        "Transactions",
    }
)
DEPARTS = frozenset({"ConsumerGroup"})
"""What our own system does as Kafka 4.4.0, not as the specification says."""
TAKEN_BY_4_4 = {"Transactions": "transaction/v2-instances-1-transaction"}
"""Where the smallest model is of an older protocol."""
LARGE = 5_000
HERE = 600.0
"""Seconds after which a command hangs, on a busy machine."""


def smallest(models: Sequence[Model]) -> Model:
    """The smallest; of those that feed a suite, where there are any."""
    return min(
        models, key=lambda model: (not model.feeds_suite, model.expect.distinct_states or 10**9)
    )


def protocols() -> Iterator[tuple[str, Model]]:
    """A model of every specification: the smallest that holds."""
    holding = [model for model in find_models([]) if not model.mutant]
    for spec in sorted({model.spec for model in holding}):
        yield spec, smallest([model for model in holding if model.spec == spec])


PROTOCOLS = dict(protocols())


def fits(spec: str, system: str) -> bool:
    driven = SPECIFICATIONS.get(system, ())
    return spec in driven or (system.startswith("kafka-") and spec in KAFKA_DRIVES)


def misfits(offset: int) -> Iterator[tuple[Model, str]]:
    """Every specification with a system that does not drive it, another one at each offset."""
    for number, (spec, model) in enumerate(PROTOCOLS.items()):
        others = [system for system in SYSTEMS if not fits(spec, system)]
        yield model, next(islice(cycle(others), number + offset, None))


def tell(ended: Ended, command: str) -> str:
    return f"{command}: exit code {ended.code}\n{ended.out[-500:]}{ended.err[-1500:]}"


@pytest.mark.parametrize("name", COMPARE)
def test_a_comparison_with_systems_that_do_not_fit_is_no_pass(name: str, tmp_path: Path) -> None:
    wrong = []
    offset = len(DRIVE) + list(COMPARE).index(name)
    for model, system in islice(misfits(offset), offset % 4, None, 4):
        command = COMPARE[name].format(model=model.name, system=system)
        ended = in_fork(command.split(), tmp_path, seconds=HERE)
        refused = ended.code in (ExitCode.USAGE, ExitCode.INCONCLUSIVE)
        if not refused or "Traceback" in ended.err:
            wrong.append(tell(ended, command))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", DRIVE)
def test_a_system_that_does_not_fit_is_refused_in_a_paragraph(name: str, tmp_path: Path) -> None:
    wrong = []
    for model, system in misfits(list(DRIVE).index(name)):
        command = DRIVE[name].format(model=model.name, system=system, store="store")
        ended = in_fork(command.split(), tmp_path, seconds=HERE)
        if ended.code != ExitCode.USAGE or "Traceback" in ended.err:
            wrong.append(tell(ended, command))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["replay", "interleave", "turns", "explore"])
def test_a_system_that_fits_is_driven(name: str, tmp_path: Path) -> None:
    """A gate and a card make the same runs, one after the other, and their tests are elsewhere.

    A recording has a test below, with what is done with it.

    Turns are of fetcher threads, and not every adapter's steps can be interrupted.
    """
    wrong = []
    for system, specs in SPECIFICATIONS.items():
        for spec in specs:
            driven = [model for model in find_models([]) if model.spec == spec]
            model = smallest([model for model in driven if model.system and not model.mutant])
            command = DRIVE[name].format(model=model.name, system=system)
            ended = in_fork(command.split(), tmp_path, seconds=HERE)
            refused = ended.code == ExitCode.USAGE and name in ("turns", "interleave")
            if ended.code != ExitCode.PASS and not (refused and ended.paragraph()):
                wrong.append(tell(ended, command))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("spec", "name"),
    [*zip(sorted(KAFKA_DRIVES), cycle(("replay", "explore", "record")), strict=False)],
)
def test_kafkas_classes_are_driven_by_what_they_take(spec: str, name: str, tmp_path: Path) -> None:
    jars_or_skip("4.4.0")
    model = TAKEN_BY_4_4.get(spec, PROTOCOLS[spec].name)
    command = DRIVE[name].format(model=model, system="kafka-4.4.0", store="store")
    ended = in_fork(command.split(), tmp_path, seconds=HERE)
    assert ended.code == ExitCode.PASS, tell(ended, command)


def test_a_store_of_every_protocol_can_be_judged_and_told(tmp_path: Path) -> None:
    wrong = []
    driven = {spec: system for system, specs in SPECIFICATIONS.items() for spec in specs}
    for (spec, system), commands in zip(driven.items(), cycle(AFTER), strict=False):
        words = {"spec": spec, "store": f"store-{spec}", "model": PROTOCOLS[spec].name}
        for template in (DRIVE["record"], *commands):
            command = template.format(system=system, **words)
            ended = in_fork(command.split(), tmp_path, seconds=HERE)
            # Two traces do not take every action; a judge knows of no departures.
            few = ended.code == ExitCode.INCONCLUSIVE and command.startswith("audit")
            departs = ended.code == ExitCode.FAIL and spec in DEPARTS
            if ended.code != ExitCode.PASS and not few and not departs:
                wrong.append(tell(ended, command))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ALONE)
def test_a_command_without_a_system_takes_every_protocol(name: str, tmp_path: Path) -> None:
    wrong = []
    for model in PROTOCOLS.values():
        if (model.expect.distinct_states or 0) > LARGE and name in ("check", "suite"):
            continue  # the graph of recorded clusters; other tests search it
        formula = next(iter(model.check.invariants), "Next")
        command = ALONE[name].format(model=model.name, formula=formula)
        ended = in_fork(command.split(), tmp_path, seconds=HERE)
        if ended.code not in (ExitCode.PASS, ExitCode.INCONCLUSIVE):
            wrong.append(tell(ended, command))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["acknowledgement/liveness-2b", "directories/liveness"])
def test_a_model_of_whole_behaviours_feeds_no_suite_and_says_so(name: str, tmp_path: Path) -> None:
    ended = in_fork(["suite", name], tmp_path, seconds=HERE)
    assert ended.code == ExitCode.USAGE, tell(ended, name)
    assert "of whole behaviours" in ended.paragraph()
