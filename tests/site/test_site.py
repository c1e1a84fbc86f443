"""The built site in a real browser: what its build cannot see.

`tox run -e docs` builds it and says where it is (KCONFORM_SITE).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.e2e.report.browser import Browser, browser_here

ROOT = Path(__file__).resolve().parents[2]
BUILT = "KCONFORM_SITE"
if BUILT not in os.environ:
    pytest.skip(f"{BUILT} names no built site: tox run -e docs", allow_module_level=True)
SITE = Path(os.environ[BUILT])
PAGES = sorted(
    page.parent.relative_to(SITE).as_posix()
    for page in SITE.glob("**/index.html")
    if not page.is_relative_to(SITE / "source")
)
_FOREIGN = """
    return performance.getEntriesByType('resource').map(entry => entry.name)
      .filter(name => !name.startsWith(location.origin))
"""
_FITS = "return document.documentElement.scrollWidth <= window.innerWidth ? 1 : 0"
_DRAWN = "return document.querySelectorAll('div.mermaid').length"
_HITS = "return document.querySelectorAll('.md-search-result__link').length"


def diagrams() -> Iterator[tuple[str, int]]:
    """Each page of the site that has diagrams, and how many."""
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        count = page.read_text(encoding="utf-8").count("```mermaid\n")
        place = page.relative_to(ROOT).with_suffix("").as_posix()
        if count:
            inside = place.startswith("docs/")
            yield place.removeprefix("docs/") if inside else f"project/{place}", count


DIAGRAMS = [*diagrams()]


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_here() as session:
        yield session


def eventually(browser: Browser, script: str, least: int) -> int:
    """What a script counts, once that is enough or ten seconds are over."""
    deadline = time.monotonic() + 10
    while (count := browser.run(script)) < least and time.monotonic() < deadline:
        time.sleep(0.1)
    return int(count)


def test_the_site_has_its_pages() -> None:
    assert {".", "project/ARCHITECTURE", "kafka", "design", "decisions", "lab-notes"} <= {*PAGES}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_and_fetches_nothing_from_elsewhere(
    browser: Browser, address: str, page: str
) -> None:
    browser.visit(f"{address}/{page}/")

    for width in (1200, 360):
        browser.emulate(width)
        assert eventually(browser, _FITS, 1)  # the theme's drawer moves for a moment
    assert browser.run(_FOREIGN) == []
    assert browser.errors() == []


@pytest.mark.parametrize(("page", "count"), DIAGRAMS)
def test_every_diagram_is_drawn(browser: Browser, address: str, page: str, count: int) -> None:
    browser.emulate(1200)
    browser.visit(f"{address}/{page}/")

    assert eventually(browser, _DRAWN, count) == count
    assert browser.errors() == []


def test_the_search_finds_a_word(browser: Browser, address: str) -> None:
    browser.emulate(1300)
    browser.visit(f"{address}/")
    browser.click(".md-search__input")
    browser.type(".md-search__input", "deviation")

    assert eventually(browser, _HITS, 1) > 0
