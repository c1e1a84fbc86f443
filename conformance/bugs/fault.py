"""Faults: one-line patches that re-create a historical bug, and the copies that carry them."""

from __future__ import annotations

import importlib.resources
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec

from conformance.bugs.diffs import apply_diff
from conformance.errors import UserError
from conformance.inputs import read_toml
from conformance.resources import implementation_dir

Tag = Literal["seq", "conc", "crash", "time", "multi"]


class BlindSpot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why the spec cannot see a fault, and the ordinary tests that kill it."""

    reason: str
    tests: tuple[str, ...]


class Patch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replace `old`, which must stand in `file` exactly once, by `new`."""

    file: str
    old: str
    new: str


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named fault. `patches` are applied to a copy of the package `package`."""

    id: str
    jira: str
    title: str
    tags: tuple[Tag, ...]
    patches: tuple[Patch, ...]
    package: str = "impl"
    models: tuple[str, ...] = ()
    """The models whose suites reach it; empty: all models of the bench."""
    unseen: BlindSpot | None = None


class InapplicableBug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bug that cannot be put in: the implementation has nothing in which it could be."""

    id: str
    jira: str
    title: str
    reason: str


class PatchMismatch(UserError):
    """A fault's patch does not fit the implementation as it is now: the fault cannot be run."""


