"""The systems that `kconform versions --system` names."""

from __future__ import annotations

import pytest

from conformance.cli.versions import _names, _table
from conformance.stages.versions import ModelOutcome, VersionCell


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("kafka-3.8.1", ["kafka-3.8.1"]),
        ("kafka-3.8.1,kafka-4.4.0", ["kafka-3.8.1", "kafka-4.4.0"]),
        ("kafka-3.8.1, 3.9.0,4.4.0", ["kafka-3.8.1", "kafka-3.9.0", "kafka-4.4.0"]),
        ("replication,kafka", ["replication", "kafka"]),
        ("exec:./a --list x,y", ["exec:./a --list x,y"]),
        (",", []),
    ],
)
def test_a_bare_version_is_one_of_the_system_before_it(given: str, names: list[str]) -> None:
    assert _names(given) == names


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
