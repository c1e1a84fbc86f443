"""kconform tap: what a user may get wrong, before any jar is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cli.cluster import properties
from conformance.cli.tap import read_rules
from conformance.errors import UserError


def test_rules_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\naction = "delay"\napi = "SyncGroup"\nseconds = 1.5\n', "utf-8")
    (rule,) = read_rules(path)
    assert (rule.action, rule.api, rule.seconds, rule.times) == ("delay", "SyncGroup", 1.5, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[rule]]\naction = "explode"\n', "delay, drop, hold, cut"),
        ('[[rule]]\naction = "drop"\napis = "Fetch"\n', "apis"),
        ("[[rule]]\n", "action"),
        ("[[rule]\n", "is not a file of rules"),
    ],
)
def test_rules_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(UserError, match=words):
        read_rules(path)


def test_broker_settings() -> None:
    assert properties(["a.b=c", "d = e=f"]) == {"a.b": "c", "d": "e=f"}
    with pytest.raises(UserError, match="key=value"):
        properties(["a.b"])
