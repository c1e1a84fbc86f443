"""Dumps as TLC writes them: 2.15, and newer TLC with its tooltips and styles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conformance.errors import DataError
from conformance.modelcheck.dump import read_dump
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.graph_file import graph_from_bytes, graph_to_bytes
from conformance.tla import Action, ValueReader, make_record

LABELS = {"Add__0": Action("Add", ("a",)), "Add__1": Action("Add", ("b",))}
OLD = r"""strict digraph DiskGraph {
nodesep=0.35;
subgraph cluster_graph {
color="white";
-5 [label="/\\ count = 0\n/\\ log = <<>>",style = filled]
-5 -> 7 [label="Add__0",color="black",fontcolor="black"];
7 [label="/\\ count = 1\n/\\ log = <<[q |-> \"a\\\"b\\\\c\"]>>"];
-5 -> 7 [label="Add__1",color="black",fontcolor="black"];
-5 -> 7 [label="Add__1",color="black",fontcolor="black"];
7 -> 7 [label="Noop",color="black",fontcolor="black"];
7 -> -5 [label="Reset",color="black",fontcolor="black"];
{rank = same; -5;}
{rank = same; 7;}
}
}"""
NEW = (
    OLD.replace("nodesep=0.35;", "node [shape=box,style=rounded]\nnodesep=0.35;")
    .replace('c\\"]>>"];', 'c\\"]>>",tooltip="/\\\\ count = 1\\n/\\\\ log = <<[q |-> \\"x\\"]>>"];')
)  # fmt: skip
STUTTERING = OLD.replace(
    "{rank = same; -5;}", '-5 -> -5 [style="dashed"];\n7 -> 7 [style="dashed"];\n{rank = same; -5;}'
)
"""Of a specification with fairness."""


def read(folder: Path, text: str, variables: tuple[str, ...] | None = None) -> StateGraph:
    path = folder / "graph.dot"
    path.write_text(text)
    return read_dump(path, ValueReader(), LABELS, variables=variables)


def edges(graph: StateGraph) -> list[tuple[int, str, int]]:
    return [
        (source, str(graph.actions[action]), target)
        for source, action, target in zip(
            graph.source.tolist(), graph.action.tolist(), graph.target.tolist(), strict=True
        )
    ]


@pytest.mark.parametrize(
    "text", [OLD, NEW, STUTTERING], ids=["TLC 2.15", "newer TLC", "where liveness is judged"]
)
def test_the_multigraph_is_lossless(tmp_path: Path, text: str) -> None:
    graph = read(tmp_path, text)
    assert graph.variables == ("count", "log")
    assert list(graph.states) == [(0, ()), (1, (make_record(q='a"b\\c'),))]
    assert graph.initial.tolist() == [0]
    # Two actions between the same states are two edges; the same one listed twice is one.
    assert edges(graph) == [
        (0, 'Add("a")', 1),
        (0, 'Add("b")', 1),
        (1, "Noop", 1),
        (1, "Reset", 0),
    ]
    assert graph.offsets.tolist() == [0, 2, 4]


def test_variables_come_in_the_order_asked_for(tmp_path: Path) -> None:
    graph = read(tmp_path, OLD, ("log", "count"))
    assert graph.states[0] == ((), 0)
    assert graph.fingerprints.tolist() != read(tmp_path, OLD).fingerprints.tolist()
    with pytest.raises(DataError, match=r"count, log.*count, other"):
        read(tmp_path, OLD, ("count", "other"))


def test_a_spec_with_one_variable_has_no_conjunction(tmp_path: Path) -> None:
    text = 'strict digraph DiskGraph {\n1 [label="x = 1",style = filled]\n}\n}'
    graph = read(tmp_path, text)
    assert (graph.variables, list(graph.states)) == (("x",), [(1,)])


def test_values_that_tlc_breaks_into_lines_are_one_value(tmp_path: Path) -> None:
    wide = OLD.replace("log = <<>>", r"log = << 1,\n   2,\n   3 >>")
    assert read(tmp_path, wide).states[0] == (0, (1, 2, 3))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (OLD[: OLD.index("{rank")], "breaks off"),
        (OLD.replace("7 -> -5", "7 -> 8"), "mentions 3 states but shows 2"),
        (OLD.replace(r"count = 1\n", r"count = 1\n/\\ more = 2\n"), "cannot be told apart"),
        (OLD.replace(r"count = 1", r"cuont = 1"), "cannot be told apart"),
    ],
)
def test_a_dump_that_is_not_whole_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        read(tmp_path, text)


def test_a_graph_survives_its_bytes(tmp_path: Path) -> None:
    graph = read(tmp_path, OLD)
    again = graph_from_bytes(graph_to_bytes(graph))
    assert again.digest == graph.digest
    assert list(again.states) == list(graph.states)
    assert (again.actions, again.variables) == (graph.actions, graph.variables)
    assert edges(again) == edges(graph)


def test_the_states_are_a_sequence(tmp_path: Path) -> None:
    states = read(tmp_path, OLD).states
    assert len(states) == 2
    assert states[-1] == states[1]
    assert list(states[1:]) == [states[1]]
    with pytest.raises(IndexError):
        states[2]


def test_the_arrays_are_shared_and_therefore_read_only(tmp_path: Path) -> None:
    graph = read(tmp_path, OLD)
    with pytest.raises(ValueError, match="read-only"):
        graph.target[0] = np.int32(0)
