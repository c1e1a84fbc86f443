"""Each link of a page leads somewhere; each module that a design page names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "conformance"
DESIGN = sorted(
    [ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/design/*.md"), *ROOT.glob("docs/decisions/*.md")]
)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_MODULE = re.compile(r"`(?:conformance[./])?([a-z_]+(?:[./]\w+)+)`")
_LINK = re.compile(r"(?<!`)\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lost = []
    for path, anchor in _LINK.findall(text):
        if "://" in path:
            continue
        target = page.parent / path if path else page
        there = target.exists()
        if not there or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(f"{path}#{anchor}")
    assert lost == []


def is_there(name: str) -> bool:
    """Whether the harness has this module; names within a module are not looked up."""
    place = PACKAGE
    for part in re.split(r"[./]", name):
        place /= part
        if not place.is_dir():
            break
    return place.exists() or place.with_suffix(".py").exists() or not place.name.islower()


def modules(page: Path) -> list[str]:
    """The modules that a page names, as `judge.events` or `registry.py`."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    places = [name for name in _MODULE.findall(text) if not name.endswith(".toml")]
    names = [name.removesuffix(".py") for name in places]
    packages = {path.stem for path in PACKAGE.iterdir()}
    return [name for name in names if re.split(r"[./]", name)[0] in packages]


@pytest.mark.parametrize("page", DESIGN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_a_design_page_names_is_there(page: Path) -> None:
    assert [name for name in modules(page) if not is_there(name)] == []


def test_design_pages_name_modules() -> None:
    assert sum(len(modules(page)) for page in DESIGN) > 100
    assert not is_there("judge.no_such_module")
