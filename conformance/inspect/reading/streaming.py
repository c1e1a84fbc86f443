"""Reads a large, sound segment once from its beginning to its end, through one small buffer.

Its bytes go past the page cache (O_DIRECT): they are needed once, and a page of the cache costs the
processor more than the checksum of what it holds; nor does an inspection drive the files of others
out of memory. A segment of which anything is damaged, or that is in the page cache already, is
mapped instead, and so is every segment where the system cannot do this.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conformance.inspect.reading import folders, headers, segments
from conformance.inspect.reading.folders import ListedFile, UnreadableFile
from conformance.inspect.reading.headers import Positions, SegmentWalk
from conformance.inspect.reading.remote import is_remote
from conformance.inspect.reading.segments import Columns

WORTH = 8 << 20
"""Bytes of a segment from which it is streamed."""
WINDOW = 4 << 20
"""Bytes that are read at a time: far more than a batch, and still in the processor's cache."""
_BLOCK = 4096
"""What O_DIRECT's positions and lengths are multiples of, on any device."""


@dataclass(frozen=True, slots=True)
class StreamedSegment:
    """A sound segment's batches, with all that is asked of their bytes."""

    walk: SegmentWalk
    headers: NDArray[np.void]
    good: NDArray[np.bool_]
    """Whether each batch has the checksum that it stores."""

    def columns(self) -> Iterator[Columns]:
        """The headers of all batches, chunk by chunk, in the order of positions."""
        for at in range(0, len(self.headers), segments.CHUNK):
            chosen = slice(at, at + segments.CHUNK)
            yield segments.current_columns(self.walk.positions[chosen], self.headers[chosen])

    def verified(self, batches: Columns) -> NDArray[np.bool_]:
        """Whether each batch has the checksum that it stores."""
        chosen: NDArray[np.bool_] = self.good[
            np.searchsorted(self.walk.positions, batches["position"])
        ]
        return chosen


def streamed(listed_file: ListedFile, hints: Positions | None) -> StreamedSegment | None:
    """The segment, if it pays to stream it and it is sound. Raises Refused if it is unreadable."""
    if is_remote(listed_file.root) or listed_file.size < WORTH:
        return None
    with folders.descriptor(listed_file) as file:
        if _cached(file, listed_file.size) or not _past_the_page_cache(file):
            return None
        try:
            return scan(file, listed_file.size, hints)
        except OSError as error:
            if error.errno == errno.EINVAL:  # a file system with other ideas of a block
                return None
            raise UnreadableFile(f"cannot be read: {error.strerror}") from error


def scan(
    file: int, size: int, hints: Positions | None, window: int = WINDOW
) -> StreamedSegment | None:
    """The batches of an open file; None if it is not made of whole batches of magic 2 alone.

    `hints` are positions at which batches may begin, as for `headers.walk`. `window` is a multiple
    of 4,096 bytes; None also if a batch does not fit into it.
    """
    result: list[tuple[Positions, NDArray[np.void], NDArray[np.bool_]]] = []
    hints = np.empty(0, np.int64) if hints is None else np.unique(hints)
    position = 0
    with _buffer(window) as buffer:
        while position < size:
            start = position - position % _BLOCK
            read = os.preadv(file, [buffer], start)
            data = buffer[position - start : read]
            begin, end = np.searchsorted(hints, (position, start + read))
            positions, stop = headers.first_batches(data, hints[begin:end] - position)
            if not len(positions) or (headers.magics(data, positions) != 2).any():
                return None
            gathered = headers.gather(data, positions)
            result.append((positions + position, gathered, _checked(data, positions, gathered)))
            position += stop
    positions, gathered, good = (np.concatenate(parts) for parts in zip(*result, strict=True))
    return StreamedSegment(SegmentWalk(positions, ()), gathered, good)


def _checked(
    data: memoryview, positions: Positions, gathered: NDArray[np.void]
) -> NDArray[np.bool_]:
    ends = positions + headers.OVERHEAD + gathered["length"]
    computed = headers.checksums(data, positions.tolist(), ends.tolist())
    good: NDArray[np.bool_] = np.fromiter(computed, np.uint32, len(positions)) == gathered["crc"]
    return good


@contextmanager
def _buffer(size: int) -> Iterator[memoryview]:
    """Memory of its own, at the beginning of a page, in huge pages where there are any."""
    memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    yield memoryview(memory)  # not closed: numpy's views keep it


def _cached(file: int, size: int) -> bool:
    """Whether the page cache has the file, by its first, middle and last block."""
    if not hasattr(os, "RWF_NOWAIT"):
        return True
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # looking must not begin to read ahead
    block = bytearray(1)
    try:
        return all(os.preadv(file, [block], at, os.RWF_NOWAIT) for at in (0, size // 2, size - 1))
    except BlockingIOError:
        return False
    except OSError:  # a file system that cannot tell
        return True


def _past_the_page_cache(file: int) -> bool:
    """Turn the page cache off for an open file, if the system can."""
    if not hasattr(os, "O_DIRECT"):
        return False
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    try:
        fcntl.fcntl(file, fcntl.F_SETFL, flags | os.O_DIRECT)
    except OSError:
        return False
    return True