class _Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    system: str
    fault: tuple[Fault, ...]
    models: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    not_applicable: tuple[InapplicableBug, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The faults of one system, and the models that the bench drives it with."""

    system: str
    models: tuple[str, ...]
    faults: tuple[Fault, ...]
    short: tuple[str, ...] = ()
    """The faults of a short bench; empty: all that the spec sees."""
    not_applicable: tuple[InapplicableBug, ...] = ()

    @property
    def seen(self) -> tuple[Fault, ...]:
        """The faults that the spec sees."""
        return tuple(fault for fault in self.faults if fault.unseen is None)

    @property
    def of_short_bench(self) -> tuple[Fault, ...]:
        """The faults that `--short` runs."""
        return tuple(fault for fault in self.seen if not self.short or fault.id in self.short)


def load_catalogue(path: Path) -> Catalogue:
    """The catalogue in a TOML file; UserError if it is not one or an id stands twice."""
    read = read_toml(path, _Catalogue, "a catalogue of faults", "docs/bugs.md")
    _check_ids(path, read)
    beside = path.resolve().parent
    faults = tuple(
        msgspec.structs.replace(fault, models=_located(fault.models, beside))
        for fault in read.fault
    )
    models = _located(read.models, beside)
    return Catalogue(read.system, models, faults, read.short, read.not_applicable)


def _check_ids(path: Path, read: _Catalogue) -> None:
    ids = [fault.id for fault in read.fault] + [bug.id for bug in read.not_applicable]
    for id_ in ids:
        if ids.count(id_) > 1:
            raise UserError(f"{path}: the fault {id_} stands twice. Give each its own id.")
    seen = {fault.id for fault in read.fault if fault.unseen is None}
    for id_ in sorted({*read.short} - seen):
        raise UserError(
            f"{path}: `short` names {id_}, which is no fault that the spec sees. Take it out."
        )


def _located(models: Sequence[str], beside: Path) -> tuple[str, ...]:
    """Names stay; a manifest's path is relative to the catalogue, wherever a worker runs."""
    return tuple(str(beside / id_) if id_.endswith(".toml") else id_ for id_ in models)


def built_in_catalogues() -> list[Path]:
    """The catalogues that stand beside the adapters."""
    root = Path(str(importlib.resources.files("conformance.systems")))
    return sorted(root.glob("*/faults.toml"))


@contextmanager
def relocated(fault: Fault) -> Iterator[Path]:
    """A folder with the faulty copy of the package, to be put first on PYTHONPATH.

    Raises PatchMismatch if the text that a patch replaces is not there exactly once.
    Raises UserError if the patch changes nothing: such a patch contains no fault.
    """
    with copied(fault.package) as folder:
        for patch in fault.patches:
            _apply(fault, folder / fault.package, patch)
        yield folder


@contextmanager
def copied(package: str = "impl") -> Iterator[Path]:
    """A folder with a clean copy of the package, as the faulty ones are made from."""
    with TemporaryDirectory(prefix="kconform-fault-") as name:
        folder = Path(name).resolve()
        shutil.copytree(
            clean_package(package), folder / package, ignore=shutil.ignore_patterns("__pycache__")
        )
        yield folder


def clean_package(package: str) -> Path:
    """The folder of the package that copies are made from."""
    own = package == "impl"
    return implementation_dir() if own else Path(str(importlib.resources.files(package)))


def _apply(fault: Fault, root: Path, patch: Patch) -> None:
    if patch.old == patch.new:
        raise UserError(f"The fault {fault.id} changes nothing in {patch.file}.")
    target = root / patch.file
    text = target.read_text(encoding="utf-8") if target.is_file() else ""
    if text.count(patch.old) != 1:
        raise _does_not_apply(fault, patch, text if target.is_file() else None)
    target.write_text(text.replace(patch.old, patch.new), encoding="utf-8")


def _does_not_apply(fault: Fault, patch: Patch, text: str | None) -> PatchMismatch:
    """What became of the code that the patch replaces; `text` is the file's, None without one."""
    first = next(iter(patch.old.strip().splitlines()), "")
    if text is None:
        became = "but this file does not exist"
    else:
        became = f"and this text is there {text.count(patch.old)} times in place of once"
    return PatchMismatch(
        f"The patch of the fault {fault.id} does not apply: it replaces the text that begins with "
        f"`{first}` in {fault.package}/{patch.file}, {became}. The code that it patches was "
        "changed. Adapt `old` and `new` of this patch in its catalogue (faults.toml) to the code "
        f"as it is now, or undo the change; `kconform bugs {fault.id}` tries the fault alone."
    )


@contextmanager
def patched_by_file(patch: Path, package: str = "impl") -> Iterator[Path]:
    """As `relocated`, for a user's own unified diff; UserError if it does not apply."""
    with copied(package) as folder:
        before = _texts(folder)
        apply_diff(patch, folder, package)
        if _texts(folder) == before:
            raise UserError(f"{patch} changes nothing in {package}/.")
        yield folder


def _texts(folder: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}


def select(
    catalogues: Sequence[Catalogue], ids: Sequence[str] = (), *, short: bool = False
) -> list[Catalogue]:
    """The catalogues narrowed to the faults of these ids (all if none), and to a short bench.

    UserError for an id that is unknown, or that of a bug which cannot be put in. What is not
    applicable stays with a complete bench only.
    """
    _check_wanted(catalogues, ids)
    narrowed = []
    for id_ in catalogues:
        faults = id_.faults
        if short:
            faults = id_.seen if ids else id_.of_short_bench
        faults = tuple(fault for fault in faults if not ids or fault.id in ids)
        if faults:
            complete = not ids and not short
            rest = id_.not_applicable if complete else ()
            narrowed.append(Catalogue(id_.system, id_.models, faults, id_.short, rest))
    return narrowed


def _check_wanted(catalogues: Sequence[Catalogue], ids: Sequence[str]) -> None:
    known = [fault.id for id_ in catalogues for fault in id_.faults]
    absent = {bug.id: bug for id_ in catalogues for bug in id_.not_applicable}
    for id_ in ids:
        if id_ in absent:
            bug = absent[id_]
            raise UserError(
                f"{id_} ({bug.jira}) cannot be put into this implementation, as {bug.reason}."
            )
        if id_ not in known:
            raise UserError(
                f"There is no fault {id_}. Known: {', '.join(known)}. `kconform bugs --list` "
                "shows what each is."
            )
