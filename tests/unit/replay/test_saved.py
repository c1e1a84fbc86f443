"""A divergence is kept as a file, read again, and found again, changed or gone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.errors import DataError
from conformance.replay.engine import Divergence, Driver, run_path
from conformance.replay.saved import ReplayOutcome, SavedDivergence, load, replay_again, save
from conformance.story.kind import BehaviourKind
from conformance.tla import State
from tests.unit.replay.machines import Moves, Table, actions, moves, oracle_of

EDGES = [(0, 1, "A"), (1, 2, "A"), (2, 0, "B"), (2, 3, "Far")]
ORACLE = oracle_of(EDGES)
RIGHT = moves(EDGES)
WRONG = RIGHT | {(2, "B"): 1}


def found(table: Moves, path: str, start: int | None = None) -> Divergence:
    divergence = run_path(Driver(Table(table, start), ORACLE), (0,), actions(path)).divergence
    assert divergence is not None
    return divergence


def kept(tmp_path: Path, divergence: Divergence) -> SavedDivergence:
    path = tmp_path / "found.itf.json"
    save(path, ORACLE, divergence, model="toy", system="m:f")
    return load(path)


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    saved = kept(tmp_path, found(WRONG, "A A B"))
    assert saved == SavedDivergence("toy", "m:f", "B:not_allowed:x", ("x",), (0,), actions("A A B"))


@pytest.mark.parametrize("constants", [None, {}, {"Brokers": '{"b1", "b2"}', "MaxEpoch": "3"}])
def test_the_constants_of_the_run_are_kept(
    tmp_path: Path, constants: dict[str, str] | None
) -> None:
    path, divergence = tmp_path / "found.itf.json", found(WRONG, "A A B")
    save(path, ORACLE, divergence, model="toy", system="m:f", constants=constants)
    assert load(path).constants == (constants or {})


def test_the_file_shows_the_states_of_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "found.itf.json"
    save(path, ORACLE, found(WRONG, "A A B"), model="toy", system="m:f")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert [state["x"] for state in document["states"]] == [
        {"#bigint": number} for number in ("0", "1", "2", "0")
    ]
    assert [state["#meta"].get("action") for state in document["states"]] == [None, "A", "A", "B"]
    assert path.read_text(encoding="utf-8").endswith("\n")


def test_a_wrong_start_is_saved_as_its_initial_state_alone(tmp_path: Path) -> None:
    saved = kept(tmp_path, found(RIGHT, "A", start=2))
    assert (saved.initial, saved.actions) == ((0,), ())


def test_a_path_is_saved_as_far_as_the_spec_goes(tmp_path: Path) -> None:
    strange = Divergence(BehaviourKind.NOT_ALLOWED, (0,), actions("A B A"), (), (), {})
    assert kept(tmp_path, strange).actions == actions("A")


def test_a_broken_invariant_keeps_the_path_before_its_last_step(tmp_path: Path) -> None:
    broken = Divergence(BehaviourKind.INVARIANT, (0,), actions("A A"), ((2,),), (), {}, "Short")
    assert kept(tmp_path, broken).actions == actions("A")


@pytest.mark.parametrize(
    ("table", "again", "kind"),
    [
        (WRONG, ReplayOutcome.AS_BEFORE, BehaviourKind.NOT_ALLOWED),
        (RIGHT, ReplayOutcome.FIXED, None),
        (RIGHT | {(1, "A"): 3}, ReplayOutcome.DIFFERENTLY, BehaviourKind.NOT_ALLOWED),
        (moves(EDGES[:2]), ReplayOutcome.DIFFERENTLY, BehaviourKind.REFUSED),
    ],
    ids=["as before", "fixed", "elsewhere", "refused"],
)
def test_a_replay_says_what_became_of_it(
    tmp_path: Path, table: Moves, again: ReplayOutcome, kind: BehaviourKind | None
) -> None:
    saved, made = kept(tmp_path, found(WRONG, "A A B")), Table(table)
    result, divergence = replay_again(saved, ORACLE, lambda: made)
    assert (result, divergence and divergence.kind) == (again, kind)
    assert made.closed == 1


@pytest.mark.parametrize(
    ("key", "table", "again"),
    [
        ("B:not_allowed:x:y", WRONG, ReplayOutcome.AS_BEFORE),
        ("B:refused", WRONG, ReplayOutcome.DIFFERENTLY),
        ("A:not_allowed:y", RIGHT | {(1, "A"): 3}, ReplayOutcome.DIFFERENTLY),
    ],
    ids=["other variables", "in another way", "at an earlier step"],
)
def test_a_replay_is_compared_by_its_step(
    tmp_path: Path, key: str, table: Moves, again: ReplayOutcome
) -> None:
    saved = replace(kept(tmp_path, found(WRONG, "A A B")), key=key)
    assert replay_again(saved, ORACLE, lambda: Table(table))[0] is again


def test_a_path_of_which_no_finding_is_known_has_failed_and_no_more(tmp_path: Path) -> None:
    foreign = replace(kept(tmp_path, found(WRONG, "A A B")), key="")
    assert replay_again(foreign, ORACLE, lambda: Table(WRONG))[0] is ReplayOutcome.FAILED
    assert replay_again(foreign, ORACLE, lambda: Table(RIGHT))[0] is ReplayOutcome.FIXED


def test_a_path_that_the_spec_lacks_now_says_nothing(tmp_path: Path) -> None:
    saved = kept(tmp_path, found(WRONG, "A A B"))
    other, made = oracle_of(EDGES[:2]), Table(RIGHT)
    with pytest.raises(DataError, match="does not allow B as step 3 of the saved"):
        replay_again(saved, other, lambda: made)
    assert made.closed == 1


def test_another_branch_that_the_spec_allows_is_neither_failure_nor_fix(tmp_path: Path) -> None:
    saved = kept(tmp_path, found(WRONG, "A A B"))
    forked, made = oracle_of([*EDGES, (0, 3, "A")]), Table(RIGHT | {(0, "A"): 3})
    assert replay_again(saved, forked, lambda: made) == (ReplayOutcome.ELSEWHERE, None)
    assert made.closed == 1


def test_other_variables_are_another_spec() -> None:
    saved = SavedDivergence("toy", "m:f", "k", ("y",), (0,), ())
    with pytest.raises(DataError, match="other variables"):
        replay_again(saved, ORACLE, lambda: Table(RIGHT))


def itf(*states: tuple[State, str], **meta: object) -> str:
    listed = [{"x": state[0], "#meta": {"action": name} if name else {}} for state, name in states]
    return json.dumps({"#meta": meta, "vars": ["x"], "states": listed})


def test_any_itf_trace_that_names_its_actions_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "foreign.itf.json"
    for about in ("not ours", {"constants": "not ours"}):
        path.write_text(itf(((0,), ""), ((1,), "A"), kconform=about))
        assert load(path) == SavedDivergence("", "", "", ("x",), (0,), actions("A"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        (b"\xff\xff", "cannot be read"),
        (b"{", "found.itf.json: Not an ITF file"),
        (itf().encode(), "holds no state"),
        (itf(((0,), ""), ((1,), "")).encode(), "does not say which action"),
        (itf(((0,), ""), ((1,), "A"), ((2,), "")).encode(), "does not say which action"),
    ],
    ids=["missing", "no text", "no JSON", "empty", "no action", "one action lacks"],
)
def test_a_file_that_cannot_be_replayed_is_named(
    tmp_path: Path, text: bytes | None, message: str
) -> None:
    path = tmp_path / "found.itf.json"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(DataError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
