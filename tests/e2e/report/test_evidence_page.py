"""What `import` and `audit` tell of an incident, as its engineer sees it in a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.cli.main import load
from tests.e2e.report.browser import Browser, browser_here

pytestmark = pytest.mark.tlc

TUTORIAL = Path(__file__).resolve().parents[3] / "docs" / "tutorial"
MODEL = "models/store.toml"
PUT = {"name": "Put", "args": ["a", "x"]}
LIE = {"name": "CompareAndSet", "args": ["a", 1, "y"]}
EVENTS = (
    {"step": 0, "state": {"answer": "none"}},
    {"step": 1, "action": PUT, "state": {'version["a"]': 1}},
    {"step": 2, "action": LIE, "state": {"answer": "conflict"}},
)
"""The version is 1, so the specification answers `written`."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_here() as found:
        found.emulate(1200)
        yield found


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with what each command reported."""
    here = tmp_path_factory.mktemp("evidence") / "here"
    shutil.copytree(TUTORIAL, here, ignore=shutil.ignore_patterns("__pycache__", "kconform-out"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("KCONFORM_CACHE", str(here / "cache"))
        lines = (json.dumps({"trace": "shop-1", **event}) for event in EVENTS)
        Path("run.ndjson").write_text("\n".join(lines) + "\n", encoding="utf-8")
        run(f"import run.ndjson -o store --model {MODEL} --report import")
        run("audit store --report audit")
        yield here


def run(command: str) -> None:
    """A command that finds the lie."""
    name, *arguments = command.split()
    with pytest.raises(SystemExit) as ended:
        load(name)(arguments, prog_name=f"kconform {name}")
    assert ended.value.code == 1


def text(browser: Browser, selector: str) -> str:
    return str(browser.run("return document.querySelector(arguments[0]).textContent", selector))


@pytest.mark.parametrize("command", ["import", "audit"])
def test_the_page_leads_to_the_event_that_nothing_explains(
    browser: Browser, reports: Path, command: str
) -> None:
    browser.open(reports / command / "report.html")
    assert text(browser, ".badge") == "fail"
    assert text(browser, ".sentence") == "1 finding, 1 likely cause."
    assert "foreign, against Store" in text(browser, ".about")
    assert 'CompareAndSet("a", 1, "y")' in text(browser, ".finding")
    assert browser.errors() == []


@pytest.mark.parametrize("command", ["import", "audit"])
def test_the_steps_before_it_can_be_gone_through(
    browser: Browser, reports: Path, command: str
) -> None:
    browser.open(reports / command / "report.html")
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    at_the_event = text(browser, ".finding .now")
    assert "answer, expected" in at_the_event
    assert "conflict" in at_the_event
    browser.type(".finding input[type=range]", "\ue012")  # arrow left
    assert text(browser, ".finding output") == 'Step 1 of 2: Put("a", "x")'
