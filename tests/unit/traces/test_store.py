"""A store is whole or absent, says what it is, and notices when it was changed."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from conformance.errors import DataError, UserError
from conformance.tla import Action, State, fingerprint, make_record
from conformance.traces.manifest import Identity, read_manifest
from conformance.traces.model import PartialState, Trace, TraceEnd, TraceStep
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import open_writer, write_store

VARIABLES = ("holder", "count")
TAKE, DROP = Action("Take", ("a",)), Action("Drop")
FREE: State = ("nobody", 0)
HELD: State = ("a", 1)

IDENTITY = Identity(
    spec="Lock",
    spec_hash="ab" * 32,
    model="small",
    constants={"Clients": '{"a"}'},
    variables=list(VARIABLES),
    actions=[str(TAKE), str(DROP)],
    system="toy",
    system_version="1",
)


def trace(trace_id: int, *states: PartialState) -> Trace:
    actions = [TAKE, DROP] * len(states)
    steps = tuple(TraceStep(a, s) for a, s in zip(actions, states[1:], strict=False))
    return Trace(trace_id, 7, states[0], steps, TraceEnd.LENGTH)


TRACES = [trace(0, FREE), trace(1, FREE, HELD), trace(2, FREE, HELD, ("nobody", 1))]


def save(path: Path, traces: list[Trace], **options: bool) -> TraceStore:
    columns = infer_columns(VARIABLES, [state for one in traces for state in one.states])
    write_store(path, IDENTITY, columns, traces, **options)
    return TraceStore.open(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    store = save(tmp_path / "s", TRACES)
    assert list(store.traces()) == TRACES
    assert store.trace(2) == TRACES[2]
    counts = store.manifest.counts
    assert (counts.traces, counts.steps, counts.states) == (3, 3, 3)
    assert counts.ends == {"length": 3}


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = save(tmp_path / "a", TRACES), save(tmp_path / "b", TRACES)
    assert first.manifest == second.manifest
    other = save(tmp_path / "c", TRACES[:2])
    assert other.manifest.content_hash != first.manifest.content_hash


def test_an_unobserved_variable_is_none_and_never_taken_for_a_value(tmp_path: Path) -> None:
    partial = trace(0, FREE, ("a", None))
    store = save(tmp_path / "s", [partial])
    assert store.trace(0) == partial
    assert store.manifest.counts.states == 2


def test_a_value_that_fits_no_column_is_kept_as_it_was_seen(tmp_path: Path) -> None:
    broken = trace(0, FREE, ("a", "one"), ("a", None), (make_record(x=True), 1))
    columns = infer_columns(VARIABLES, broken.states, reference=[FREE])
    write_store(tmp_path / "s", IDENTITY, columns, [broken])
    store = TraceStore.open(tmp_path / "s")
    assert store.trace(0) == broken
    assert store.check_fingerprints() == 3


def test_states_that_only_python_takes_for_equal_are_two(tmp_path: Path) -> None:
    first, second = trace(0, ("a", (1,))), trace(1, ("a", (True,)))
    columns = infer_columns(VARIABLES, [*first.states, *second.states], reference=[("a", (1,))])
    write_store(tmp_path / "s", IDENTITY, columns, [first, second])
    read = list(TraceStore.open(tmp_path / "s").traces())
    assert [str(one.initial) for one in read] == ["('a', (1,))", "('a', (True,))"]


def test_records_survive(tmp_path: Path) -> None:
    rich = trace(0, (make_record(a=1, b=(True,)), 0), (make_record(a=2, b=()), 1))
    assert save(tmp_path / "s", [rich]).trace(0) == rich


def test_an_existing_folder_is_not_touched_unless_it_is_a_store_and_may_be_replaced(
    tmp_path: Path,
) -> None:
    save(tmp_path / "s", TRACES)
    with pytest.raises(UserError, match="exists already"):
        save(tmp_path / "s", TRACES[:1])
    assert len(list(save(tmp_path / "s", TRACES[:1], replace=True).traces())) == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(DataError, match="not a trace store"):
        save(tmp_path / "mine", TRACES, replace=True)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "precious"


def test_a_link_to_a_store_leads_to_the_new_one(tmp_path: Path) -> None:
    save(tmp_path / "real", TRACES)
    (tmp_path / "link").symlink_to("real")
    assert len(list(save(tmp_path / "link", TRACES[:1], replace=True).traces())) == 1
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_what_is_no_part_of_a_store_is_not_removed_with_it(tmp_path: Path) -> None:
    save(tmp_path / "s", TRACES)
    (tmp_path / "s" / "notes.txt").write_text("kept")
    with pytest.raises(UserError, match=r"holds notes\.txt"):
        save(tmp_path / "s", TRACES, replace=True)
    assert (tmp_path / "s" / "notes.txt").read_text() == "kept"


def test_of_two_that_write_one_store_the_second_says_that_its_own_is_not_kept(
    tmp_path: Path,
) -> None:
    columns = infer_columns(VARIABLES, [FREE])
    with (
        pytest.raises(UserError, match="Another process has written"),
        open_writer(tmp_path / "s", IDENTITY, columns),
    ):
        save(tmp_path / "s", TRACES)
    assert len(list(TraceStore.open(tmp_path / "s").traces())) == len(TRACES)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), ValueError("a bug")])
def test_a_failure_leaves_nothing(tmp_path: Path, failure: BaseException) -> None:
    def half_a_store() -> None:
        with open_writer(tmp_path / "s", IDENTITY, infer_columns(VARIABLES, [FREE])) as writer:
            (writer.folder / "states" / "part-00000.parquet").write_bytes(b"half")
            raise failure

    with pytest.raises(type(failure)):
        half_a_store()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    columns = infer_columns(VARIABLES, [FREE])
    with (
        pytest.raises(DataError, match="full"),
        open_writer(tmp_path / "s", IDENTITY, columns),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_state_under_the_fingerprint_of_another_is_noticed(tmp_path: Path) -> None:
    columns = infer_columns(VARIABLES, [FREE, HELD])
    with open_writer(tmp_path / "s", IDENTITY, columns) as writer:
        writer.write_states(np.array([fingerprint(FREE), fingerprint(FREE) + 1]), [FREE, HELD])
    with pytest.raises(DataError, match=r"part-00000\.parquet holds a state under"):
        TraceStore.open(tmp_path / "s").check_fingerprints()
    assert save(tmp_path / "good", TRACES).check_fingerprints() == 3


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def add_another(path: Path) -> None:
    shutil.copy(path, path.with_name("part-99999.parquet"))


@pytest.mark.parametrize("part", ["states", "traces"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip, "another SHA-256"),
        (truncate, "the manifest says"),
        (Path.unlink, "missing"),
        (add_another, "not listed"),
    ],
)
def test_damage_is_noticed_and_the_file_named(
    tmp_path: Path, part: str, damage: object, message: str
) -> None:
    store = save(tmp_path / "s", TRACES)
    assert callable(damage)
    damage(store.files(part)[0])
    with pytest.raises(DataError, match=message) as caught:
        TraceStore.open(tmp_path / "s")
    assert f"{part}/part-" in str(caught.value)


def test_flipped_bytes_are_noticed_by_the_page_checksum_too(tmp_path: Path) -> None:
    store = save(tmp_path / "s", TRACES)
    path = store.files("traces")[0]
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(TraceStore.open(tmp_path / "s", verify=False).traces())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 99}, "schema version 99"),
        ({"format": "other"}, "not the manifest of a trace store"),
        ({"content_hash": "0"}, "content hash"),
        ({"files": 3}, "damaged"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    save(tmp_path / "s", TRACES)
    path = tmp_path / "s" / "manifest.json"
    data = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
    path.write_bytes(msgspec.json.encode(data | change))
    with pytest.raises(DataError, match=message):
        read_manifest(tmp_path / "s")


def test_a_store_of_another_spec_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "s", TRACES)
    assert TraceStore.open(tmp_path / "s", spec_hash=IDENTITY.spec_hash)
    with pytest.raises(DataError, match="another text of Lock"):
        TraceStore.open(tmp_path / "s", spec_hash="cd" * 32)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe"])
def test_what_is_no_manifest_is_said_to_be_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(DataError, match="manifest"):
        read_manifest(tmp_path)
