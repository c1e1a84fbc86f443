"""Where a wheel's adapters find the implementation, and who does not have to see it there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conformance.resources import resource_root

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel puts into site-packages."""
    folder = tmp_path_factory.mktemp("site-packages")
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "conformance", folder / "conformance", ignore=without)
    for name in ("spec", "models", "impl"):
        shutil.copytree(ROOT / name, folder / "conformance" / "_data" / name, ignore=without)
    return folder


def imported(code: str, *paths: Path, cwd: Path) -> str:
    """What `code` prints in a process that finds packages in these folders first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ADAPTER = "import conformance.systems.replication, impl; print(impl.__file__)"


def test_the_wheel_has_no_top_level_package_but_conformance() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = built["targets"]["wheel"]
    assert wheel["packages"] == ["conformance"]
    assert wheel["force-include"] == {
        name: f"conformance/_data/{name}" for name in ("spec", "models", "impl")
    }


def test_an_adapter_finds_the_implementation_among_the_wheel_s_data(
    site: Path, tmp_path: Path
) -> None:
    found = imported(ADAPTER, site, cwd=tmp_path)
    assert Path(found).is_relative_to(site / "conformance" / "_data")


def test_a_faulty_copy_on_the_path_comes_first(site: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "impl", tmp_path / "impl")
    found = imported(ADAPTER, tmp_path, site, cwd=tmp_path)
    assert Path(found).is_relative_to(tmp_path)


def test_a_user_s_own_package_of_that_name_stays_what_it_is(site: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "impl").mkdir(parents=True)
    (own / "impl" / "__init__.py").write_text("def create(constants):\n    return None\n")
    load = "from conformance.systems.registry import load_factory; "
    mine = load + "print(load_factory('impl:create').__module__, *__import__('impl').__path__)"
    assert imported(mine, site, own, cwd=tmp_path) == f"impl {own / 'impl'}"
    # Also where it lies in the current folder and a bundled system is driven.
    bundled = load + (
        "load_factory('conformance.systems.delayed:create'); print(__import__('impl').__file__)"
    )
    found = imported(bundled, site, cwd=own)
    assert Path(found).is_relative_to(site)


def test_in_a_checkout_nothing_is_added_to_the_path(tmp_path: Path) -> None:
    count = "import sys; before = list(sys.path); import conformance.systems.delayed; "
    count += "print(sys.path == before)"
    assert imported(count, ROOT, cwd=tmp_path) == "True"
    assert resource_root() == ROOT
