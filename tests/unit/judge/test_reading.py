"""Recordings are read whole, a trace at a time; what cannot be read is still counted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.judge import reading
from conformance.judge.events import Clock, EventReader, Recording, read_event
from conformance.judge.reading import RecordingReader, locate, read_recordings
from conformance.tla import Action, ActionPattern, ObservedPart, Value, make_record, parse_place
from tests.unit.judge.paths import path_of
from tests.unit.traces.test_store import FREE, HELD, IDENTITY, trace


def load(folder: Path, lines: Sequence[str]) -> list[Recording]:
    source = folder / "events.ndjson"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(read_recordings([source]))


def event(name: object, **further: object) -> str:
    return json.dumps({"trace": name, **further})


GOOD = [
    event("x", step=0, state={"holder": "nobody", "count": 0}),
    event("x", step=1, action={"name": "Take", "args": ["a"]}, state={"holder": "a"}),
    event("x", step=2, action="Drop"),
]


def test_lines_of_several_traces_may_be_mixed(tmp_path: Path) -> None:
    other = [line.replace('"x"', "7") for line in GOOD]
    mixed = [line for pair in zip(GOOD, other, strict=True) for line in pair]
    first, second = load(tmp_path, mixed)
    assert (first.name, second.name) == ("x", "7")
    assert [one.step for one in first.events] == [0, 1, 2]
    assert [one.actions for one in second.events] == [
        (),
        (ActionPattern("Take", ("a",)),),
        (ActionPattern("Drop"),),
    ]
    assert first.source == f"{tmp_path}/events.ndjson:1"
    assert second.placed()[2].source == f"{tmp_path}/events.ndjson:6"


def test_an_event_carries_what_it_is_given(tmp_path: Path) -> None:
    line = event(
        "x",
        action=[{"name": "Take", "args": [None, 2]}, "Drop"],
        before={"log.b1": []},
        state={'log["b1"]': [1], "channel.b2.error": "NONE"},
        process="b1",
        sequence=7,
        time=1.5,
        uncertainty=0.25,
        sent="m1",
        received=["m2", 3],
        source="server.log:12",
    )
    ((one,),) = [recording.events for recording in load(tmp_path, [line])]
    assert one.actions == (ActionPattern("Take", (None, 2)), ActionPattern("Drop"))
    assert one.before == (ObservedPart(parse_place('log["b1"]'), ()),)
    assert [str(part.place) for part in one.after] == ["log.b1", "channel.b2.error"]
    assert (one.process, one.sequence, one.clock) == ("b1", 7, Clock(1.5, 0.25))
    assert (one.sent, one.received) == (frozenset(["m1"]), frozenset(["m2", "3"]))
    assert one.source == "server.log:12"


BROKEN = {
    "not JSON": ("{", "not JSON"),
    "no trace": ("{}", 'the key "trace"'),
    "no object": ("[1]", 'the key "trace"'),
    "an unknown key": (event("x", stat={}), "no key 'stat'"),
    "a state that is none": (event("x", state=3), "no object of variables"),
    "no value": (event("x", state={"holder": None}), "ITF has no value"),
    "no place": (event("x", state={"holder[": 1}), "names no part of a state"),
    "no action": (event("x", action=3), "not of the form"),
    "no number": (event("x", sequence="a"), "sequence is no whole number"),
    "no time": (event("x", time="noon"), "a time of ISO 8601"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_a_trace_with_a_problem(tmp_path: Path, case: str) -> None:
    line, reason = BROKEN[case]
    broken = [one for one in load(tmp_path, [*GOOD, line]) if one.problem]
    assert len(broken) == 1
    assert reason in broken[0].problem
    assert broken[0].problem.endswith("events.ndjson:4")


def test_a_torn_line_makes_the_trace_that_it_names_one_with_a_problem(tmp_path: Path) -> None:
    """Judged without it, the trace might be called wrong for a step that was torn away."""
    torn = [GOOD[0], event("y"), GOOD[1], '{"trace": "x", "step": 2, "action": "Dr']
    first, second = load(tmp_path, torn)
    assert (first.name, second.name) == ("x", "y")
    assert first.problem.startswith("not JSON")
    assert first.problem.endswith("events.ndjson:4")
    assert not second.problem


def test_lines_that_differ_in_their_trace_only_are_read_alike(tmp_path: Path) -> None:
    """Whatever stands where: the name first, last, with escapes, a number; blank lines between."""
    rest = json.dumps({"action": {"name": "Take", "args": [1]}, "state": {"count": True}})[1:]
    names = ['"a"', ' "b"', '"\\u0063"', "4"]
    lines = [f'{{"trace":{name},{rest}' for name in names] + ["", f'{{{rest[:-1]}, "trace": "e"}}']
    found = load(tmp_path, lines * 2)
    assert [one.name for one in found] == ["a", "b", "c", "4", "e"]
    for one in found:
        assert [event.actions for event in one.events] == [(ActionPattern("Take", (1,)),)] * 2
        assert all(event.after[0].value is True for event in one.events)
    assert found[0].placed()[1].source.endswith(":7")


def test_events_of_the_same_text_are_one_object_and_each_has_its_place(tmp_path: Path) -> None:
    lines = [event(name, action="Drop") for name in "aabba"]
    first, second = load(tmp_path, lines)
    assert len({id(one) for one in (*first.events, *second.events)}) == 1
    path = tmp_path / "events.ndjson"
    assert [one.source for one in first.placed()] == [f"{path}:{n}" for n in (1, 2, 5)]
    assert [one.source for one in second.placed()] == [f"{path}:{n}" for n in (3, 4)]


def test_a_line_that_ends_after_its_name_is_its_own_and_not_the_next_ones_beginning(
    tmp_path: Path,
) -> None:
    torn = '{"trace": "x", '
    for lines in ([torn, torn], [torn, GOOD[0]], [GOOD[0], torn]):
        (one,) = load(tmp_path, lines)
        assert one.problem.endswith(f"events.ndjson:{1 + lines.index(torn)}")


def test_long_traces_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_AT_ONCE", 100)
    lines = [event("x", state={"count": n}) for n in range(50)]
    (one,) = load(tmp_path, lines)
    assert [part.value for e in one.events for part in e.after] == list(range(50))
    assert one.placed()[49].source.endswith(":50")
    (located,) = locate([tmp_path / "events.ndjson"])
    assert len(list(located.runs())) > 10
    assert (located.lines, located.size) == (50, sum(len(line) + 1 for line in lines))


def test_a_file_that_changes_while_it_is_read_makes_a_problem(tmp_path: Path) -> None:
    load(tmp_path, GOOD)
    path = tmp_path / "events.ndjson"
    (located,) = locate([path])
    path.write_text(GOOD[0] + "\n")
    with RecordingReader() as reader:
        assert "changed while it was read" in reader.read(located).problem


def test_what_is_shared_is_forgotten_when_it_is_much() -> None:
    reader = EventReader(remember=200)
    lines = [event("x", state={"count": n}).encode() for n in range(50)]
    for _ in range(2):
        read = [reader.read(line[:14], line[14:]) for line in lines]
        assert [one.after[0].value for one in read] == list(range(50))


def test_nothing_to_read_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing was read"):
        load(tmp_path, [])
    with pytest.raises(UserError, match="cannot be read"):
        list(read_recordings([tmp_path / "none"]))


def test_progress_is_told_in_bytes(tmp_path: Path) -> None:
    source = tmp_path / "events.ndjson"
    source.write_text("\n".join([*GOOD, GOOD[0].replace('"x"', '"y"')]) + "\n")
    told: list[tuple[int, int]] = []
    list(read_recordings([source, source], lambda done, total: told.append((done, total))))
    size = source.stat().st_size
    assert [total for _, total in told] == [2 * size] * 4
    assert told[-1] == (2 * size, 2 * size)
    assert sorted(told) == told


def test_a_damaged_itf_file_is_a_trace_with_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "t.itf.json"
    path.write_text('{"vars": [')
    (one,) = read_recordings([path])
    assert one.problem.startswith("Not an ITF file")


def test_what_was_exported_is_read(tmp_path: Path) -> None:
    from conformance.traces.exporting import to_itf_text, to_ndjson

    one = trace(0, FREE, HELD)
    ndjson, itf = tmp_path / "t.ndjson", tmp_path / "t.itf.json"
    ndjson.write_text("\n".join(to_ndjson([one], IDENTITY.variables)), encoding="utf-8")
    itf.write_text(to_itf_text(one, IDENTITY.variables), encoding="utf-8")
    read = [path_of(recording, IDENTITY.variables) for recording in read_recordings([ndjson, itf])]
    assert read == [(one.states, one.steps)] * 2


BAD_LINES = {
    "a key twice": '{"trace": "x", "step": 1, "step": 2, "action": "Drop"}',
    "a key twice, escaped": '{"trace": "x", "step": 1, "st\\u0065p": 2, "action": "Drop"}',
    "another trace in the same line": '{"trace": "x", "trace": "y", "action": "Drop"}',
    "a key twice in a value": '{"trace": "x", "state": {"r": {"a": 1, "a": 2}}}',
    "a key twice in a map": '{"trace": "x", "state": {"r": {"#map": [[1, 1], [1, 2]]}}}',
    "half of a pair": '{"trace": "x", "state": {"holder": "\\ud800"}}',
    "half of a pair in a process": '{"trace": "x", "process": "\\udfff", "action": "Drop"}',
    "NaN": '{"trace": "x", "time": NaN, "action": "Drop"}',
    "more than any time": '{"trace": "x", "time": 1e999, "action": "Drop"}',
    "more than any number": '{"trace": "x", "time": 1%s, "action": "Drop"}' % ("0" * 400),
    "an uncertainty without end": '{"trace": "x", "time": 1, "uncertainty": 1e999}',
    "deep": event("x", state={"holder": "@"}).replace('"@"', "[" * 100_000 + "]" * 100_000),
    "deep, and the name at the end": f'{{"state": {"[" * 9999}1{"]" * 9999}, "trace": "x"}}',
    "a long number": '{"trace": "x", "step": %s}' % ("9" * 5000),
    "no UTF-8": '{"trace": "x", "source": "\udcff"}',
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_is_its_traces_matter_alone(tmp_path: Path, line: str) -> None:
    source = tmp_path / "events.ndjson"
    others = [one.replace('"x"', '"other"') for one in GOOD]
    text = "\n".join([*others[:2], line, others[2]])
    source.write_bytes(text.encode(errors="surrogateescape"))
    good, bad = read_recordings([source])
    assert (good.name, good.problem, len(good.events)) == ("other", "", 3)
    assert bad.problem.endswith(f"{source}:3")
    assert len(bad.problem) < 3000


def test_a_trace_with_a_long_name_is_called_by_its_line(tmp_path: Path) -> None:
    good, bad = load(tmp_path, [GOOD[0], event("n" * 50_000_000)])
    assert (good.name, bad.name) == ("x", "line 2")
    assert "50,000,000 characters" in bad.problem


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gzip"])
def test_a_file_may_be_compressed_or_begin_with_a_mark(tmp_path: Path, encoding: str) -> None:
    text = "\n".join(GOOD)
    source = tmp_path / "events.ndjson"
    whole = gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding)
    source.write_bytes(whole)
    (one,) = read_recordings([source])
    assert (one.name, one.problem, len(one.events)) == ("x", "", 3)


def test_a_file_that_cannot_be_read_is_a_trace_with_a_problem(tmp_path: Path) -> None:
    (tmp_path / "good.ndjson").write_text("\n".join(GOOD))
    (tmp_path / "half.ndjson").write_bytes(gzip.compress(b"x" * 1000)[:20])
    good, half, gone = read_recordings(
        [tmp_path / name for name in ("good.ndjson", "half.ndjson", "gone.itf.json")]
    )
    assert not good.problem
    assert "begins as gzip" in half.problem
    assert "No such file" in gone.problem


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (12.5, 12.5),
        ("2026-01-05T10:00:00.123Z", 1767607200.123),
        ("2026-01-05T11:00:00.123+01:00", 1767607200.123),
        ("2026-01-05 10:00:00,123456789", 1767607200.123456),
    ],
)
def test_a_time_is_seconds_or_of_iso_8601(
    tmp_path: Path, time: float | str, seconds: float
) -> None:
    (one,) = load(tmp_path, [event("x", time=time)])
    assert one.events[0].clock is not None
    assert one.events[0].clock.time == pytest.approx(seconds, abs=1e-6)
    assert read_event({"time": time}).clock == one.events[0].clock


def test_a_record_may_be_seen_in_part(tmp_path: Path) -> None:
    seen = {"#fields": {"epoch": 3, "Len(entries)": 2, "to.id": "b1"}}
    (one,) = load(tmp_path, [event("x", action={"name": "Receive", "args": [seen, None]})])
    (pattern,) = one.events[0].actions
    assert str(pattern) == 'Receive([epoch = 3, Len(entries) = 2, to.id = "b1"], _)'
    entries: Value = (1, 1)
    to: Value = make_record(id="b1")
    right = make_record(epoch=3, entries=entries, to=to)
    assert pattern.admits(Action("Receive", (right, 1)))
    for wrong in (
        make_record(epoch=4, entries=entries, to=to),
        make_record(epoch=3, entries=(1,), to=to),
        make_record(epoch=3, entries=entries),
        3,
    ):
        assert not pattern.admits(Action("Receive", (wrong, 1)))
