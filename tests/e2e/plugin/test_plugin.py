"""A user's own pytest project: three lines find the tutorial's bug, and pass once it is mended."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.tlc

ROOT = Path(__file__).resolve().parents[3]
TUTORIAL = ROOT / "docs" / "tutorial"
BUG = "        del self.entries[key]"
MENDED = "        self.entries[key] = (None, self.version(key) + 1)"
CONFIG = """
INIT Init
NEXT Next
CONSTANTS Keys = {"a", "b"}
Values = {"x"}
Versions = {0, 1, 2}
INVARIANTS TypeOK EveryWriteHasItsVersion
PROPERTY VersionsGrow
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """The tutorial's folder, as the current one."""
    ignored = shutil.ignore_patterns("__pycache__", "kconform-out", ".hypothesis")
    shutil.copytree(TUTORIAL, pytester.path, dirs_exist_ok=True, ignore=ignored)
    monkeypatch.setenv("KCONFORM_CACHE", str(cache))
    return pytester.path


def mend(project: Path) -> None:
    store = project / "store.py"
    text = store.read_text()
    assert BUG in text
    store.write_text(text.replace(BUG, MENDED))


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "conformance.plugin", "-v", "-W", "error", *options)


def test_the_tutorials_bug_is_found_with_its_story(
    pytester: pytest.Pytester, project: Path
) -> None:
    result = run(pytester)
    names = ["test_model", *(f"test_suite*part-{i}-of-4*" for i in range(1, 5)), "test_exploration"]
    result.stdout.fnmatch_lines(
        [f"test_store.py::TestStore::{name}*" for name in names], consecutive=False
    )
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] == 1, "the spec itself is in order"
    assert outcomes["failed"] == 5
    text = result.stdout.str()
    assert "expected 2" in text
    assert "test_store.py::TestStore::test_model PASSED" in re.sub(r" <- \S+", "", text)
    assert "Traceback" not in text
    assert "cases.py:" not in text, "the story, not our code"

    command = re.search(r"Reproduce: kconform (replay \S+)", text)
    assert command is not None
    again = subprocess.run(
        [sys.executable, "-m", "conformance.cli", *shlex.split(command[1])],
        capture_output=True, text=True, check=False, cwd=project,
    )  # fmt: skip
    assert again.returncode == 1, again.stderr
    assert "FAILED as before" in again.stdout


def test_the_mended_store_passes_under_a_profile_and_a_seed(
    pytester: pytest.Pytester, project: Path
) -> None:
    mend(project)
    result = run(pytester, "--kconform-profile=dev", "--kconform-seed=7")
    result.assert_outcomes(passed=6)


def test_a_module_and_its_configuration_need_no_manifest(
    pytester: pytest.Pytester, project: Path
) -> None:
    mend(project)
    (project / "Small.cfg").write_text(CONFIG)
    (project / "test_store.py").write_text(
        "from hypothesis import settings\n"
        "from conformance.plugin import conformance_tests\n"
        "settings.register_profile('three', max_examples=3)\n"
        "settings.load_profile('three')\n"
        "TestSmall = conformance_tests("
        "'models/Store.tla', config='Small.cfg', system='store:Adapter', parts=1)\n"
    )
    result = run(pytester)
    result.assert_outcomes(passed=3)


def test_a_violated_spec_and_a_misspelt_name_are_told_in_a_paragraph(
    pytester: pytest.Pytester, project: Path
) -> None:
    config = CONFIG.replace("TypeOK EveryWriteHasItsVersion", "TypeOk")
    (project / "models" / "Store.cfg").write_text(config)
    (project / "test_store.py").write_text(
        "from conformance.plugin import conformance_tests\n"
        "TestNames = conformance_tests('models/Store.tla', system='store:Adapter', parts=1)\n"
        "TestNone = conformance_tests('models/Shop.tla', system='store:Adapter', parts=1)\n"
    )
    result = run(pytester)
    text = result.stdout.str()
    assert "passed" not in result.parseoutcomes()
    assert "names TypeOk, which the module Store does not have. Did you mean TypeOK?" in text
    assert "There is no TLA+ module" in text
    assert "Traceback" not in text


def test_installed_and_named_on_the_command_line_it_is_registered_once(
    pytester: pytest.Pytester, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in tox, where the package is installed; here a folder beside the project stands for it."""
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"{name} = {target}" for name, target in entries["pytest11"].items()]
    dist = project / "site" / "installed-1.0.dist-info"
    dist.mkdir(parents=True)
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: installed\nVersion: 1.0\n")
    (dist / "entry_points.txt").write_text("[pytest11]\n" + "\n".join(lines) + "\n")
    monkeypatch.setenv("PYTHONPATH", f"{project / 'site'}:{ROOT}")
    for options in (["-p", "conformance.plugin"], []):
        result = pytester.runpytest_subprocess(*options, "--help")
        assert result.ret == 0
        assert result.stdout.str().count("--kconform-profile") == 1


def test_a_start_of_pytest_loads_nothing_of_the_harness(pytester: pytest.Pytester) -> None:
    heavy = ("numpy", "hypothesis", "ortools", "pyspark", "conformance.stages")
    pytester.makepyfile(
        "import sys\n"
        f"def test_nothing():\n    assert not [m for m in {heavy!r} if m in sys.modules]\n"
    )
    # Hypothesis brings a plugin of its own.
    result = pytester.runpytest_subprocess("-p", "conformance.plugin", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)


RARELY = """
from store import Adapter

class Rare(Adapter):
    sometimes = frozenset({{"version"}})
    looks = {looks}
    def observe(self):
        Rare.looks -= 1
        return super().observe() if Rare.looks >= 0 else {{**super().observe(), "version": None}}

def create(constants):
    return Rare(constants)
"""


@pytest.mark.parametrize(("looks", "failed"), [(3, 0), (0, 1)], ids=["rarely", "never"])
def test_what_some_parts_never_show_the_parts_together_must_show(
    pytester: pytest.Pytester, project: Path, looks: int, failed: int
) -> None:
    mend(project)
    (project / "rare.py").write_text(RARELY.format(looks=looks))
    configuration = project / "kconform.toml"
    configuration.write_text(configuration.read_text().replace("store:create", "rare:create"))
    tests = (project / "test_store.py").read_text().replace('.toml"', '.toml", parts=3')
    (project / "test_store.py").write_text(tests)
    result = run(pytester, "-k", "test_suite")
    assert result.parseoutcomes().get("failed", 0) == failed, result.stdout.str()
    assert ("all parts of the suite together: " in result.stdout.str()) == bool(failed)
