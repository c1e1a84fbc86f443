"""Writes a trace store: aside first, then renamed, so that a store is whole or absent."""

from __future__ import annotations

import errno
import shutil
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from conformance.errors import UserError
from conformance.files import check_folder, space_for
from conformance.tla import Fingerprinter, Sharing, shows
from conformance.traces.manifest import (
    FORMAT,
    MANIFEST,
    SCHEMA_VERSION,
    Counts,
    FileEntry,
    Identity,
    Manifest,
    content_hash,
    file_sha256,
    read_manifest,
)
from conformance.traces.model import PartialState, Trace, state_fingerprint
from conformance.traces.rows import TraceRows, write_parquet
from conformance.traces.states import StateColumns

_PARTS = ("states", "traces")
STATES_PER_FILE = 65_536
MAX_TRACES_PER_FILE = 32_768


def traces_per_file(traces: int) -> int:
    """How many traces a file holds: a function of their number alone, so that the bytes are too."""
    return min(max(-(-traces // 64), 64), MAX_TRACES_PER_FILE)


@dataclass(frozen=True, slots=True)
class ChunkInfo:
    """A file of traces that was written: its place in the store, and what it holds."""

    number: int
    entry: FileEntry
    steps: int
    problems: int
    ends: Mapping[str, int]


def write_chunk(folder: Path, number: int, rows: TraceRows) -> ChunkInfo:
    """Write one file of traces into a store's folder; safe to be repeated by a retried task."""
    target = folder / "traces" / f"part-{number:05d}.parquet"
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    rows.write(aside)
    entry = _entry(folder, aside, len(rows), name=f"traces/{target.name}")
    aside.replace(target)
    return ChunkInfo(number, entry, rows.steps, rows.problems, rows.ends)


def _entry(folder: Path, path: Path, rows: int, name: str | None = None) -> FileEntry:
    relative = name or path.relative_to(folder).as_posix()
    return FileEntry(relative, rows, path.stat().st_size, file_sha256(path))


@dataclass(slots=True)
class StoreWriter:
    """Gathers the files of a store in `folder`; `open_writer` makes and ends it."""

    folder: Path
    identity: Identity
    columns: StateColumns
    compared: Mapping[str, int] = field(default_factory=dict)
    _chunks: list[ChunkInfo] = field(default_factory=list)
    _states: list[FileEntry] = field(default_factory=list)

    def add_chunk(self, chunk: ChunkInfo) -> None:
        """A file that `write_chunk` wrote into the folder, perhaps in another process."""
        self._chunks.append(chunk)

    def write_states(
        self, fingerprints: npt.NDArray[np.int64], states: Sequence[PartialState]
    ) -> None:
        """All distinct states, once, in any order: `fingerprints[i]` is that of `states[i]`."""
        if self._states:
            raise ValueError("the states of a store are written once")
        order = np.argsort(fingerprints, kind="stable")
        for number, first in enumerate(range(0, max(len(order), 1), STATES_PER_FILE)):
            rows = order[first : first + STATES_PER_FILE]
            table = self.columns.table(fingerprints[rows], [states[row] for row in rows.tolist()])
            path = self.folder / "states" / f"part-{number:05d}.parquet"
            write_parquet(table, path)
            self._states.append(_entry(self.folder, path, len(rows)))

    def manifest(self) -> Manifest:
        """The manifest of what was added."""
        chunks = sorted(self._chunks, key=lambda chunk: chunk.number)
        files = [*self._states, *(chunk.entry for chunk in chunks)]
        ends: Counter[str] = Counter()
        for chunk in chunks:
            ends.update(chunk.ends)
        schema = self.columns.to_json()
        return Manifest(
            format=FORMAT,
            schema_version=SCHEMA_VERSION,
            identity=self.identity,
            state_schema=msgspec.Raw(schema),
            counts=Counts(
                traces=sum(chunk.entry.rows for chunk in chunks),
                steps=sum(chunk.steps for chunk in chunks),
                states=sum(entry.rows for entry in self._states),
                problems=sum(chunk.problems for chunk in chunks),
                ends=dict(sorted(ends.items())),
                compared=dict(self.compared),
            ),
            files=files,
            content_hash=content_hash(self.identity, schema, files),
        )


@contextmanager
def open_writer(
    path: Path, identity: Identity, columns: StateColumns, *, replace: bool = False
) -> Iterator[StoreWriter]:
    """A writer whose store appears at `path` when the block ends, and not at all if it fails.

    Raises UserError if `path` exists, unless `replace` is set and it is a trace store (the old
    one stays until the new one is whole), and DataError when the disk is full.
    """
    check_target(path, replace=replace)
    path = path.resolve() if path.is_symlink() else path  # a link stays, and leads to the new store
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_name(f".{path.name}.partial-{uuid.uuid4().hex[:12]}")
    try:
        with space_for(path):
            for part in _PARTS:
                (folder / part).mkdir(parents=True)
            writer = StoreWriter(folder, identity, columns)
            yield writer
            (folder / MANIFEST).write_bytes(
                msgspec.json.format(msgspec.json.encode(writer.manifest()), indent=1)
            )
            _move_into_place(folder, path, replace=replace)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_target(path: Path, *, replace: bool) -> None:
    """Whether a store can be written at `path`: what `open_writer` raises, before anything runs.

    UserError too if nothing can be written beside it, where a store is until it is whole.
    """
    check_folder(path)
    if not path.exists():
        return
    check_folder(path.parent)
    if not replace:
        raise UserError(
            f"{path} exists already. Replace it with --force, or name another store with -o."
        )
    read_manifest(path)  # whatever is not a store is not ours to remove
    foreign = sorted({entry.name for entry in path.iterdir()} - {MANIFEST, *_PARTS})
    if foreign:
        raise UserError(
            f"{path} holds {foreign[0]}, which is no part of a store and would be removed with it. "
            "Move it elsewhere, or name another store with -o."
        )


def _move_into_place(folder: Path, path: Path, *, replace: bool) -> None:
    try:
        folder.rename(path)
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
    if not replace:
        raise UserError(
            f"Another process has written {path} meanwhile, and what this one has recorded is not "
            "kept. Run the command again with another name of a store (-o)."
        )
    old = path.with_name(f".{path.name}.old-{uuid.uuid4().hex[:12]}")
    path.rename(old)
    folder.rename(path)
    shutil.rmtree(old, ignore_errors=True)


class TraceCollector:
    """Turns traces with their states' values into rows and distinct states, one by one.

    With `open_dictionary` an action that the store's dictionary lacks is added to it.
    """

    def __init__(
        self,
        writer: StoreWriter,
        per_file: int = MAX_TRACES_PER_FILE,
        *,
        open_dictionary: bool = False,
    ) -> None:
        self._open = open_dictionary
        self._share = Sharing()
        self._writer = writer
        self._per_file = per_file
        self._variables = tuple(writer.identity.variables)
        self._codes = {action: code for code, action in enumerate(writer.identity.parsed_actions())}
        self._fingerprint = Fingerprinter()
        self._known: dict[PartialState, tuple[PartialState, int]] = {}
        self._alike: dict[int, PartialState] = {}
        self._rows = TraceRows()
        self._files = 0

    def add(self, trace: Trace) -> None:
        """One trace. KeyError if an action is not in the store's dictionary, unless it is open."""
        states = [self._state(state) for state in trace.states] if trace.initial else []
        if self._open:
            for step in trace.steps:
                self._codes.setdefault(step.action, len(self._codes))
        actions = [self._codes[step.action] for step in trace.steps]
        self._rows.add(
            trace.trace_id,
            trace.seed,
            states,
            actions,
            trace.end.value,
            trace.problem,
            trace.source,
        )
        if len(self._rows) >= self._per_file:
            self._flush()

    def _state(self, state: PartialState) -> int:
        known = self._known.get(state)
        if known is not None and shows(known[0], state):
            return known[1]
        value = state_fingerprint(state, self._variables, self._fingerprint)
        state = self._share(state)
        if known is None:
            self._known[state] = state, value
        else:  # equal for Python only: TRUE in the place of 1
            self._alike[value] = state
        return value

    def states(self) -> list[PartialState]:
        """The distinct states of all traces so far."""
        return [*(state for state, _ in self._known.values()), *self._alike.values()]

    def _flush(self) -> None:
        self._writer.add_chunk(write_chunk(self._writer.folder, self._files, self._rows))
        self._files += 1
        self._rows = TraceRows()

    def finish(self) -> None:
        """Write what is left, and the states."""
        if len(self._rows) or not self._files:
            self._flush()
        if self._open:
            listed = [str(action) for action in self._codes]
            self._writer.identity = msgspec.structs.replace(self._writer.identity, actions=listed)
        distinct = {value: state for state, value in self._known.values()} | self._alike
        prints = np.fromiter(distinct, np.int64, count=len(distinct))
        self._writer.write_states(prints, list(distinct.values()))


def write_store(
    path: Path,
    identity: Identity,
    columns: StateColumns,
    traces: Sequence[Trace],
    *,
    replace: bool = False,
) -> Manifest:
    """A store of traces that are at hand; bulk recording writes its files in parallel instead."""
    with open_writer(path, identity, columns, replace=replace) as writer:
        collector = TraceCollector(writer, traces_per_file(len(traces)))
        for trace in traces:
            collector.add(trace)
        collector.finish()
    return read_manifest(path)
