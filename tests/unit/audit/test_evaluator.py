"""A worker's verdict on each kind of state and visit, without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.audit import evaluator as module
from conformance.audit.evaluator import (
    UNKNOWN_ACTION,
    UNKNOWN_STATE,
    UNOBSERVED,
    Evaluator,
    StateRows,
    _AuditWorker,
    bound_worker,
)
from conformance.errors import DataError
from conformance.tla import Fingerprinter, State
from conformance.traces.model import PartialState, state_fingerprint
from conformance.traces.states import FINGERPRINT
from conformance.traces.store import TraceStore
from tests.spark.audit import lock
from tests.spark.audit.lock import INITIAL, of_states, save

pytestmark = pytest.mark.tlc

START, TAKE_A, DROP = -1, 0, 2
TAKEN: State = ("a", 1, ("a",))
FREED: State = ("nobody", 1, ("a",))
WRONG: State = ("a", 2, ("b",))  # neither invariant holds
HALF: PartialState = ("a", None, ("a",))
UNDEFINED: State = ("a", 0, ())  # HolderIsLast looks at the last of no elements
STATES = (INITIAL, TAKEN, FREED, WRONG, HALF, UNDEFINED)
ABSENT = 12345


def number(state: PartialState | None) -> int | None:
    """A state's fingerprint; that of one that the store lacks, of None."""
    if state == ():
        return ABSENT
    return None if state is None else state_fingerprint(state, lock.VARIABLES, Fingerprinter())


@pytest.fixture  # one for each test: mutation testing runs only tests that reach a function
def worker(tmp_path: Path) -> _AuditWorker:
    traces = [of_states(place, INITIAL, (0, state)) for place, state in enumerate(STATES)]
    return _AuditWorker(pickle.loads(lock.evaluator(save(tmp_path / "s", traces)).payload))


def judged_states(store: TraceStore) -> pa.RecordBatch:
    (path,) = store.files("states")
    return bound_worker(lock.evaluator(store)).judge_rows(StateRows(path, 0, 9))


def test_states_are_judged_by_every_invariant(tmp_path: Path) -> None:
    traces = [of_states(place, INITIAL, (0, state)) for place, state in enumerate(STATES)]
    store = save(tmp_path / "s", traces)
    judged = (
        bound_worker(lock.evaluator(store))
        .judge_rows(StateRows(store.files("states")[0], 0, 9))
        .to_pylist()
    )
    found = {row[FINGERPRINT]: (row["violations"], row["doubts"], row["states"]) for row in judged}
    (doubt,) = found[number(UNDEFINED)][1]
    assert doubt.startswith("HolderIsLast: ")
    assert found == {
        number(WRONG): (["CountIsLength", "HolderIsLast"], [], 1),
        number(UNDEFINED): ([], [doubt], 1),
        None: ([], [], 3),
    }


def test_where_no_state_is_whole_the_columns_still_have_their_types(tmp_path: Path) -> None:
    store = save(tmp_path / "s", [of_states(0, HALF)])
    judged = bound_worker(lock.evaluator(store)).judge_rows(
        StateRows(store.files("states")[0], 0, 9)
    )
    assert len(judged) == 0
    assert judged.schema.names == [FINGERPRINT, "violations", "doubts", "states"]
    texts = pa.list_(pa.string())
    assert judged.schema.types == [pa.int64(), texts, texts, pa.int64()]


def test_where_there_is_no_visit_the_columns_still_have_their_types(worker: _AuditWorker) -> None:
    flag, texts = pa.bool_(), pa.list_(pa.string())
    keys = [("source", pa.int64()), ("action", pa.int32()), ("target", pa.int64())]
    asked = pa.schema([*keys, ("visits", pa.int64()), ("listed", flag), ("asked", flag)])
    judged = worker.judge_visits(pa.RecordBatch.from_pylist([], asked))
    added = [("ready", flag), ("illegal", flag), ("violations", texts), ("doubts", texts)]
    assert judged.schema == pa.schema([*asked, *added, ("taken", pa.string())])


