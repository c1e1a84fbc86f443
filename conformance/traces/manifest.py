"""The manifest of a trace store: what the store is of, what it holds, and every file's hash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from conformance.compared import ComparedStates
from conformance.errors import DataError
from conformance.inputs import read_bytes
from conformance.tla import Action, parse_action

FORMAT = "kconform-traces"
SCHEMA_VERSION = 1
MANIFEST = "manifest.json"


class FileEntry(msgspec.Struct, frozen=True):
    """One Parquet file, its path relative to the store, with forward slashes."""

    path: str
    rows: int
    bytes: int
    sha256: str


class Counts(msgspec.Struct, frozen=True):
    """What the files hold; `problems` are the traces that cannot be judged whole."""

    traces: int
    steps: int
    states: int
    problems: int
    ends: dict[str, int]
    compared: dict[str, int] = {}
    """In how many states each variable that a driven system shows was compared, or in how many
    events of a recording it was seen."""


class Identity(msgspec.Struct, frozen=True):
    """What a store is of: the spec, the model's constants, and the system that was observed."""

    spec: str
    spec_hash: str
    model: str
    constants: dict[str, str]
    """Values as TLC prints them, by name."""
    variables: list[str]
    actions: list[str]
    """The dictionary of actions, printed as TLA+ applies them; a code is a position in it."""
    system: str
    system_version: str
    parameters: dict[str, str] = {}  # msgspec copies mutable defaults
    """How the traces were made: seed and length, or the files that were imported."""

    @property
    def begins_anywhere(self) -> bool:
        """Whether a trace may begin in any state: its recorder came when the system was running."""
        return self.parameters.get("start") == "any"

    def parsed_actions(self) -> tuple[Action, ...]:
        """The dictionary of actions as values."""
        return tuple(map(parse_action, self.actions))


class Manifest(msgspec.Struct, frozen=True):
    """manifest.json. `content_hash` covers the identity, the schema and every file."""

    format: str
    schema_version: int
    identity: Identity
    state_schema: msgspec.Raw
    counts: Counts
    files: list[FileEntry]
    content_hash: str

    @property
    def compared(self) -> ComparedStates:
        """What of a driven system's states was held against the specification's."""
        return ComparedStates(self.counts.compared, tuple(self.identity.variables))


def content_hash(identity: Identity, schema: bytes, files: Sequence[FileEntry]) -> str:
    """SHA-256 of what the store is of and of the hash of every file."""
    digest = hashlib.sha256(str(SCHEMA_VERSION).encode())
    compact = msgspec.json.format(schema, indent=-1)  # however the manifest is laid out
    for part in (msgspec.json.encode(identity), compact, msgspec.json.encode(files)):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(store: Path) -> Manifest:
    """The manifest of the store in a folder; DataError that says what is wrong with it."""
    path = store / MANIFEST
    if not os.path.lexists(path):
        raise DataError(
            f"{store} is not a trace store: it has no {MANIFEST}. Name the folder that "
            "`kconform record` or `kconform import` wrote."
        )
    raw = read_bytes(path)
    _check_version(path, raw)
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from None
    schema = bytes(manifest.state_schema)
    if content_hash(manifest.identity, schema, manifest.files) != manifest.content_hash:
        raise _damaged(path, "its content hash does not match")
    return manifest


class _ManifestHead(msgspec.Struct):
    format: str = ""
    schema_version: int = 0


def _check_version(path: Path, raw: bytes) -> None:
    """Read the version first: another version may have other fields."""
    try:
        head = msgspec.json.decode(raw, type=_ManifestHead)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from None
    if head.format != FORMAT:
        raise DataError(f"{path} is not the manifest of a trace store (format {head.format!r}).")
    if head.schema_version != SCHEMA_VERSION:
        raise DataError(
            f"{path.parent} has schema version {head.schema_version}, this kconform reads "
            f"{SCHEMA_VERSION}. Audit it with the version that wrote it, or record it again."
        )


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"{path} is damaged: {why}. The store cannot be trusted: restore it from a copy or record "
        "it again."
    )
