"""Keeps state graphs and TLC's results on disk, by the hash of all that they depend on."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_GENERATION = "2"
"""Changes whenever what is cached changes its meaning."""

_DIGEST_BYTES = 32
_IDENTIFIER = re.compile(rb"\w+")
_MODULES = 512
"""More than the specifications of this project have."""


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """KCONFORM_CACHE, else `kconform` in the user's XDG cache folder."""
    env = os.environ if environ is None else environ
    if named := env.get("KCONFORM_CACHE"):
        return Path(named)
    base = env.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    root = Path(base) if Path(base).is_absolute() else Path(env.get("HOME", "~")).expanduser()
    return root / "kconform" if Path(base).is_absolute() else root / ".cache" / "kconform"


@dataclass(frozen=True, slots=True)
class Cache:
    """Blobs by kind and key. A damaged or unreadable entry is no entry.

    A cache that cannot be written (read-only, full) costs time and nothing else.
    """

    root: Path

    def path(self, kind: str, key: str) -> Path:
        """The file of an entry."""
        return self.root / kind / f"{key}.bin"

    def load(self, kind: str, key: str) -> bytes | None:
        """The blob, if it is there and whole; a damaged one is removed."""
        path = self.path(kind, key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, blob = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(blob).digest() == digest:
            return blob
        self.discard(kind, key)
        return None

    def store(self, kind: str, key: str, blob: bytes) -> None:
        """Write aside, then rename: a reader sees all of it or nothing."""
        path = self.path(kind, key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, aside = tempfile.mkstemp(prefix=f".{key[:8]}-", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(blob).digest())
                    file.write(blob)
                Path(aside).replace(path)
            finally:
                Path(aside).unlink(missing_ok=True)

    def discard(self, kind: str, key: str) -> None:
        """Remove an entry, if it is there."""
        with suppress(OSError):
            self.path(kind, key).unlink(missing_ok=True)


def module_files(root: Path, folders: Sequence[Path]) -> list[Path]:
    """The module at `root` and every module file that its text mentions, transitively.

    Told from the words alone, which may take in a module too many but never one too few: parsing
    would need a JVM, and the key must be cheap.
    """
    available = {
        path.stem.encode(): path
        for folder in reversed([root.parent, *folders])
        for path in folder.glob("*.tla")
    }
    available[root.stem.encode()] = root
    paths: dict[bytes, Path] = {}
    pending = {root.stem.encode()}
    while pending:
        name = pending.pop()
        paths[name] = available[name]
        pending |= (_words(available[name].read_bytes()) & available.keys()) - paths.keys()
    return [paths[name] for name in sorted(paths)]


@lru_cache(_MODULES)
def _words(text: bytes) -> frozenset[bytes]:
    """The words of a module's text, which the keys of many models ask for."""
    return frozenset(_IDENTIFIER.findall(text))


def cache_key(parts: Iterable[str], files: Iterable[Path]) -> str:
    """A hash of the parts, of the files' names and contents, and of the cache's generation."""
    digest = hashlib.sha256(_GENERATION.encode())
    blobs = [part.encode() for part in parts]
    for path in files:
        blobs += [path.name.encode(), path.read_bytes()]
    for blob in blobs:
        digest.update(len(blob).to_bytes(8, "big"))
        digest.update(blob)
    return digest.hexdigest()