def visit(
    worker: _AuditWorker,
    before: PartialState | None,
    code: int | None,
    after: PartialState | None,
    *,
    asked: bool = True,
) -> tuple[bool, bool, list[str], list[str]]:
    """The verdict on one visit among others: ready, illegal, violations, doubts."""
    rows = [(number(INITIAL), DROP, number(FREED), True), (0, START, number(INITIAL), True)]
    source = 0 if code == START else number(before)
    rows.insert(1, (source, code, number(after), asked))
    sources, codes, targets, questions = zip(*rows, strict=True)
    batch = pa.record_batch(
        {
            "source": pa.array(sources, pa.int64()),
            "action": pa.array(codes, pa.int32()),
            "target": pa.array(targets, pa.int64()),
            "visits": pa.array([7, 8, 9], pa.int64()),
            "listed": pa.array([False, True, False]),
            "asked": pa.array(questions),
        }
    )
    first, judged, last = worker.judge_visits(batch).to_pylist()
    assert (first["illegal"], last["illegal"]) == (True, False)
    assert (judged["source"], judged["action"], judged["target"]) == rows[1][:3]
    assert (judged["visits"], judged["listed"], judged["asked"]) == (8, True, asked)
    return judged["ready"], judged["illegal"], judged["violations"], judged["doubts"]


FINE = (True, False, [], [])


@pytest.mark.parametrize(
    ("before", "code", "after", "verdict"),
    [
        (None, START, INITIAL, FINE),
        (None, START, WRONG, FINE),  # whether it is an initial state, the table knows
        (None, START, HALF, (False, False, [], [UNOBSERVED])),
        (None, START, (), (False, False, [], [UNKNOWN_STATE])),
        (None, START, None, (False, False, [], [UNKNOWN_STATE])),
        (INITIAL, TAKE_A, TAKEN, FINE),
        (TAKEN, DROP, FREED, FINE),
        (INITIAL, TAKE_A, FREED, (True, True, [], [])),
        (INITIAL, DROP, INITIAL, (True, True, [], [])),
        (TAKEN, DROP, INITIAL, (True, True, ["CountNeverFalls"], [])),
        (HALF, DROP, FREED, (False, False, [], [UNOBSERVED])),
        (INITIAL, TAKE_A, HALF, (False, False, [], [UNOBSERVED])),
        ((), DROP, FREED, (False, False, [], [UNKNOWN_STATE])),
        (None, DROP, FREED, (False, False, [], [UNKNOWN_STATE])),
        (TAKEN, DROP, (), (False, False, [], [UNKNOWN_STATE])),
        (HALF, DROP, (), (False, False, [], [UNKNOWN_STATE])),
        (TAKEN, 3, INITIAL, (True, False, ["CountNeverFalls"], [UNKNOWN_ACTION])),
        (TAKEN, 99, FREED, (True, False, [], [UNKNOWN_ACTION])),
        (TAKEN, -2, FREED, (True, False, [], [UNKNOWN_ACTION])),
        # Where the row names no action there is no step of which a property could speak.
        (TAKEN, None, INITIAL, (True, False, [], [UNKNOWN_ACTION])),
        ((), 99, FREED, (False, False, [], [UNKNOWN_STATE, UNKNOWN_ACTION])),
        (HALF, 99, FREED, (False, False, [], [UNOBSERVED, UNKNOWN_ACTION])),
    ],
)
def test_visits_are_judged_by_their_action_and_every_property(
    worker: _AuditWorker,
    before: PartialState | None,
    code: int | None,
    after: PartialState | None,
    verdict: tuple[bool, bool, list[str], list[str]],
) -> None:
    assert visit(worker, before, code, after) == verdict


