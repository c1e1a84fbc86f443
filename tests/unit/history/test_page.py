"""The lines that docs/history.md has an application write are understood by the judge."""

from __future__ import annotations

import io
import json
import re
import time
from types import SimpleNamespace

from conformance.history.lines import read_block
from conformance.resources import resource_root

PAGE = (resource_root() / "docs" / "history.md").read_text(encoding="utf-8")


def example(language: str) -> str:
    """The page's only example in a language."""
    (code,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(code)


def test_the_python_example_writes_operations() -> None:
    message = SimpleNamespace(
        topic=lambda: "orders", partition=lambda: 0, value=lambda: b"v", offset=lambda: 7
    )
    history = io.StringIO()
    consumer = SimpleNamespace(consume=lambda _most, _seconds: [message])
    names = {"json": json, "time": time, "history": history, "consumer": consumer}
    exec(compile(example("python"), "docs/history.md", "exec"), names)
    names["delivered"](None, message)  # type: ignore[operator]
    names["delivered"]("timed out", message)  # type: ignore[operator]
    block = read_block(history.getvalue().encode(), 1, cut=False)
    assert not block.bad
    rows = block.table.to_pylist()
    record = {"key": "orders-0", "value": "v", "offset": 7}
    assert [(row["f"], row["type"]) for row in rows] == [
        ("subscribe", "ok"), ("poll", "ok"), ("send", "ok"), ("send", "info"),
    ]  # fmt: skip
    assert [rows[1]["polled"], rows[2]["sent"]] == [[record], [record]]
    assert rows[3]["sent"] == [{**record, "offset": None}]


def test_the_java_example_prints_operations() -> None:
    """Its format, filled as Java's `printf` fills it."""
    parts = re.findall(r'"((?:\\.|[^"\\])*)"', example("java").split("System.current")[0])
    line = "".join(parts).replace('\\"', '"').replace("%n", "\n")
    filled = [
        line % (5, kind, f, name, "orders", 0, "v", offset)
        for f, kind, name, offset in (("send", "ok", "sent", 7), ("poll", "ok", "polled", 8),
                                      ("send", "info", "sent", "null"))
    ]  # fmt: skip
    subscribe = re.search(r'println\("(.*)"\)', example("java"))
    assert subscribe
    filled.append(subscribe[1].replace('\\"', '"') + "\n")
    block = read_block("".join(filled).encode(), 1, cut=False)
    assert (len(block.table), block.bad) == (4, ())
    assert block.table.to_pylist()[1]["polled"] == [{"key": "orders-0", "value": "v", "offset": 8}]
