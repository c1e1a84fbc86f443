"""What a foreign implementation wrote is imported whole; what cannot be read is still counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.tla import Action, State
from conformance.traces.exporting import to_itf_text, to_ndjson
from conformance.traces.importing import ImportResult, import_traces
from conformance.traces.manifest import Identity
from conformance.traces.model import End
from conformance.traces.store import TraceStore

VARIABLES = ("holder", "count")
TAKE, DROP = Action("Take", ("a",)), Action("Drop")
IDENTITY = Identity(
    spec="Lock",
    spec_hash="ab" * 32,
    model="small",
    constants={},
    variables=list(VARIABLES),
    actions=[str(TAKE), str(DROP)],
    system="foreign",
    system_version="",
)


class Lock:
    """The spec; `count` is a ghost that may start at 0 or 5."""

    def initial_states(self) -> Sequence[State]:
        return [("nobody", 0), ("nobody", 5)]

    def successors(self, state: State, action: Action) -> Sequence[State]:
        holder, count = state
        assert isinstance(count, int)
        if action == TAKE:
            return [("a", count + 1)] if holder == "nobody" else []
        return [("nobody", count)] if holder == "a" else []


def event(trace: object, step: int, action: Action | None = None, **state: object) -> str:
    data: dict[str, object] = {"trace": trace, "step": step, "state": state}
    if action is not None:
        data["action"] = {"name": action.name, "args": list(action.args)}
    return json.dumps(data)


GOOD = [
    event("x", 0, holder="nobody", count=0),
    event("x", 1, TAKE, holder="a", count=1),
    event("x", 2, DROP, holder="nobody", count=1),
]


def load(
    tmp_path: Path, lines: Sequence[str], *, spec: Lock | None = None
) -> tuple[ImportResult, TraceStore]:
    source = tmp_path / "events.ndjson"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = import_traces([source], IDENTITY, tmp_path / "store", spec=spec)
    return result, TraceStore.open(tmp_path / "store")


def test_events_become_traces_though_their_lines_are_mixed(tmp_path: Path) -> None:
    other = [line.replace('"x"', "7") for line in GOOD]
    mixed = [line for pair in zip(GOOD, other, strict=True) for line in pair]
    result, store = load(tmp_path, mixed)
    first, second = store.traces()
    assert first.states == second.states == (("nobody", 0), ("a", 1), ("nobody", 1))
    assert [step.action for step in first.steps] == [TAKE, DROP]
    assert (first.end, first.problem) == (End.IMPORTED, None)
    assert first.source is not None
    assert first.source.endswith('events.ndjson:1 "x"')
    assert result.problems == ()


MORE = {
    "no state": (json.dumps({"trace": "x", "step": 3}), "the event has no state"),
    "not JSON": ("{", "not JSON"),
    "no trace": ("{}", 'the key "trace"'),
    "unknown action": (event("x", 3, Action("Steal"), holder="a", count=2), "no action Steal"),
    "unknown argument": (
        event("x", 3, Action("Take", ("z",)), holder="z", count=2),
        "others called Take",
    ),
    "a variable less": (event("x", 3, TAKE, holder="a"), "count is not observed"),
    "a variable more": (event("x", 3, TAKE, holder="a", count=2, hue=1), "no variable hue"),
    "no value": (event("x", 3, TAKE, holder=None, count=1), "ITF has no value"),
}
BROKEN = {
    **{case: ([*GOOD, line], 4, reason) for case, (line, reason) in MORE.items()},
    "a gap": ([GOOD[0], GOOD[2]], 2, "step 1 is missing, step 2 came"),
    "an action at first": ([event("x", 0, TAKE, holder="a", count=1)], 1, "has no action"),
    "no action": ([GOOD[0], event("x", 1, holder="a", count=1)], 2, "not of the form"),
}


@pytest.mark.parametrize("case", BROKEN, ids=str)
def test_what_cannot_be_read_makes_its_trace_inconclusive(tmp_path: Path, case: str) -> None:
    lines, line, reason = BROKEN[case]
    result, store = load(tmp_path, lines)
    (problem,) = result.problems
    assert problem.line == line
    assert reason in problem.reason
    broken = [trace for trace in store.traces() if trace.problem]
    assert len(broken) == 1
    assert broken[0].problem is not None
    assert broken[0].problem.endswith(f"events.ndjson:{line}")
    assert store.manifest.counts.problems == 1


def test_a_ghost_is_completed_by_the_spec(tmp_path: Path) -> None:
    lines = [event(1, 0, holder="nobody"), event(1, 1, TAKE, holder="a")]
    result, store = load(tmp_path, lines, spec=Lock())
    assert store.trace(0).states in ((("nobody", 0), ("a", 1)), (("nobody", 5), ("a", 6)))
    assert result.ambiguous == 1


def test_what_no_state_of_the_spec_shows_is_a_divergence_recorded_as_observed(
    tmp_path: Path,
) -> None:
    lines = [
        event(1, 0, holder="nobody"),
        event(1, 1, TAKE, holder="b"),
        event(1, 2, DROP, holder="a"),
    ]
    _, store = load(tmp_path, lines, spec=Lock())
    trace = store.trace(0)
    assert trace.end is End.DIVERGED
    assert trace.states[-1] == ("b", None)
    assert len(trace.steps) == 1


def test_without_a_spec_what_was_not_observed_stays_so(tmp_path: Path) -> None:
    _, store = load(tmp_path, [event(1, 0, holder="nobody")])
    assert store.trace(0).initial == ("nobody", None)


def test_nothing_to_import_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing was imported"):
        load(tmp_path, [])
    with pytest.raises(UserError, match="cannot be read"):
        import_traces([tmp_path / "none"], IDENTITY, tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_what_was_exported_is_imported(tmp_path: Path) -> None:
    _, store = load(tmp_path, GOOD)
    (trace,) = store.traces()
    again, itf = tmp_path / "again.ndjson", tmp_path / "t.itf.json"
    again.write_text("\n".join(to_ndjson([trace], VARIABLES)), encoding="utf-8")
    itf.write_text(to_itf_text(trace, VARIABLES), encoding="utf-8")
    result = import_traces([again, itf], IDENTITY, tmp_path / "both")
    assert result.problems == ()
    both = list(TraceStore.open(tmp_path / "both").traces())
    assert [(one.states, one.steps) for one in both] == [(trace.states, trace.steps)] * 2


def test_a_damaged_itf_file_is_an_inconclusive_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.itf.json"
    path.write_text('{"vars": [')
    result = import_traces([path], IDENTITY, tmp_path / "store")
    assert result.problems[0].reason.startswith("Not an ITF file")
