"""What files declare of themselves, and which files are judged together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.errors import DataError
from conformance.history.declaration import CONFIGURE, declared_histories
from conformance.history.rules import DeclaredConfiguration


def file(folder: Path, name: str, configured: object | None = None) -> Path:
    """A file of one operation, with a first line or without."""
    path = folder / f"{name}.ndjson"
    first = {"process": name, "type": "ok", "f": CONFIGURE, "configured": configured}
    lines = [first] * (configured is not None) + [{"process": name, "type": "ok", "f": "poll"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def histories(*paths: Path, **given: str | bool | int) -> dict[str, set[str]]:
    return {
        history.name: {path.stem for path in history.files}
        for history in declared_histories(paths, given)
    }


def test_files_without_a_declaration_are_one_strict_history(tmp_path: Path) -> None:
    a, b = file(tmp_path, "a"), file(tmp_path, "b")
    assert histories(a, b) == {"strict": {"a", "b"}}
    (history,) = declared_histories([a], {})
    assert history.configuration == DeclaredConfiguration()


def test_a_weak_file_is_judged_with_the_strict_ones_and_they_without_it(tmp_path: Path) -> None:
    paths = [
        file(tmp_path, "strict", {"idempotence": True, "acks": "all"}),
        file(tmp_path, "plain", {"idempotence": False, "acks": "1"}),
        file(tmp_path, "old", {"transaction_version": 1}),
        file(tmp_path, "reader", {"isolation": "read_committed"}),
    ]
    assert histories(*paths) == {
        "strict": {"strict", "reader"},
        "transaction-version=1": {"strict", "old", "reader"},
        "acks=1+idempotence=false": {"strict", "plain", "reader"},
    }


def test_readers_of_different_isolation_are_judged_apart(tmp_path: Path) -> None:
    paths = [
        file(tmp_path, "sender", {"acks": "all"}),
        file(tmp_path, "committed", {"isolation": "read_committed"}),
        file(tmp_path, "uncommitted", {"isolation": "read_uncommitted"}),
        file(tmp_path, "unsaid"),
    ]
    assert histories(*paths) == {
        "strict": {"sender", "committed", "unsaid"},
        "isolation=read-uncommitted": {"sender", "uncommitted"},
    }


def test_an_option_replaces_what_files_declare(tmp_path: Path) -> None:
    paths = [
        file(tmp_path, "old", {"transaction_version": 1}),
        file(tmp_path, "new", {"transaction_version": 2, "isolation": "read_uncommitted"}),
    ]
    given: dict[str, str | bool | int] = {"transaction_version": 2, "isolation": "read_committed"}
    assert histories(*paths, **given) == {"strict": {"old", "new"}}


@pytest.mark.parametrize(
    ("configured", "words"),
    [
        ({"acks": "most"}, 'acks = "most".*acks: "all" or "1"'),
        ({"idempotence": 1}, "idempotence = 1.*idempotence: true or false"),
        ({"colour": "red"}, "colour"),
        ({"transaction_version": 3}, "transaction_version: 2 or 1"),
    ],
)
def test_a_wrong_declaration_is_an_error(tmp_path: Path, configured: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        declared_histories([file(tmp_path, "a", configured)], {})


@pytest.mark.parametrize("text", ["", "{", "[]\n", '{"f": "send"}\n', "\x00\xff"])
def test_a_file_that_begins_otherwise_declares_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(text, "latin-1")
    assert histories(path) == {"strict": {"a"}}
