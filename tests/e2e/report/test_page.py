"""The report as people meet it: in a browser, with keys, on a phone, in the dark, under attack.

Screenshots go to the folder that KCONFORM_SCREENSHOTS names, if it names one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.events import (
    ComparedModel,
    Difference,
    Event,
    Exhibit,
    Finding,
    JsonValue,
    ModuleText,
    Reason,
    StageFinished,
)
from conformance.report import page
from conformance.report.collect import Collector, Report
from conformance.story.behaviour import Behaviour, Step
from conformance.story.exhibit import exhibit
from conformance.story.picture import LaneLog, LaneMessage, Lanes, Picture
from conformance.tla import Action, Fn, State
from conformance.verdict import Verdict
from tests.e2e.report.browser import Browser, browser_here

HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "<svg onload=window.hacked=1>",
    "{{ 7 * 7 }}${window.hacked=1}",
    "\x1b[2J\x1b]0;owned\x07\u202egnp.exe",
)
EVIL = " ".join(HOSTILE)
PICTURE = Picture(
    schema=1,
    lanes=Lanes(keys_of="log", before=("controller",)),
    logs=(LaneLog(entries="log"),),
    messages=(
        LaneMessage(variable="wire", out=("Ask",), back=("Answer",), peer="b1", carries=("text",)),
    ),
)


TEXT = f"""\
Send ==
  \\/ here \\/ there
  \\/ nowhere
