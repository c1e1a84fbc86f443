"""The page of an inspection in a browser: complete, and harmless whatever the files say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.inspect import page
from conformance.inspect.evidence import Evidence
from conformance.inspect.inspection import inspect
from conformance.inspect.store import PartWriter
from tests.e2e.report.browser import Browser, browser_here

EVIL = (
    "</script><script>window.hacked=1</script>"
    '"><img src=x onerror="window.hacked=1"><svg onload=window.hacked=1>{{ 7 * 7 }}\x1b[2J'
)
NO_FIELDS = {"level": "INFO", "topic": "t", "partition": 0, "path": EVIL, "line": 1, "time": 5}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_here() as one:
        yield one


def member(name: str, partitions: list[int]) -> dict[str, Any]:
    return {
        "memberId": name,
        "groupInstanceId": None,
        "subscription": {"topics": ["t"], "userData": None, "ownedPartitions": []},
        "assignment": {"assignedPartitions": [{"topic": "t", "partitions": partitions}]},
    }


def evidence(folder: Path) -> Evidence:
    """Two replicas of which one has lost its end; a group whose generation falls; evil names."""
    with PartWriter(folder, 0) as writer:
        for broker, count in (("b1", 9), ("b2", 4)):
            place = {"broker": broker, "directory": ""}
            file = {**place, "path": f"t-0/{0:020}.log", "kind": "segment", "size": 1}
            writer.row("files", {**file, "mtime": 50, "status": "read", "reason": ""})
            entry = {**place, "topic": "t", "partition": 0, "state": "", "mtime": 40}
            writer.row("checkpoints", {**entry, "kind": "replication-offset", "offset": 9})
            writer.row("checkpoints", {**entry, "kind": "leader-epoch", "epoch": 0, "offset": 0})
            for offset in range(count):
                writer.row("batches", batch(broker, offset))
        fields = {"epoch": 0, "offset": 9, "high_watermark": 9, "leader": 1}
        line = {**NO_FIELDS, "broker": "b2", "kind": "become-follower", "text": EVIL}
        writer.row("log_lines", {**line, "fields": json.dumps(fields)})
        cut = {**line, "kind": "truncated", "line": 2, "time": 6}
        writer.row("log_lines", {**cut, "fields": json.dumps({"offset": 4})})
        for offset, generation in ((0, 3), (1, 2)):
            writer.row("group_records", group_record(offset, generation))
    return Evidence(folder, {"brokers": ["b1", "b2"], "folders": {"b1": EVIL, "b2": EVIL}})


def batch(broker: str, offset: int) -> dict[str, Any]:
    return {
        "broker": broker, "directory": "", "topic": "t", "partition": 0, "state": "",
        "segment": f"t-0/{0:020}.log", "position": offset * 70, "size": 70, "magic": 2,
        "base_offset": offset, "last_offset": offset, "leader_epoch": 0, "stored_crc": offset,
        "crc_ok": True, "attributes": 0, "producer_id": -1, "producer_epoch": -1,
        "base_sequence": -1, "base_timestamp": 1, "max_timestamp": 1, "records": 1,
    }  # fmt: skip


def group_record(offset: int, generation: int) -> dict[str, Any]:
    value = {
        "generation": generation, "protocolType": "consumer", "protocol": EVIL, "leader": EVIL,
        "members": [member(EVIL, [0])],
    }  # fmt: skip
    return {
        "broker": "b1", "directory": "", "partition": 0, "offset": offset, "batch": offset,
        "epoch": 0, "timestamp": 5, "type": "GroupMetadataKey", "key": json.dumps({"group": EVIL}),
        "value": json.dumps(value), "version": 3, "state": "",
    }  # fmt: skip


def test_the_page_shows_all_and_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    found = inspect(evidence(tmp_path))
    kinds = {one.kind for one in found.discoveries}
    assert {"HighWatermarkWithinLog", "CommittedNeverLost", "GenerationsNeverFall"} <= kinds
    path = tmp_path / "index.html"
    path.write_text(page.dumps(found), "utf-8")
    browser.emulate(1200)
    browser.open(path)
    assert browser.errors() == []
    assert browser.run("return window.hacked === undefined")
    assert browser.run("return document.querySelectorAll('article').length") == len(
        found.discoveries
    )
    text = browser.run("return document.body.textContent")
    assert "{{ 7 * 7 }}" in text
    assert "truncates from 9 to 4: cut exposed records" in text
    assert browser.run("return document.querySelectorAll('svg .run').length") >= 4


def test_it_fits_a_phone(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text(page.dumps(inspect(evidence(tmp_path))), "utf-8")
    browser.emulate(380)
    browser.open(path)
    width = "return document.documentElement.scrollWidth <= window.innerWidth + 1"
    assert browser.run(width)
