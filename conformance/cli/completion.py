"""Shell completion of names: files are scanned as text, without SANY and without imports."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from conformance.config import load_settings
from conformance.errors import UserError
from conformance.modelcheck.names import bundled_manifests
from conformance.registry import BUILT_IN, SCHEMES
from conformance.resources import spec_dir

_DEFINITION = re.compile(r"^(\w+)(?:\([^)]*\))?\s*==", re.MULTILINE)
"""A definition at the beginning of a line: those within a LET are indented."""


def model_names(incomplete: str) -> list[str]:
    """Models: all that belong to kconform, also by their last part."""
    known = list(bundled_manifests())
    names = [*known, *(name.rpartition("/")[2] for name in known)]
    return [name for name in names if name.startswith(incomplete)]


def formula_names(incomplete: str) -> list[str]:
    """Invariants, properties, actions and operators of kconform's own specifications."""
    texts = (path.read_text(encoding="utf-8") for path in spec_dir().glob("*.tla"))
    return _beginning({name for text in texts for name in _DEFINITION.findall(text)}, incomplete)


def system_names(incomplete: str) -> list[str]:
    """Systems: kconform's own, those of the user's settings, and the prefixes of the others."""
    configured: Iterable[str] = ()
    with suppress(UserError):  # the command says what is wrong with the settings
        configured = load_settings(Path.cwd()).systems
    beginnings = (f"{word}{scheme.separator}" for word, scheme in SCHEMES.items())
    return _beginning({*BUILT_IN, *configured, *beginnings}, incomplete)


def fault_ids(incomplete: str) -> list[str]:
    """Faults of kconform's own catalogues."""
    # Its import takes longer than all others here.
    from conformance.bugs.fault import built_in_catalogues, load_catalogue

    catalogues = map(load_catalogue, built_in_catalogues())
    ids = {fault.id for catalogue in catalogues for fault in catalogue.faults}
    return _beginning(ids, incomplete)


def catalogue_systems(incomplete: str) -> list[str]:
    """The systems that kconform has a catalogue of faults for."""
    from conformance.bugs.fault import built_in_catalogues, load_catalogue

    return _beginning({load_catalogue(path).system for path in built_in_catalogues()}, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
