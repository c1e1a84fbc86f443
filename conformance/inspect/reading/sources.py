"""One way to list and to open, wherever a broker's folder lies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

from conformance.inspect.reading import folders, remote
from conformance.inspect.reading.folders import Buffer, ListedFile


def listed(broker: str, folder: str) -> Iterator[ListedFile]:
    """Every file below a folder or URI. Raises UserError if there is none."""
    if remote.is_remote(folder):
        return remote.listed_remote(broker, folder)
    return folders.listed(broker, folder)


def opened(file: ListedFile) -> AbstractContextManager[Buffer]:
    """The file's bytes. Raises Refused, which tells why it was not read."""
    if remote.is_remote(file.root):
        return remote.opened_remote(file)
    return folders.opened(file)
