"""Lets mkdocs show pages that are written for GitHub: their links lead into the sources.

A page links to what it speaks of by its place in the repository (`../spec/Replication.tla`), so the
links work on GitHub. A site has `docs/` only. So each target becomes a page of the site: README.md
and its like below `project/`, sources and folders below `source/`. A target that is not there
stays as it is, and `mkdocs build --strict` fails.

The diagrams' script is served by the site itself: it comes with the package mermaidx, and nothing
of a page is fetched from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files as resources
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent
PROJECT = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
MERMAID = "javascripts/mermaid.js"
# The theme initializes mermaid itself, and would shrink diagrams until no phone shows their words.
_NATURAL_SIZE = b"""
const initialize = mermaid.initialize.bind(mermaid);
const natural = { useMaxWidth: window.innerWidth > 700 };
mermaid.initialize = (config) =>
  initialize({ ...config, flowchart: natural, sequence: { ...config.sequence, ...natural } });
"""

_FENCED = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)|`[^`\n]*`\B)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(#[^)\s]*)?(?=\))")
_IN_SITE = (".md", ".png", ".svg")
_UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
_LANGUAGES = {".py": "python", ".toml": "toml", ".java": "java", ".go": "go", ".json": "json"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Expand each `folder/*` of the navigation to the folder's pages, its README first."""
    config.nav = _expanded(config.nav)
    return config


def _expanded(nav: Any) -> Any:
    if isinstance(nav, dict):
        return {title: _expanded(entry) for title, entry in nav.items()}
    if isinstance(nav, list):
        return [page for entry in nav for page in _pages_of(entry)]
    return nav


def _pages_of(entry: Any) -> list[Any]:
    if not isinstance(entry, str) or not entry.endswith("/*"):
        return [_expanded(entry)]
    folder = entry.removesuffix("*")
    names = (page.name for page in (ROOT / "docs" / folder).glob("*.md"))
    return [folder + name for name in sorted(names, key=lambda name: (name != "README.md", name))]


def on_files(files: Files, *, config: MkDocsConfig, **_: Any) -> Files:
    """Add the project's own pages, every linked source, and the diagrams' script."""
    for name in PROJECT:
        files.append(File.generated(config, f"project/{name}", content=_text(name)))
    for target in sorted({target for page in _pages() for target in _sources_of(page)}):
        content = _UNSEARCHED + _source(target)
        files.append(File.generated(config, f"source/{target}.md", content=content))
    script = resources("mermaidx").joinpath("assets/mermaid.js").read_bytes()
    files.append(File.generated(config, MERMAID, content=script + _NATURAL_SIZE))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Let each link lead to the page that its target has in the site."""
    uri = page.file.src_uri
    if uri.startswith("source/"):
        return markdown
    place = uri.removeprefix("project/") if uri.startswith("project/") else f"docs/{uri}"

    def moved(link: re.Match[str]) -> str:
        target = _in_site(place, link[1])
        if target is None:
            return link[0]
        return relpath(target, str(PurePosixPath(uri).parent)) + (link[2] or "")

    parts = _FENCED.split(markdown)
    return "".join(part if i % 2 else _LINK.sub(moved, part) for i, part in enumerate(parts))


def _pages() -> Iterator[str]:
    yield from PROJECT
    for path in sorted(ROOT.glob("docs/**/*.md")):
        yield path.relative_to(ROOT).as_posix()


def _text(place: str) -> str:
    return (ROOT / place).read_text(encoding="utf-8")


def _sources_of(page: str) -> Iterator[str]:
    """The places in the repository that a page links to and that are no page of it."""
    for link in _LINK.finditer(_FENCED.sub("", _text(page))):
        site = _in_site(page, link[1])
        if site is not None and site.startswith("source/"):
            yield site.removeprefix("source/").removesuffix(".md")


def _in_site(page: str, link: str) -> str | None:
    """Where the site has what a page of the repository links to; None if there is no such thing."""
    target = normpath(PurePosixPath(page).parent / link)
    if target.startswith("..") or not (ROOT / target).exists():
        return None
    if target in PROJECT:
        return f"project/{target}"
    if target == "docs":
        return "README.md"
    if target.startswith("docs/") and target.endswith(_IN_SITE):
        return target.removeprefix("docs/")
    return f"source/{target}.md"


def _source(place: str) -> str:
    """A page with the text of a file, or with the names in a folder."""
    path = ROOT / place
    if path.is_dir():
        names = sorted(child.name + "/" * child.is_dir() for child in path.iterdir())
        listed = "\n".join(f"- `{name}`" for name in names if not name.startswith((".", "__")))
        return f"# {place}\n\n{listed}\n"
    language = _LANGUAGES.get(path.suffix, "text")
    return f"# {place}\n\n~~~~~~~~ {{.{language}}}\n{_text(place)}\n~~~~~~~~\n"