def test_a_step_of_which_a_formula_says_nothing_is_in_doubt(tmp_path: Path) -> None:
    store = save(tmp_path / "s", [of_states(0, UNDEFINED, (DROP, INITIAL), (0, FREED))])
    evaluator = Evaluator.of(lock.spec(), store, (), ("HolderIsLast", "CountNeverFalls"))
    worker = _AuditWorker(pickle.loads(evaluator.payload))
    ready, illegal, violations, doubts = visit(worker, UNDEFINED, DROP, INITIAL)
    assert (ready, illegal, violations) == (True, False, [])
    (doubt,) = doubts
    assert doubt.startswith("HolderIsLast: Lock:")


def test_what_is_not_asked_is_judged_by_the_properties_only(worker: _AuditWorker) -> None:
    assert visit(worker, TAKEN, DROP, INITIAL, asked=False) == (
        True,
        False,
        ["CountNeverFalls"],
        [],
    )


def test_a_store_of_many_states_is_read_anew_when_memory_is_full(
    worker: _AuditWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    kept: list[int] = []
    for state in (*STATES, *STATES):
        print_ = number(state)
        assert print_ is not None
        assert worker._states([print_])[print_] == state
        kept.append(len(worker._known))
    assert max(kept) == 2


def test_damage_is_noticed_before_a_state_is_judged(tmp_path: Path) -> None:
    store = save(tmp_path / "s", [of_states(0, INITIAL, (0, TAKEN))])
    (path,) = store.files("states")
    last = pq.ParquetFile(path).metadata.row_group(0).column(len(lock.VARIABLES))
    data = bytearray(path.read_bytes())
    data[last.data_page_offset + last.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(data)
    print_ = number(TAKEN)
    assert print_ is not None
    worker = _AuditWorker(pickle.loads(lock.evaluator(store).payload))
    with pytest.raises(DataError, match=r"states/part-00000\.parquet .* page integrity"):
        worker._states([print_])
    with pytest.raises(DataError, match=r"states/part-00000\.parquet .* page integrity"):
        worker.judge_rows(StateRows(path, 0, 9))


def test_a_file_of_states_is_judged_as_its_bad_states_and_all_others(tmp_path: Path) -> None:
    store = save(tmp_path / "s", [of_states(0, INITIAL, (0, TAKEN), (0, WRONG), (0, HALF))])
    judge_rows = bound_worker(lock.evaluator(store)).judge_rows
    judged = pa.Table.from_batches(
        [judge_rows(StateRows(path, 0, 9)) for path in store.files("states")]
    )
    assert judged.to_pylist() == [
        {
            FINGERPRINT: number(WRONG),
            "violations": ["CountIsLength", "HolderIsLast"],
            "doubts": [],
            "states": 1,
        },
        {FINGERPRINT: None, "violations": [], "doubts": [], "states": 2},
    ]


def test_of_a_file_without_a_good_state_only_the_bad_ones_are_told(tmp_path: Path) -> None:
    store = save(tmp_path / "s", [of_states(0, WRONG), of_states(1, HALF)])
    judged = bound_worker(lock.evaluator(store)).judge_rows(
        StateRows(store.files("states")[0], 0, 9)
    )
    assert [row["states"] for row in judged.to_pylist()] == [1]


def test_workers_elsewhere_find_the_states_of_a_store_that_was_named_relatively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "s", [of_states(0, INITIAL, (0, TAKEN))])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    payload = lock.evaluator(TraceStore.open(Path("s"))).payload
    monkeypatch.chdir(tmp_path / "elsewhere")
    print_ = number(TAKEN)
    assert print_ is not None
    assert _AuditWorker(pickle.loads(payload))._states([print_]) == {print_: TAKEN}


def test_each_payload_is_bound_once(tmp_path: Path) -> None:
    store = save(tmp_path / "s", [of_states(0, INITIAL, (0, TAKEN))])
    one: Evaluator = lock.evaluator(store)
    assert module._worker(one.payload) is module._worker(one.payload)
