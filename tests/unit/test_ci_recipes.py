"""The README's recipes for CI are those of docs/ci.md, shortened: they cannot drift apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.modelcheck.cache import cache_dir
from conformance.resources import resource_root

RECIPES = ("GitHub Actions", "GitLab")
_FENCED = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def recipes(page: str) -> dict[str, list[str]]:
    """The lines of the recipes of a page, by whose runners they are for."""
    text = (resource_root() / page).read_text(encoding="utf-8")
    return {
        name: block.splitlines() for name, block in zip(RECIPES, _FENCED.findall(text), strict=True)
    }


@pytest.mark.parametrize("name", RECIPES)
def test_the_readme_has_the_recipe_in_the_same_words(name: str) -> None:
    long = iter(recipes("docs/ci.md")[name])
    short = recipes("README.md")[name]

    assert any("kconform gate" in line for line in short)
    assert [line for line in short if line not in long] == []


@pytest.mark.parametrize("name", RECIPES)
def test_what_the_recipe_keeps_is_where_the_gate_looks(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(recipes("README.md")[name])
    kept = re.search(r"path(?:s: \[|: )([\w.-]+)", text)
    told = re.search(r"KCONFORM_CACHE: (?:\$CI_PROJECT_DIR/)?([\w.-]+)", text)

    assert kept is not None
    assert told is not None
    monkeypatch.setenv("KCONFORM_CACHE", told[1])
    assert cache_dir() == Path(kept[1])
