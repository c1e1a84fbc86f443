from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conformance.errors import DataError
from conformance.suites.postman import transition_cover
from conformance.suites.situations import situations
from conformance.suites.suite import Test as Walk
from conformance.suites.suite import load_suite, save_suite
from conformance.suites.walks import random_walks
from tests.unit.suites.graphs import graph_of

EDGES = [(0, 1, "go"), (1, 2, "go"), (2, 0, "back"), (1, 0, "back")]


def test_a_suite_survives_its_file(tmp_path: Path) -> None:
    graph = graph_of(3, EDGES)
    named = situations(graph, {"two": lambda state: state == (2,)}).suite
    for suite in (transition_cover(graph), random_walks(graph, 5, 4, seed=9), named):
        path = tmp_path / "suite.npz"
        save_suite(suite, path)
        read = load_suite(path, graph)
        assert (read.kind, read.seed) == (suite.kind, suite.seed)
        assert [(t.name, t.initial, t.edges.tolist()) for t in read] == [
            (t.name, t.initial, t.edges.tolist()) for t in suite
        ]
    assert [file.name for file in tmp_path.iterdir()] == ["suite.npz"]


def test_a_suite_of_another_graph_is_refused(tmp_path: Path) -> None:
    save_suite(transition_cover(graph_of(3, EDGES)), tmp_path / "suite.npz")
    with pytest.raises(DataError, match="made for another state graph"):
        load_suite(tmp_path / "suite.npz", graph_of(3, EDGES[:3]))


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_suite_is_refused_with_advice(tmp_path: Path, damage: str) -> None:
    graph = graph_of(3, EDGES)
    path = tmp_path / "suite.npz"
    save_suite(transition_cover(graph), path)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    else:
        content = bytearray(b"no suite at all")
    path.write_bytes(content)
    with pytest.raises(DataError, match="kconform suite"):
        load_suite(path, graph)


@pytest.mark.parametrize(
    ("initial", "edges"),
    [(1, [1]), (0, [1]), (0, [0, 0]), (0, [9]), (0, [-1])],
    ids=["not initial", "starts elsewhere", "does not connect", "no such edge", "negative"],
)
def test_a_test_that_is_no_path_is_refused(initial: int, edges: list[int]) -> None:
    graph = graph_of(3, EDGES)
    broken = replace(transition_cover(graph), tests=(Walk(initial, np.array(edges, np.int32)),))
    with pytest.raises(DataError, match="no path"):
        broken.require(graph)


def test_a_flipped_byte_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    graph = graph_of(3, EDGES)
    path = tmp_path / "suite.npz"
    suite = transition_cover(graph)
    save_suite(suite, path)
    whole = path.read_bytes()
    noticed = 0
    for position in range(0, len(whole), 13):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            read = load_suite(path, graph)
        except DataError:
            noticed += 1
        else:
            assert [t.edges.tolist() for t in read] == [t.edges.tolist() for t in suite]
            assert (read.kind, read.seed) == (suite.kind, suite.seed)
    assert noticed > len(whole) // 26