\\* {EVIL}
Never == 2
"""
BRANCHES = {"Spec:2:6-2:9": 2, "Spec:2:14-2:17": 2, "Spec:3:6-3:12": 3}
SHAPE: dict[str, JsonValue] = {
    "states": 7,
    "depths": [1, 4, 2],
    "sampled": 7,
    "situations": {"FetchIsParkedAtTheFormerLeaderOfTheEpochBefore": 3, EVIL: 1},
}


def state(ours: tuple[int, ...], kind: str) -> State:
    message = Fn({"type": kind, "text": EVIL if kind == "Ask" else ""})
    silent = Fn({"type": "None", "text": ""})
    return (Fn({"b1": (1, 1), "b2": ours}), Fn({"b1": silent, "b2": message}))


def behaviour() -> Exhibit:
    steps = (
        Step(None, state((), "None")),
        Step(Action("Send", ("b2", EVIL)), state((), "Ask")),
        Step(Action("Answer", ("b1",)), state((), "Answer")),
        Step(Action("Append", ("b2",)), state((1,), "None")),
    )
    seen = {"log": Fn({"b1": (1, 1), "b2": (1, 2)})}
    reasons = (
        Reason(0, f"Why {EVIL} is false:"),
        Reason(1, "A /\\ B", "is FALSE", "Spec:3:1"),
        Reason(2, "B", "is FALSE", "Spec:3:6", bound=EVIL),
    )
    told = Behaviour(("log", "wire"), steps, seen, EVIL, reasons, departs=True)
    return exhibit(told, PICTURE, EVIL)


def events() -> Iterator[Event]:
    shown = behaviour()
    yield ComparedModel(
        spec="Spec",
        protocol=EVIL,
        model="m",
        variant="V",
        system=EVIL,
        version="1",
        actions=("Send", "Append", "Never"),
        modules=(ModuleText("Spec", "spec/Spec.tla", TEXT),),
        places={"Send": ("Spec", 1, 4), "Never": ("Spec", 5, 5)},
        branches={one: ("Spec", line) for one, line in BRANCHES.items()},
    )
    for number, verdict in enumerate([Verdict.PASS, Verdict.FAIL, Verdict.PASS]):
        figures: dict[str, JsonValue] = {
            "model": f"model-{number}",
            "result": "violated",
            "violated": EVIL,
        }
        yield StageFinished("check", f"model-{number}", verdict, 1.0, EVIL, figures, exhibit=shown)
    for number, verdict in enumerate([Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE]):
        counts: dict[str, JsonValue] = {"Send": 3 + number, EVIL: 1}
        replayed: dict[str, JsonValue] = {"model": "m", "actions": counts, "steps": 10 - number}
        replayed["branches"] = {"Spec:2:6-2:9": 1, "Spec:2:14-2:17": 2}
        replayed["shape"] = SHAPE
        replayed["unvisited"] = {"transitions": 1, "actions": {"Send": 1}, "examples": [EVIL]}
        yield StageFinished("replay", f"suite {number}", verdict, 10 - number, EVIL, replayed)
    one = Finding(
        key="Append:not_allowed:log",
        title=f"Append: state not allowed {EVIL}",
        stage="replay",
        message=EVIL,
        trace=EVIL,
        step=3,
        action='Append("b2")',
        formula=EVIL,
        location="spec/Spec.tla:1:1",
        differences=(Difference("log", "<<1>>", EVIL),),
        story=(EVIL,),
        reproduce=f"kconform replay '{EVIL}'",
        artifact=EVIL,
        exhibit=shown,
    )
    yield one
    yield replace(one, key="audit-1", stage="audit", exhibit=None)


def report() -> Report:
    collector = Collector()
    for event in events():
        collector(event)
    return collector.report("gate", 3.5, {"seed": 1})


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_here() as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page.dumps(report(), now=0.0), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, file: Path) -> Browser:
    browser.emulate(1200)
    browser.open(file)
    return browser


def text(browser: Browser, selector: str) -> str:
    return str(browser.run("return document.querySelector(arguments[0]).textContent", selector))


def visible_rows(browser: Browser, table: str) -> list[str]:
    script = """return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]
        .filter((row) => row.offsetParent).map((row) => row.cells[1].textContent.trim())"""
    return [str(one) for one in browser.run(script, table)]


def test_hostile_strings_do_nothing(opened: Browser) -> None:
    opened.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert opened.run("return [typeof window.hacked, document.images.length]") == ["undefined", 0]
    assert opened.run("return document.scripts.length") == opened.run(
        "return document.querySelectorAll('[data-exhibit]').length + 1"
    )
    shown = text(opened, "main")
    for one in HOSTILE[:-1]:
        assert one in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert "\\x1b[2J" in shown
    assert opened.errors() == []


def test_nothing_is_fetched(opened: Browser) -> None:
    assert opened.run("return performance.getEntriesByType('resource').length") == 0


def test_the_first_screen_tells_verdict_subject_cause_and_gap(opened: Browser) -> None:
    above = """return [...document.querySelectorAll('.badge, .about, .sentence')]
        .every((one) => one.getBoundingClientRect().bottom < innerHeight)"""
    assert opened.run(above)
    assert text(opened, ".badge") == "fail"
    assert text(opened, ".sentence") == "2 findings, 1 likely cause."
    assert "version 1, against Spec" in text(opened, ".about")
    assert "Never" in text(opened, ".gaps")


def test_the_slider_is_moved_by_keys_and_shows_the_state_and_what_changed(opened: Browser) -> None:
    slider = ".finding input[type=range]"
    assert "log, expected" in text(opened, ".finding .now")
    assert "log, actual" in text(opened, ".finding .now")
    opened.type(slider, "\ue012")  # arrow left
    assert text(opened, ".finding output") == 'Step 2 of 3: Answer("b1")'
    assert "wire.b2.type" in text(opened, ".finding .now ul")
    assert text(opened, ".finding .now tr.changed th") == "wire"
    script = "return document.querySelector('.finding .now-step').dataset.step"
    assert opened.run(script) == "2"
    opened.type(slider, "\ue011")  # home
    assert text(opened, ".finding output") == "Step 0 of 3: Initial state"
    opened.click(".finding [data-by='1']")
    assert text(opened, ".finding output").startswith("Step 1 of 3")


def test_expected_and_actual_log_stand_side_by_side_in_the_drawing(opened: Browser) -> None:
    drawn = text(opened, ".finding svg")
    assert "expected" in drawn
    assert "actual" in drawn
    assert text(opened, ".finding mark") == "B"


def test_tables_are_filtered_and_sorted(opened: Browser) -> None:
    opened.type("[data-filter=stages-table]", "suite 1")
    assert visible_rows(opened, "stages-table") == ["suite 1"]
    assert text(opened, "[data-count=stages-table]") == "1 of 3"
    opened.open(Path(opened.run("return decodeURIComponent(location.pathname)")))
    opened.type("[data-verdict=stages-table]", "pass")
    assert visible_rows(opened, "stages-table") == ["suite 0"]
    opened.type("[data-verdict=stages-table]", "\ue011")  # home: all
    opened.click("#stages-table th.num button")
    assert visible_rows(opened, "stages-table") == ["suite 2", "suite 1", "suite 0"]
    assert opened.run(
        "return document.querySelector('#stages-table th.num').getAttribute('aria-sort')"
    ) == ("ascending")


def test_a_link_opens_what_it_points_at(browser: Browser, file: Path) -> None:
    browser.emulate(1200)
    browser.open(file)
    name = browser.run("return document.querySelector('details.counterexample').id")
    browser.open(file, f"#{name}")
    assert browser.run("return document.querySelector('details.counterexample').open")
    assert text(browser, "details.counterexample output").startswith("Step 3 of 3")


def test_the_command_is_copied_or_selected(opened: Browser) -> None:
    opened.click(".finding [data-copy]")
    opened.run("return new Promise((done) => setTimeout(done, 200))")
    assert text(opened, ".finding [data-copy]") in ("Copied", "Selected: press Ctrl+C")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_fits_and_can_be_read(browser: Browser, file: Path, width: int, scheme: str) -> None:
    browser.emulate(width, scheme)
    browser.open(file)
    within = browser.run("return document.documentElement.clientWidth")
    assert browser.run("return document.documentElement.scrollWidth") <= within <= width
    assert browser.run(CONTRAST) == []
    if folder := os.environ.get("KCONFORM_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.screenshot(Path(folder) / f"report-{width}-{scheme}.png")


CONTRAST = """
const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = (colour) => {
  const [r, g, b] = parts(colour).map((n) => n / 255)
    .map((n) => (n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!(parts(colour)[3] === 0)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const poor = [];
for (const one of document.querySelectorAll("body *:not(script):not(svg *)")) {
  const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !one.offsetParent) continue;
  const [a, b] = [light(getComputedStyle(one).color), light(behind(one))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push(`${one.tagName}.${one.className}: ${ratio.toFixed(2)}`);
}
return poor;
"""
"""Texts below WCAG's AA contrast of 4.5 to 1."""


def test_a_screen_reader_finds_names_and_an_outline(opened: Browser) -> None:
    nodes = opened.cdp("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "link", "slider", "searchbox", "combobox", "image", "img")
    used = [node for node in nodes if not node.get("ignored")]
    nameless = [
        node["role"]["value"]
        for node in used
        if node["role"]["value"] in roles and not node.get("name", {}).get("value", "").strip()
    ]
    assert nameless == []
    assert {"slider", "image", "table", "main", "navigation"} <= {n["role"]["value"] for n in used}
    levels = opened.run(
        "return [...document.querySelectorAll('h1,h2,h3,h4')].map((one) => +one.tagName[1])"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_each_disjunct_has_its_count_beside_its_line(opened: Browser) -> None:
    opened.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    lines = opened.run("""return [...document.querySelectorAll('.source span')]
        .map((one) => [one.textContent.trim().split(/\\s+/), one.className, one.title])""")
    assert [line[:4] for line, _, _ in lines] == [
        ["12", "1", "Send", "=="],
        ["3", "6", "2", "\\/"],
        ["0", "3", "\\/", "nowhere"],
        ["0", "5", "Never", "=="],
    ]
    assert [name for _, name, _ in lines] == ["met", "met part", "never part", "never"]
    assert lines[1][2] == (
        "a disjunct or branch: 3 steps (replay 3); a disjunct or branch: 6 steps (replay 6)"
    )
    assert "disjuncts never taken on line 3" in text(opened, "main")
    assert "Spec: 1 of 3 disjuncts of its actions" in text(opened, ".gaps")


def test_without_its_script_the_page_still_tells_everything(browser: Browser, file: Path) -> None:
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(file)
        root = browser.cdp("DOM.getDocument", depth=-1)["root"]["nodeId"]
        steps = browser.cdp("DOM.querySelectorAll", nodeId=root, selector=".finding .steps > li")
        drawn = browser.cdp("DOM.querySelectorAll", nodeId=root, selector=".finding svg")
        tools = browser.cdp("DOM.querySelectorAll", nodeId=root, selector=".tools:not([hidden])")
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
    assert [len(found["nodeIds"]) for found in (steps, drawn, tools)] == [4, 1, 0]
