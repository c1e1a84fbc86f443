"""The HTML report: one self-contained page, made from the same report as the JSON.

Without its script the page is complete text and pictures; the script adds the slider through a
behaviour's steps, filters, sorting and copying. A content security policy names the script by its
hash, so that nothing else runs, whatever a trace holds.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from conformance.events import Exhibit
from conformance.printable import counted
from conformance.report.collect import Report
from conformance.report.page.sources import sources
from conformance.report.page.view import ReportPage, anchor, shown, view_of
from conformance.report.text import printable
from conformance.report.trend import Trend
from conformance.story.svg import STYLE

MOST_BYTES = 2_950_000
"""A page is to be opened from a CI artifact: under 3 MB. Findings are drawn in any case; of the
counterexamples that were expected, those that fit."""
_OWN = PackageLoader("conformance.report", "page")


def dumps(report: Report, *, trend: Trend | None = None, now: float | None = None) -> str:
    """The page's text. `now` is the time of the run in seconds since the epoch."""
    moment = time.gmtime(time.time() if now is None else now)
    when = time.strftime("%Y-%m-%d %H:%M UTC", moment)

    def rendered(view: ReportPage) -> str:
        return _render("page.html.j2", view=view, when=when, anchor=anchor, sources=view.sources)

    view = view_of(report, trend)
    page = rendered(view)
    while (excess := len(page.encode()) - MOST_BYTES) > 0:
        smaller = view.with_fewer_drawn(excess)
        if smaller is view:
            break
        view, page = smaller, rendered(smaller)
    return page


def behaviour_page(exhibit: Exhibit, title: str) -> str:
    """A page of one behaviour."""
    own = sources((), (exhibit,), ())
    return _render("behaviour.html.j2", shown=shown("behaviour", exhibit), title=title, sources=own)


def render(template: str, *, package: str, folder: str, style: str = "", **values: object) -> str:
    """A page of another package's template, in the report's style and under its policy.

    The template finds those of the report too; `style` is further CSS.
    """
    loader = ChoiceLoader([PackageLoader(package, folder), _OWN])
    return _render(template, loader, style, **values)


def _render(
    template: str, loader: BaseLoader | None = None, own_style: str = "", **values: object
) -> str:
    environment = Environment(
        loader=loader or _OWN,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters["data"] = _data
    environment.filters["text"] = _text
    environment.filters["counted"] = counted
    script = _source(environment, "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(
        # Markup: our own texts, and drawings whose texts were escaped when they were drawn.
        style=Markup(_source(environment, "page.css") + STYLE + own_style),
        script=Markup(script),
        script_hash=digest,
        drawn=Markup,
        **values,
    )


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _data(value: object) -> Markup:
    """JSON inside of a script element, which only a `<` could end: nothing else is escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _text(value: object) -> Markup:
    """What stands between tags, where nothing but `<` and `&` means anything. TLA+ is full of
    quotes and `|->`: written as elsewhere they would be a fifth of a page."""
    text = printable(str(value))
    return Markup(text.replace("&", "&amp;").replace("<", "&lt;"))


def _visible(value: object) -> object:
    """Control characters as signs: HTML has no place for them, and a reader wants to see them."""
    return printable(value) if type(value) is str else value
