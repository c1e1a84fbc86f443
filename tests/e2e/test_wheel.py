"""What a user installs: the wheel alone, in an environment and a folder without the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

hatchling = pytest.importorskip("hatchling.build", reason="builds the wheel with hatchling")

ROOT = Path(__file__).parents[2]
MODELS = ("group/maximum-size-2m", "controller/late-requests-1b")
STAGES = ("check", "suite", "replay", "interleave", "explore", "record", "audit", "canary")
SETTINGS = "[tiers.ci]\ntraces = 200\nexamples = 5\ninterruptions = 1\n"


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the wheel, and a folder to work in that has settings alone."""

    packages: Path
    python: Path
    folder: Path
    environment: Mapping[str, str]

    def kconform(self, *arguments: str, code: int = 0) -> str:
        """What a command prints."""
        command = [str(self.python), "-m", "conformance.cli", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout in an environment of its own; its dependencies are ours."""
    home = tmp_path_factory.mktemp("wheel")
    wheel = built(home)
    venv.create(home / "env", symlinks=True)
    places = {"base": str(home / "env"), "platbase": str(home / "env")}
    packages = Path(sysconfig.get_path("purelib", "venv", places))
    # A wheel of pure Python is installed by unpacking it.
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # A path in a .pth file gives the packages of a folder without its own .pth files: so what we
    # depend on is there, and the checkout, to which such a file of ours may lead, is not.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder := home / "work").mkdir()
    (folder / "kconform.toml").write_text(SETTINGS)
    # A user's own package of the implementation's name, first on the path: all works beside it.
    (folder / "impl").mkdir()
    (folder / "impl" / "__init__.py").write_text("raise ImportError('not for kconform')")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
    cache = {"XDG_CACHE_HOME": str(home / "cache"), "PYTHONHASHSEED": "0"}
    cache["PYTHONPATH"] = str(folder)
    return Installed(packages, home / "env" / "bin" / "python", folder, inherited | cache)


def built(folder: Path) -> Path:
    """The wheel, made as `pip wheel` makes it."""
    make = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    command = [sys.executable, "-c", make, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


def test_it_is_one_package_and_a_command(installed: Installed) -> None:
    ours = {path.name for path in installed.packages.iterdir() if path.suffix != ".pth"}
    (info,) = (name for name in ours if name.endswith(".dist-info"))
    assert ours == {"conformance", info}
    metadata = PathDistribution(installed.packages / info)
    assert {(entry.group, entry.value) for entry in metadata.entry_points} == {
        ("console_scripts", "conformance.cli.entry:run"),
        ("pytest11", "conformance.plugin"),
    }


def test_nothing_of_the_checkout_is_in_reach(installed: Installed) -> None:
    code = "import conformance, sys; print(conformance.__file__, *sys.path, sep='\\n')"
    command = [installed.python, "-c", code]
    environment = installed.environment
    done = subprocess.run(
        command, cwd=installed.folder, env=environment, capture_output=True, text=True, check=True
    )
    found, *reach = done.stdout.splitlines()
    assert Path(found).is_relative_to(installed.packages)
    assert str(ROOT) not in reach


def test_its_gate_judges_and_writes_a_report(installed: Installed) -> None:
    """Models that are named are asked for their own actions only: two of them pass."""
    installed.kconform("gate", *MODELS, "-o", "out")
    report = json.loads((installed.folder / "out" / "report.json").read_text())
    verdicts = {name: stage["verdict"] for name, stage in report["stages"].items()}
    assert verdicts == dict.fromkeys((*STAGES, "coverage"), "pass")
    page = (installed.folder / "out" / "report.html").read_text()
    assert all(model in page for model in MODELS)


def test_it_shows_what_an_action_becomes(installed: Installed) -> None:
    told = installed.kconform("show", "CommittedNeverLost", "--python")
    assert "CommittedNeverLost ==" in told
    assert "def " in told


def test_it_finds_a_historical_bug(installed: Installed) -> None:
    (bug,) = json.loads(installed.kconform("bugs", "A8", "--json"))["bugs"]
    assert (bug["bug"], bug["killed"]) == ("A8", True)


def test_a_bug_that_only_tests_of_the_checkout_see_is_not_judged(installed: Installed) -> None:
    report = json.loads(installed.kconform("bugs", "M2", "--json", code=3))
    assert "its tests are not here: they belong to a checkout" in report["findings"][0]["message"]
