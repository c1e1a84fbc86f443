"""The names of models: what a manifest is called, and which name may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from conformance import resources


def model_name(path: Path) -> str:
    """`replication/kip320-2` for a manifest among kconform's own, the file's stem for others."""
    models = resources.models_dir().resolve()
    resolved = path.resolve()
    if resolved.is_relative_to(models):
        return resolved.relative_to(models).with_suffix("").as_posix()
    return path.stem


def bundled_manifests() -> dict[str, Path]:
    """The manifests that belong to kconform, by their models' names, sorted."""
    models = resources.models_dir()
    paths = sorted(models.rglob("*.toml"))
    return {path.relative_to(models).with_suffix("").as_posix(): path for path in paths}


def hint(name: str, known: Iterable[str]) -> str:
    """The models that may have been meant: each once, though its last part may be given alone."""
    names = {full: (full, full.rpartition("/")[2]) for full in known}
    texts = {text for both in names.values() for text in both}
    close = difflib.get_close_matches(name, texts, n=4)
    meant = [full for text in close for full, both in names.items() if text in both]
    return f" Did you mean {' or '.join([*dict.fromkeys(meant)][:3])}?" if meant else ""
