"""Every command that takes a model, with a model of every protocol and every kind of system.

What does not fit is refused in a paragraph; nothing is a fault of kconform. What fits is driven in
adapters/test_every_system.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from conformance.errors import ExitCode
from conformance.modelcheck.manifest import Model
from tests.breadth import mostly_at_night
from tests.e2e.commands import in_fork
from tests.e2e.every import DRIVE, HERE, PROTOCOLS, SYSTEMS, fits, tell

pytestmark = pytest.mark.tlc

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
LARGE = 5_000


def misfits(offset: int) -> Iterator[tuple[Model, str]]:
    """Every specification with a system that does not drive it, another one at each offset."""
    for number, (spec, model) in enumerate(PROTOCOLS.items()):
        others = [system for system in SYSTEMS if not fits(spec, system)]
        yield model, next(islice(cycle(others), number + offset, None))


def in_parts(commands: Collection[str], parts: int) -> list[tuple[str, int] | ParameterSet]:
    """Each command with every part of the protocols: one by day, another one at each command."""
    numbers = {name: number for number, name in enumerate(commands)}
    rows = [(name, part) for name in commands for part in range(parts)]
    return mostly_at_night(rows, each_time=lambda row: row[1] == numbers[row[0]] % parts)


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


@pytest.mark.parametrize(("name", "part"), in_parts(DRIVE, 3))
def test_a_system_that_does_not_fit_is_refused_in_a_paragraph(
    name: str, part: int, tmp_path: Path
) -> None:
    """By day each protocol is met by some of the commands."""
    wrong = []
    for model, system in islice(misfits(list(DRIVE).index(name)), part, None, 3):
        command = DRIVE[name].format(model=model.name, system=system, store="store")
        ended = in_fork(command.split(), tmp_path, seconds=HERE)
        if ended.code != ExitCode.USAGE or "Traceback" in ended.err:
            wrong.append(tell(ended, command))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("name", "part"), in_parts(ALONE, 2))
def test_a_command_without_a_system_takes_every_protocol(
    name: str, part: int, tmp_path: Path
) -> None:
    """By day each protocol is met by two of the commands."""
    wrong = []
    for model in islice(PROTOCOLS.values(), part, None, 2):
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
