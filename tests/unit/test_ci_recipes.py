"""The recipes for CI keep what the gate writes, where it writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.modelcheck.cache import cache_dir
from conformance.resources import resource_root

RECIPES = ("GitHub Actions", "GitLab")
_FENCED = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def recipes() -> dict[str, str]:
    """The recipes of docs/ci.md, by whose runners they are for."""
    text = (resource_root() / "docs" / "ci.md").read_text(encoding="utf-8")
    return dict(zip(RECIPES, _FENCED.findall(text), strict=True))


@pytest.mark.parametrize("name", RECIPES)
def test_what_the_recipe_keeps_is_where_the_gate_looks(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = recipes()[name]
    kept = re.search(r"path(?:s: \[|: )([\w.-]+)", text)
    cache = re.search(r"KCONFORM_CACHE: (?:\$CI_PROJECT_DIR/)?([\w.-]+)", text)

    assert "kconform gate" in text
    assert kept is not None
    assert cache is not None
    monkeypatch.setenv("KCONFORM_CACHE", cache[1])
    assert cache_dir() == Path(kept[1])
