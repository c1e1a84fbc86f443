"""The systems that `kconform versions --system` names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from conformance.cli.versions import _ALL_SYSTEMS, _names, _paths, _Records, _table, undriven
from conformance.deviations.table import Deviation, DeviationSeverity
from conformance.errors import UserError
from conformance.kafka.jars import RELEASES
from conformance.report.releases import RECORD_SCHEMA, ReleaseRecord
from conformance.stages.context import Context
from conformance.stages.presence import DeviationResult, Presence
from conformance.stages.versions import ModelOutcome, VersionCell
from conformance.tla import find_tools


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("kafka-3.8.1", ["kafka-3.8.1"]),
        ("kafka-3.8.1,kafka-4.4.0", ["kafka-3.8.1", "kafka-4.4.0"]),
        ("kafka-3.8.1, 3.9.0,4.4.0", ["kafka-3.8.1", "kafka-3.9.0", "kafka-4.4.0"]),
        ("replication,kafka", ["replication", "kafka"]),
        ("kafka-4.0.1..4.1.0", ["kafka-4.0.1", "kafka-4.0.2", "kafka-4.1.0"]),
        ("kafka-3.8.1,4.2.1..4.3.0", ["kafka-3.8.1", "kafka-4.2.1", "kafka-4.2.2", "kafka-4.3.0"]),
        ("broker-4.4.0..4.4.0", ["broker-4.4.0"]),
        ("exec:./a --list x,y", ["exec:./a --list x,y"]),
        (",", []),
    ],
)
def test_a_bare_version_is_one_of_the_system_before_it(given: str, names: list[str]) -> None:
    assert _names(given) == names


@pytest.mark.parametrize("given", ["kafka-4.1.0..4.0.0", "kafka-2.0.0..2.1.0"])
def test_a_range_without_a_release_is_told_with_those_that_there_are(given: str) -> None:
    with pytest.raises(UserError, match=r"names no release of Kafka.*3\.8\.0 to 4\.4\.0"):
        _names(given)


def test_all_is_every_release_as_classes_and_from_4_0_on_as_a_broker() -> None:
    systems = [name for text in _ALL_SYSTEMS for name in _names(text)]
    assert [name for name in systems if name.startswith("kafka-")] == [
        f"kafka-{release}" for release in RELEASES
    ]
    assert [name for name in systems if name.startswith("broker-")] == [
        f"broker-{release}" for release in RELEASES if release >= "4"
    ]


def test_the_matrix_has_a_row_for_each_model_and_a_column_for_each_system() -> None:
    cells = [
        VersionCell(
            "kafka-3.8.1", "fine", ModelOutcome.DEVIATES, ("A", "B"), tests=962, steps=12229
        ),
        VersionCell("kafka-3.8.1", "coarse-2b", ModelOutcome.LEFT_OUT, reason="it cannot"),
        VersionCell("kafka-4.4.0", "fine", ModelOutcome.AGREES),
        VersionCell("kafka-4.4.0", "coarse-2b", ModelOutcome.NEW),
    ]
    assert _table(cells) == [
        "           kafka-3.8.1              kafka-4.4.0",
        "fine       A B                      agrees",
        "           962 tests, 12,229 steps",
        "coarse-2b  -                        NEW",
    ]


def test_a_system_that_no_model_drives_was_not_compared() -> None:
    cells = [
        VersionCell("storage", "delayed", ModelOutcome.LEFT_OUT, reason="of LogStorage"),
        VersionCell("delayed", "delayed", ModelOutcome.AGREES, tests=2, steps=9),
        VersionCell("storage", "group", ModelOutcome.LEFT_OUT, reason="of LogStorage"),
        VersionCell("delayed", "group", ModelOutcome.LEFT_OUT, reason="of DelayedOperations"),
    ]
    assert undriven(cells) == ("storage",)


def test_a_table_that_has_grown_is_replayed_where_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[frozenset[str]] = []

    def replay(
        _context: Context, _system: str, *, replayed: Collection[str]
    ) -> list[DeviationResult]:
        asked.append(frozenset(replayed))
        new = Deviation(
            id="new", title="new", severity=DeviationSeverity.HARMLESS, path="new.itf.json"
        )
        return [] if "new" in replayed else [DeviationResult(new, Presence.SEEN, expected=True)]

    monkeypatch.setattr("conformance.cli.versions.deviations", replay)
    store = _Records(tmp_path, (), find_tools())
    store.put(ReleaseRecord(RECORD_SCHEMA, "kafka-4.4.0", {"old": "gone"}, {}))
    for _ in range(2):
        _paths(Context(), "kafka-4.4.0", store)

    assert asked == [{"old"}, {"old", "new"}]
    assert store.record("kafka-4.4.0").deviations == {"old": "gone", "new": "seen"}
