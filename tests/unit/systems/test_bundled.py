"""Where a wheel's adapters find the implementation, and who does not have to see it there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conformance.resources import resource_root
from hatch_build import renamed

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel puts into site-packages."""
    folder = tmp_path_factory.mktemp("site-packages")
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "conformance", folder / "conformance", ignore=without)
    for name in ("spec", "models", "impl"):
        shutil.copytree(ROOT / name, folder / "conformance" / "_data" / name, ignore=without)
    for path in (folder / "conformance" / "systems").rglob("*.py"):
        path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a user's own package called impl."""
    package = tmp_path / "own" / "impl"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def create(constants):\n    return None\n")
    return package.parent


def imported(code: str, *paths: Path, cwd: Path, **variables: str) -> str:
    """What `code` prints in a process that finds packages in these folders first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **variables}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ADAPTER = (
    "import sys, conformance.systems.replication; "
    "print(*(one.__file__ for name, one in sys.modules.items() if name.endswith('impl.partition')))"
)


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


def test_a_faulty_copy_comes_first(site: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "impl", tmp_path / "impl")
    found = imported(ADAPTER, tmp_path, ROOT, cwd=tmp_path)
    assert Path(found).is_relative_to(tmp_path)
    found = imported(ADAPTER, site, cwd=tmp_path, KCONFORM_IMPLEMENTATION=str(tmp_path))
    assert Path(found).is_relative_to(tmp_path)


def test_a_user_s_own_package_of_that_name_stays_what_it_is(
    site: Path, own: Path, tmp_path: Path
) -> None:
    """First on the path, last, imported before or afterwards: both are driven in one process."""
    load = "from conformance.registry import load_factory; import sys; "
    mine = "made = load_factory('impl:create'); "
    bundled = "load_factory('conformance.systems.replication:create'); "
    where = (
        "print(sys.modules['impl'].__file__); "
        "print(sys.modules['conformance._data.impl.partition'].__file__)"
    )
    for paths in ((site, own), (own, site)):
        for order in (mine + bundled, bundled + mine):
            theirs, ours = imported(load + order + where, *paths, cwd=tmp_path).splitlines()
            assert Path(theirs).is_relative_to(own)
            assert Path(ours).is_relative_to(site)


def test_every_adapter_that_drives_the_implementation_makes_it_importable_first() -> None:
    systems = ROOT / "conformance" / "systems"
    drives = [
        path
        for path in systems.rglob("*.py")
        if re.search(r"^(from|import) impl\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert drives
    for path in drives:
        adapter = systems / path.relative_to(systems).parts[0]
        first = adapter / "__init__.py" if adapter.is_dir() else adapter
        assert "import conformance.systems.bundled" in first.read_text(encoding="utf-8"), first


def test_the_implementation_imports_itself_relatively() -> None:
    """So it can be imported by either name, and its text is the same in a wheel."""
    for path in sorted((ROOT / "impl").rglob("*.py")):
        assert not re.search(r"^\s*(from|import) impl\b", path.read_text(), re.MULTILINE), path


def test_the_adapters_alone_import_the_implementation_and_a_wheel_renames_it_there() -> None:
    systems = ROOT / "conformance" / "systems"
    for path in sorted((ROOT / "conformance").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"^\s*(?:from|import) impl\b", text, re.MULTILINE)
        assert not names or path.is_relative_to(systems), path
        assert not re.search(r"^\s*(from|import) impl\b", renamed(text), re.MULTILINE), path


def test_in_a_checkout_nothing_is_added_to_the_path(tmp_path: Path) -> None:
    count = "import sys; before = list(sys.path); import conformance.systems.delayed; "
    count += "print(sys.path == before)"
    assert imported(count, ROOT, cwd=tmp_path) == "True"
    assert resource_root() == ROOT
