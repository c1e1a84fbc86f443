"""Reads a trace store, and proves first that it is what its manifest says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from conformance.errors import DataError
from conformance.tla import Action, Fingerprinter
from conformance.traces.manifest import FileEntry, Manifest, file_sha256, read_manifest
from conformance.traces.model import (
    PartialState,
    Trace,
    TraceEnd,
    TraceStep,
    complete,
    is_complete,
)
from conformance.traces.states import FINGERPRINT, StateColumns


@dataclass(frozen=True, slots=True)
class TraceStore:
    """A store of recorded traces: a folder with a manifest and Parquet files."""

    path: Path
    manifest: Manifest
    columns: StateColumns
    actions: tuple[Action, ...]
    """The dictionary of actions, by code."""

    @staticmethod
    def open(path: Path, *, spec_hash: str | None = None, verify: bool = True) -> TraceStore:
        """The store at `path`, every file's hash verified.

        Raises DataError that names the file when one is missing, damaged or of another schema
        version, or when the store was recorded against a spec of another hash.
        """
        manifest = read_manifest(path)
        store = TraceStore(
            path,
            manifest,
            StateColumns.from_json(bytes(manifest.state_schema)),
            manifest.identity.parsed_actions(),
        )
        if spec_hash is not None and manifest.identity.spec_hash != spec_hash:
            raise DataError(
                f"{path} was recorded against another text of {manifest.identity.spec} "
                f"(hash {manifest.identity.spec_hash[:12]}, now {spec_hash[:12]}). Record the "
                "traces again, or audit them with the spec that they were recorded against."
            )
        if verify:
            store.verify()
        return store

    def verify(self) -> None:
        """Check that every file is there with its size and SHA-256; DataError names the first."""
        for entry in self.manifest.files:
            _verify_file(self.path / entry.path, entry)
        known = {entry.path for entry in self.manifest.files}
        for path in sorted(self.path.glob("*/*.parquet")):
            if path.relative_to(self.path).as_posix() not in known:
                raise DataError(
                    f"{path} is not listed in the manifest: it was added to the store later. "
                    "Remove it."
                )

    def check_fingerprints(self, sample: int = 2000) -> int:
        """Check that about so many states have the fingerprint under which they are stored.

        A transition table knows states by fingerprint only, so a state stored under another's
        would pass unseen. Partial states are left out: a value that fitted no column is gone.
        Returns how many were checked; DataError names the file of the first that differs.
        """
        fingerprint, checked = Fingerprinter(), 0
        every = max(1, self.manifest.counts.states // sample)
        for path in self.files("states"):
            rows = read_file(path)
            rows = rows.take(pa.array(range(0, len(rows), every), pa.int64()))
            prints = rows.column(FINGERPRINT).to_pylist()
            for value, state in zip(prints, self.columns.states(rows), strict=True):
                if is_complete(state):
                    checked += 1
                    if fingerprint(complete(state)) != value:
                        raise DataError(
                            f"{path} holds a state under a fingerprint that is not its own "
                            f"({value}): the store was not written by kconform, or is damaged. "
                            "Record it again."
                        )
        return checked

    def files(self, part: str) -> tuple[Path, ...]:
        """The Parquet files of `states` or `traces`, in order."""
        return tuple(
            self.path / entry.path
            for entry in self.manifest.files
            if entry.path.startswith(f"{part}/")
        )

    def states(self, fingerprints: Collection[int]) -> dict[int, PartialState]:
        """The states with these fingerprints, as far as the store has them."""
        wanted = pa.array(sorted(fingerprints), pa.int64())
        states: dict[int, PartialState] = {}
        for path in self.files("states"):
            keys = read_file(path, [FINGERPRINT]).column(FINGERPRINT)
            mask = pc.is_in(keys, value_set=wanted)
            if pc.any(mask).as_py():
                rows = read_file(path).filter(mask)
                prints = rows.column(FINGERPRINT).to_pylist()
                states.update(zip(prints, self.columns.states(rows), strict=True))
        return states

    def trace(self, trace_id: int) -> Trace:
        """One trace with its states' values; DataError if the store has none of this id."""
        for path in self.files("traces"):
            rows = read_file(path)
            rows = rows.filter(pc.equal(rows.column("trace_id"), trace_id))
            if len(rows):
                return next(self._traces(rows))
        raise DataError(f"{self.path} holds no trace {trace_id}.")

    def traces(self, end: TraceEnd | None = None) -> Iterator[Trace]:
        """All traces in order, or those with such an end; one file's worth in memory at a time."""
        for path in self.files("traces"):
            rows = read_file(path)
            if end is not None:
                rows = rows.filter(pc.equal(rows.column("end"), end.value))
            yield from self._traces(rows)

    def _traces(self, rows: pa.Table) -> Iterator[Trace]:
        columns = ("trace_id", "seed", "states", "actions", "end", "problem", "source")
        listed = [rows.column(name).to_pylist() for name in columns]
        states = self.states(set(rows.column("states").combine_chunks().flatten().to_pylist()))
        unknown: PartialState = (None,) * len(self.columns.schema.variables)
        for trace_id, seed, prints, codes, end, problem, source in zip(*listed, strict=True):
            path = [states.get(value, unknown) for value in prints] or [unknown]
            yield Trace(
                trace_id, seed, path[0], self._steps(codes, path), TraceEnd(end), problem, source
            )

    def _steps(self, codes: Sequence[int], path: Sequence[PartialState]) -> tuple[TraceStep, ...]:
        known = range(len(self.actions))
        actions = [self.actions[c] if c in known else Action(f"unknown{c}") for c in codes]
        return tuple(TraceStep(a, s) for a, s in zip(actions, path[1:], strict=False))


def _verify_file(path: Path, entry: FileEntry) -> None:
    try:
        size = path.stat().st_size
        matches = size == entry.bytes and file_sha256(path) == entry.sha256
    except FileNotFoundError:
        raise DataError(
            f"{path} is missing: the store is incomplete. Restore it from a copy, or record it "
            "again."
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if not matches:
        detail = "its bytes have another SHA-256"
        if size != entry.bytes:
            detail = f"it has {size} bytes, the manifest says {entry.bytes}"
        raise DataError(
            f"{path} is damaged: {detail}. Restore the store from a copy, or record it again."
        )


def read_file(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A file of a store, its pages' checksums verified; DataError names it if it is damaged.

    Arrow's `read_table` would load its datasets and pandas first, which takes a second.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} cannot be read as Parquet: {error}. Restore the store from a copy, or record "
            "it again."
        ) from error
