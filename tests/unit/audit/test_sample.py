"""Which traces the referee gets, and how far each: read from a store and the audit's listing."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.audit.referee import RefereeCase, _evenly, sample
from conformance.modelcheck.behaviours import BehaviourJudgement
from conformance.modelcheck.prepare import PreparedModel
from conformance.tla import Fingerprinter, State
from conformance.traces.manifest import Identity
from conformance.traces.model import PartialState, state_fingerprint
from conformance.traces.rows import TraceRows
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import open_writer, write_chunk

ACTIONS = ["Up", "Down"]
STATES: list[PartialState] = [(0, "a"), (1, "a"), (2, "a"), (1, None)]
PREPARED = cast(
    "PreparedModel",
    SimpleNamespace(model=SimpleNamespace(check=SimpleNamespace(invariants=("Small",)))),
)
PARTIAL, ABSENT = 3, 4
"""Numbers of a state that was not whole, and of one that the store lacks."""


def prints(numbers: Sequence[int]) -> list[int]:
    known = [state_fingerprint(state, ("x", "y"), Fingerprinter()) for state in STATES]
    return [[*known, 12345][number] for number in numbers]


Recorded = tuple[list[int], list[int], str, str | None]


def saved(path: Path, *files: list[Recorded]) -> TraceStore:
    """A store with these traces, numbered from 0 through all files."""
    identity = Identity("S", "", "m", {}, ["x", "y"], ACTIONS, "toy", "1")
    whole: list[State] = [(0, "a")]
    with open_writer(path, identity, infer_columns(("x", "y"), whole)) as writer:
        number = 0
        for chunk, traces in enumerate(files):
            rows = TraceRows()
            for states, codes, end, problem in traces:
                rows.add(number, 0, prints(states), codes, end, problem)
                number += 1
            writer.add_chunk(write_chunk(writer.folder, chunk, rows))
        writer.write_states(np.array(prints(range(4))), STATES)
    return TraceStore.open(path)


def listing(folder: Path, *rows: tuple[int, bool, int, int, list[str], list[str]]) -> Path:
    folder.mkdir()
    names = ["trace_id", "failed", "step", "suspect", "violations", "doubts"]
    texts = pa.list_(pa.string())
    types = [pa.int64(), pa.bool_(), pa.int32(), pa.int64(), texts, texts]
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    pq.write_table(pa.table(arrays, names=names), folder / "part-0.parquet")
    return folder


def length(*numbers: int, end: str = "length", problem: str | None = None) -> Recorded:
    codes = [0 if after > before else 1 for before, after in itertools.pairwise(numbers)]
    return list(numbers), codes, end, problem


def told(case: RefereeCase) -> tuple[int, list[int], tuple[int, ...], BehaviourJudgement]:
    """A case with the numbers of its states."""
    states = [STATES.index(state) for state in case.behaviour.states]
    return case.trace_id, states, case.behaviour.actions, case.audit


def test_traces_that_pass_are_judged_whole(tmp_path: Path) -> None:
    store = saved(tmp_path / "s", [length(0, 1, 2), length(0)], [length(0, 1, 0)])
    cases, left_out = sample(store, PREPARED, tmp_path / "none", 10, seed=1)
    assert left_out == 0
    assert [told(case) for case in cases] == [
        (0, [0, 1, 2], (0, 0), BehaviourJudgement()),
        (1, [0], (), BehaviourJudgement()),
        (2, [0, 1, 0], (0, 1), BehaviourJudgement()),
    ]


def test_a_sample_takes_its_traces_from_every_file(tmp_path: Path) -> None:
    store = saved(tmp_path / "s", *([length(0, 1) for _ in range(5)] for _ in range(4)))
    for seed in range(10):
        cases, _ = sample(store, PREPARED, tmp_path / "none", 4, seed)
        assert [case.trace_id // 5 for case in cases] == [0, 1, 2, 3]
        assert [case.trace_id for case in cases] == _evenly(20, 4, random.Random(seed))
    again = [case.trace_id for case in sample(store, PREPARED, tmp_path / "none", 4, 3)[0]]
    assert again == [case.trace_id for case in sample(store, PREPARED, tmp_path / "none", 4, 3)[0]]


def test_each_trace_is_judged_as_far_as_tlc_can_judge_it(tmp_path: Path) -> None:
    store = saved(
        tmp_path / "s",
        [
            length(0, 1, 2, 1),
            length(0, 1, 2, 1),
            length(0, 1, PARTIAL, end="diverged", problem="state not allowed: y"),
            length(0, PARTIAL),
        ],
        [
            length(0, 1, problem="not JSON"),
            length(0, ABSENT),
            ([0, 1], [len(ACTIONS)], "length", None),
            length(PARTIAL, end="diverged", problem="wrong initial state"),
            ([0, 1], [-1], "length", None),
        ],
    )
    said = listing(
        tmp_path / "listing",
        (0, True, 2, 5, ["Small", "Next"], []),
        (1, True, 2, 6, ["Grows"], []),
        (2, True, 2, 0, [], []),
        (3, False, 1, 7, [], ["not observed"]),
        (4, False, 1, 0, [], []),
        (5, False, 1, 8, [], ["no such state"]),
        (6, False, 1, 9, [], ["no such action"]),
        (7, True, 0, 0, [], []),
    )
    cases, left_out = sample(store, PREPARED, said, 10, seed=1)
    assert [told(case) for case in cases] == [
        (0, [0, 1, 2, 1], (0, 0, 1), BehaviourJudgement(2, ("Next", "Small"))),
        # Grows is an action property: TLC judges the states before and after that step.
        (1, [0, 1, 2], (0, 0), BehaviourJudgement(3, ("Grows",))),
        (2, [0, 1], (0,), BehaviourJudgement(2, ("step equality",))),
    ]
    assert left_out == 6


def test_an_action_beyond_what_is_judged_need_not_be_known(tmp_path: Path) -> None:
    store = saved(tmp_path / "s", [([0, 1, 0], [0, 7], "diverged", "action refused")])
    said = listing(tmp_path / "listing", (0, True, 2, 0, [], []))
    cases, left_out = sample(store, PREPARED, said, 1, seed=1)
    assert [told(case) for case in cases] == [
        (0, [0, 1], (0,), BehaviourJudgement(2, ("step equality",)))
    ]
    assert left_out == 0


def test_the_reason_of_a_doubt_is_told(tmp_path: Path) -> None:
    store = saved(tmp_path / "s", [length(0, 1, 0)])
    said = listing(tmp_path / "listing", (0, False, 1, 3, [], ["Small: no value", "Next: none"]))
    ((_, states, _, audit),) = map(told, sample(store, PREPARED, said, 1, seed=1)[0])
    assert (states, audit) == ([0, 1, 0], BehaviourJudgement(1, (), "Small: no value; Next: none"))


def test_damage_is_noticed_before_a_trace_is_judged(tmp_path: Path) -> None:
    """By the page's checksum: without it these bytes would be read as another trace."""
    store = saved(tmp_path / "s", [length(0, 1, 2), length(0)])
    (path,) = store.files("traces")
    data = bytearray(path.read_bytes())
    data[40] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(OSError, match="page integrity"):
        sample(store, PREPARED, tmp_path / "none", 2, seed=1)


def test_a_file_of_which_nothing_is_chosen_is_passed_over(tmp_path: Path) -> None:
    store = saved(tmp_path / "s", *([length(0, 1)] for _ in range(4)))
    samples = [sample(store, PREPARED, tmp_path / "none", 1, seed)[0] for seed in range(9)]
    chosen = {case.trace_id for (case,) in samples}
    assert len(chosen) > 1
    assert chosen <= {0, 1, 2, 3}


@pytest.mark.parametrize(("count", "more"), [(3, 0), (4, 1), (8, 2)])
def test_up_to_a_quarter_more_are_traces_that_do_not_pass(
    tmp_path: Path, count: int, more: int
) -> None:
    """Those that fail are the last of many, so that hardly one of them is met by chance."""
    store = saved(tmp_path / "s", [length(0, 1) for _ in range(400)])
    failing = range(396, 400)
    rows = [(number, True, 1, 2, ["Next"], list[str]()) for number in reversed(failing)]
    said = listing(tmp_path / "listing", *rows)
    chosen = [case.trace_id for case in sample(store, PREPARED, said, count, seed=2)[0]]
    assert chosen == sorted(chosen)
    assert len(chosen) == count + more
    assert len(set(chosen) & set(failing)) == more
