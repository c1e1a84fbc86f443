"""The aborted transactions whose markers are in one segment: the file `<20 digits>.txnindex`.

Source: TransactionIndex. Entries are in the order of their markers. Without entries there is no
file.
"""

from __future__ import annotations

import struct

from .disk import Disk, File
from .producer_state.transactions import AbortedTxn

SUFFIX = ".txnindex"
_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class TransactionIndex:
    """The abort index of the segment that begins at `base_offset`."""

    __slots__ = ("_base_offset", "_disk", "_entries", "_file", "_path")

    def __init__(self, disk: Disk, directory: str, base_offset: int, suffix: str = "") -> None:
        self._disk = disk
        self._base_offset = base_offset
        self._path = index_path(directory, base_offset) + suffix
        self._file: File | None = None
        self._entries: list[AbortedTxn] = []

    @property
    def all_aborted_txns(self) -> tuple[AbortedTxn, ...]:
        """All entries, in the order of their markers."""
        return tuple(self._entries)

    def load(self) -> None:
        """Read the file, if there is one; an entry that is torn ends it."""
        if not self._disk.exists(self._path):
            return
        self._file = self._disk.open(self._path)
        data = self._file.read(0, self._file.size())
        whole = len(data) - len(data) % _ENTRY.size
        self._entries = [AbortedTxn(*fields) for _, *fields in _ENTRY.iter_unpack(data[:whole])]

    def append(self, aborted: AbortedTxn) -> None:
        """Add a transaction; its marker is behind all others."""
        if self._file is None:
            self._file = self._disk.open(self._path)
        fields = (aborted.producer_id, aborted.first_offset, aborted.last_offset)
        self._file.append(_ENTRY.pack(_VERSION, *fields, aborted.last_stable_offset))
        self._entries.append(aborted)

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions whose markers are at `offset` or behind."""
        kept = sum(entry.last_offset < offset for entry in self._entries)
        if self._file is not None:
            self._file.truncate(kept * _ENTRY.size)
        del self._entries[kept:]

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> tuple[list[AbortedTxn], bool]:
        """Those that concern the offsets [fetch, upper bound); and whether no later one can."""
        aborted = []
        for entry in self._entries:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
                aborted.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return aborted, True
        return aborted, False

    def flush(self) -> None:
        """Make the entries durable."""
        if self._file is not None:
            self._file.flush()

    def move_to(self, directory: str) -> None:
        """Follow the renaming of the log's directory."""
        self._path = index_path(directory, self._base_offset)

    def change_file_suffix(self, old_suffix: str, new_suffix: str) -> None:
        """Rename the file, as that of its segment is renamed."""
        path = self._path.removesuffix(old_suffix) + new_suffix
        if self._file is not None:
            self._disk.rename(self._path, path)
        self._path = path

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()

    def delete(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
            self._disk.remove(self._path)


def index_path(directory: str, base_offset: int) -> str:
    """The path of a segment's abort index."""
    return f"{directory}/{base_offset:020d}{SUFFIX}"
