"""Any traces survive the store, NDJSON and ITF; their order of writing does not matter."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judge.reading import read_recordings
from conformance.tla import Action, ModelValue, Value, make_record
from conformance.traces.exporting import to_ndjson
from conformance.traces.manifest import Identity
from conformance.traces.model import PartialState, Trace, TraceEnd, TraceStep
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import write_store
from tests.unit.judge.paths import path_of

ACTIONS = (Action("Send", (ModelValue("n1"), 2)), Action("Stop"))
VARIABLES = ("number", "log", "members", "message")
IDENTITY = Identity(
    spec="Any",
    spec_hash="00" * 32,
    model="",
    constants={},
    variables=list(VARIABLES),
    actions=[str(action) for action in ACTIONS],
    system="",
    system_version="",
)

numbers = st.integers(-(2**63), 2**63 - 1)
records = st.builds(
    lambda epoch, kind: make_record(epoch=epoch, kind=kind), numbers, st.sampled_from(["a", "b"])
)
VALUES: tuple[st.SearchStrategy[Value], ...] = (
    numbers,
    st.lists(records, max_size=3).map(tuple),
    st.frozensets(st.text(max_size=3), max_size=3),
    records,
)
whole_states = st.tuples(*VALUES)
partial_states = st.tuples(*(st.none() | value for value in VALUES))


@st.composite
def traces(draw: st.DrawFn, states: st.SearchStrategy[PartialState]) -> list[Trace]:
    made = []
    for number in range(draw(st.integers(0, 4))):
        path = draw(st.lists(states, min_size=1, max_size=4))
        steps = tuple(TraceStep(draw(st.sampled_from(ACTIONS)), state) for state in path[1:])
        made.append(Trace(number, draw(numbers), path[0], steps, draw(st.sampled_from(TraceEnd))))
    return made


def save(folder: Path, content: list[Trace]) -> TraceStore:
    columns = infer_columns(VARIABLES, [state for one in content for state in one.states])
    write_store(folder, IDENTITY, columns, content)
    return TraceStore.open(folder)


@settings(max_examples=40)
@given(traces(partial_states))
def test_the_store_gives_back_what_it_was_given(content: list[Trace]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = save(Path(folder) / "s", content)
        assert list(store.traces()) == content
        distinct = {state for one in content for state in one.states}
        assert store.manifest.counts.states == len(distinct)


@settings(max_examples=30)
@given(traces(whole_states).filter(bool))
def test_ndjson_gives_back_what_it_was_given(content: list[Trace]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.ndjson"
        path.write_text("\n".join(to_ndjson(content, VARIABLES)), encoding="utf-8")
        again = [path_of(one, VARIABLES) for one in read_recordings([path])]
        assert again == [(one.states, one.steps) for one in content]
