"""The house's one structural rule: imports point downwards only (ARCHITECTURE.md, Layers)."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LAYERS: dict[str, int] = {
    "conformance": 0,
    "conformance.errors": 0,
    "conformance.verdict": 0,
    "conformance.events": 0,
    "conformance.children": 0,
    "conformance.garbage": 0,
    "conformance.resources": 0,
    "conformance.files": 0,
    "conformance.conversion": 0,
    "conformance.toml": 0,
    "conformance.pickled": 0,
    "conformance.inputs": 0,
    "conformance.printable": 0,
    "conformance.compared": 0,
    # A library of its own, with layers of its own; the errors of the whole house are its.
    "conformance.tla": 0,
    "conformance.workers": 1,
    "conformance.spark": 1,
    "conformance.story": 2,
    "conformance.modelcheck": 2,
    "conformance.kafka": 2,
    "conformance.suites": 2,
    "conformance.traces": 2,
    "conformance.deviations": 3,
    "conformance.registry": 3,
    "conformance.systems": 3,
    "conformance.judge": 3,
    "conformance.recordings": 3,
    "conformance.client": 3,
    "conformance.replay": 4,
    "conformance.audit": 4,
    "conformance.inspect": 4,
    "conformance.load": 4,
    "conformance.history": 4,
    "conformance.report": 4,
    "conformance.workload": 4,
    "conformance.config": 4,
    "conformance.stages": 5,
    "conformance.bugs": 5,
    "conformance.gate": 6,
    "conformance.plugin": 6,
    "conformance.cli": 7,
}

WITHOUT_KAFKA = (
    "tla",
    "story",
    "modelcheck",
    "suites",
    "traces",
    "judge",
    "replay",
    "audit",
    "report",
)
KAFKA_WORDS = ("kafka", "leader_epoch", "high_watermark", "follower", "replica")


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(name: str) -> int:
    parts = name.split(".")[:2]
    return LAYERS[".".join(parts)]


@cache
def imports(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


@pytest.mark.parametrize("path", modules("conformance"), ids=dotted)
def test_conformance_imports_point_downwards(path: Path) -> None:
    own = layer(dotted(path))
    for name in imports(path):
        top = ".".join(name.split(".")[:2])
        if name.startswith("conformance.") and top in LAYERS:
            assert LAYERS[top] <= own, f"{dotted(path)} imports {name} of a higher layer"


@pytest.mark.parametrize("path", modules("conformance/history"), ids=dotted)
def test_clients_histories_need_nothing_of_brokers_files(path: Path) -> None:
    assert not {name for name in imports(path) if name.startswith("conformance.inspect")}


OWN_ADAPTERS = (
    "acknowledgement",
    "compaction",
    "consumer",
    "controller",
    "data",
    "delayed",
    "directories",
    "fetchers",
    "group",
    "offsets",
    "persister",
    "positions",
    "produce",
    "reassignment",
    "replication",
    "runtime",
    "sessions",
    "share",
    "storage",
    "transaction",
)
"""Adapters of `impl`. All other systems are foreign: a fault in impl must not change what is said
of them, so they do not stand on it, not even by way of another module."""
OF_OWN_ADAPTERS = tuple(f"conformance.systems.{name}" for name in (*OWN_ADAPTERS, "threads"))


def is_in(module: str, package: str) -> bool:
    """Whole names only: systems.shared is no part of systems.share."""
    return f"{module}.".startswith(f"{package}.")


def is_own(module: str) -> bool:
    return any(is_in(module, package) for package in OF_OWN_ADAPTERS)


@pytest.mark.parametrize("path", modules("conformance"), ids=dotted)
def test_only_our_own_adapters_know_the_implementation(path: Path) -> None:
    if not is_own(dotted(path)):
        assert not {name for name in imports(path) if name.split(".")[0] == "impl"}


def test_each_of_our_own_adapters_knows_the_implementation() -> None:
    for package in OF_OWN_ADAPTERS:
        known = {
            name
            for path in modules("conformance")
            if is_in(dotted(path), package)
            for name in imports(path)
        }
        assert any(name.split(".")[0] == "impl" for name in known), package


@pytest.mark.parametrize("path", modules("conformance"), ids=dotted)
def test_nothing_stands_on_our_own_adapters(path: Path) -> None:
    """They are found by their names (`registry`), so nothing reaches impl through them."""
    if not is_own(dotted(path)):
        assert not {name for name in imports(path) if is_own(name)}


def test_what_is_foreign_is_loaded_without_the_implementation() -> None:
    foreign = [
        dotted(path)
        for package in ("systems", "client", "recordings", "kafka")
        for path in modules(f"conformance/{package}")
        if not is_own(dotted(path)) and path.name != "__main__.py"
    ]
    code = (
        f"import importlib, sys\nfor name in {foreign!r}: importlib.import_module(name)\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'impl'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("path", modules("impl"), ids=dotted)
def test_the_implementation_knows_nothing_of_the_harness(path: Path) -> None:
    forbidden = {"conformance", "hypothesis", "pytest", "pyspark"}
    assert not {name for name in imports(path) if name.split(".")[0] in forbidden}


@pytest.mark.parametrize("package", WITHOUT_KAFKA)
def test_the_core_knows_no_kafka(package: str) -> None:
    for path in modules(f"conformance/{package}"):
        names = {
            node.id.lower() if isinstance(node, ast.Name) else node.name.lower()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, (ast.Name, ast.FunctionDef, ast.ClassDef))
        }
        known = {name for name in names for word in KAFKA_WORDS if word in name}
        assert not known, f"{dotted(path)} speaks of {', '.join(sorted(known))}"


def test_the_architecture_shows_these_layers() -> None:
    from tests.unit import layer_table  # imports LAYERS of this module

    shown = layer_table.TABLE.shown()
    assert shown == layer_table.table(), "run python -m tests.unit.layer_table"


def test_the_architecture_can_be_held_in_mind() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 200


# ---- beside the package ----------------------------------------------------------------------

BESIDE = [*modules("benchmarks"), *modules("experiments")]
"""Commands that print figures, and commands that produce evidence."""


def imported_beside(path: Path) -> set[str]:
    """The modules of these folders that a module imports."""
    return imports(path) & {dotted(other) for other in BESIDE}


@pytest.mark.parametrize("path", BESIDE, ids=dotted)
def test_commands_import_each_other_in_no_circle(path: Path) -> None:
    below = {dotted(other): imported_beside(other) for other in BESIDE}
    reached, pending = set[str](), [*below[dotted(path)]]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(below[name])
    assert dotted(path) not in reached


@pytest.mark.parametrize("path", BESIDE, ids=dotted)
def test_commands_are_imported_by_their_full_names(path: Path) -> None:
    """As a file's neighbour a module would be there for one way to start only."""
    assert imports(path).isdisjoint({other.stem for other in BESIDE})


@pytest.mark.parametrize("path", modules("benchmarks"), ids=dotted)
def test_no_benchmark_needs_an_experiment(path: Path) -> None:
    assert not {name for name in imports(path) if name.split(".")[0] == "experiments"}


@pytest.mark.parametrize("path", [*modules("conformance"), *modules("impl")], ids=dotted)
def test_the_package_needs_neither(path: Path) -> None:
    assert imports(path).isdisjoint({"benchmarks", "experiments"})
    assert not {name for name in imports(path) if name.startswith(("benchmarks.", "experiments."))}


def test_benchmarks_and_experiments_are_there() -> None:
    assert any(imported_beside(path) for path in BESIDE), "some import others"
