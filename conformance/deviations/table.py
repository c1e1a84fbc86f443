"""Where an implementation is known to depart from the specification, told as data.

A deviation overrides operators of the specification, so that the text says what the implementation
really does: then a run can tell what is known from what is new. A table is a TOML file beside an
adapter; the paths that show its deviations are ITF files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from conformance.inputs import read_toml


class DeviationSeverity(StrEnum):
    """What a deviation may cost a user."""

    DATA_LOSS = "data loss"
    DUPLICATES = "duplicates"
    """Records are handed out twice."""
    WRONG_READ = "wrong read"
    """A consumer gets what it must not get, as records of a transaction that is aborted."""
    STUCK = "stuck"
    """A producer, a fetch or a group gets no further by itself: a new producer, another leader or
    another member does."""
    HARMLESS = "harmless"


class Deviation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One departure from the specification."""

    id: str
    specification: str = ""
    """The root module that it departs from; empty where the system is driven by one only."""
    also: tuple[str, ...] = ()
    """Other root modules that have the operators which it overrides, from a module that both
    extend."""
    module: str = ""
    """The module on top of the specification whose steps the overrides are about: models of the
    specification itself cannot show what they say. Empty: they are about its own."""
    part: str = ""
    """Whose versions are meant where a system has several parts; empty: what it is named by. What
    other parts do otherwise is taken for known along the path of this deviation."""
    report: str = ""
    """Of the project itself: a JIRA with its pull request, or `no report known`."""
    searched: str = ""
    """Where and when a report was looked for, and what was found beside it."""
    title: str
    severity: DeviationSeverity
    description: str = ""
    """A paragraph as for a bug report."""
    definitions: Mapping[str, str] = {}
    """Operators that say what the implementation does: `name(parameters)` to body."""
    overrides: Mapping[str, str] = {}
    """Operators of the specification, and what takes their place. None where the specification
    cannot say it: then a suite that reaches the deviation fails."""
    shown: Mapping[str, Mapping[str, str]] = {}
    """By variable, values that the implementation shows, and the specification's that they stand
    for; both as TLA+ writes them."""
    hidden: tuple[str, ...] = ()
    """Variables of which what is shown is not compared."""
    breaks: tuple[str, ...] = ()
    """Formulas that no longer hold of some model with the override."""
    seen: tuple[str, ...] = ()
    """Versions in which it was seen by running them. Neither `seen` nor `gone`: the table is of one
    implementation, and its maker declares it."""
    gone: tuple[str, ...] = ()
    """Versions that were run and do not have it."""
    mended: bool = False
    """Whether the maker of a build claims that it is gone, whatever the table says."""
    path: str = ""
    """The saved divergence that shows it, if there is one; it names its model."""
    consequence: str = ""
    """A counterexample of a model with the override, which the implementation follows; empty where
    all formulas still hold, or what breaks costs a user nothing."""
    violated: str = ""
    """The formula that is false at the counterexample's end."""

    def concerns(self, specification: str) -> bool:
        """Whether it is a departure from the specification with this root module."""
        return self.specification in ("", specification) or specification in self.also

    def stands_in(self, version: str) -> bool | None:
        """Whether this version should show it; None if the table does not name this version.

        It names the releases that were run, and those of the same line between two that were run
        with the same result: a change comes with a patch release and stays in its line.
        """
        tried = {*self.seen, *self.gone}
        if self.mended or not tried:
            return not self.mended
        if not version:  # of one implementation, and its maker says what was seen
            return bool(self.seen)
        if version in tried:
            return version in self.seen
        if not version.replace(".", "").isdecimal():
            return None  # a build between two releases
        line = [name for name in tried if _release(name)[:2] == _release(version)[:2]]
        before = [name for name in line if _release(name) < _release(version)]
        after = [name for name in line if _release(name) > _release(version)]
        if not (before and after):
            return None
        words = {max(before, key=_release) in self.seen, min(after, key=_release) in self.seen}
        return words.pop() if len(words) == 1 else None

    def stands_for(self, version: str) -> bool:
        """What the table says of this version, else of the newest release before it."""
        word = self.stands_in(version)
        return self.nearest_to(version) if word is None else word

    def nearest_to(self, version: str) -> bool:
        """What the table says of the newest release before this version, of its line or another.

        An assumption, for a version that the table does not name and that no path can tell.
        """
        tried = sorted({*self.seen, *self.gone}, key=_release)
        before = [name for name in tried if _release(name) <= _release(version)]
        return not tried or (before[-1] if before else tried[0]) in self.seen


def _release(version: str) -> tuple[int, ...]:
    """`4.5.0-SNAPSHOT` is (4, 5, 0)."""
    numbers = version.partition("-")[0].split(".")
    return tuple(int(number) for number in numbers if number.isdecimal())


class _DeviationTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    deviation: tuple[Deviation, ...] = ()
    choice: tuple[Deviation, ...] = ()
    """What the specification leaves open: none is a departure, and --strict keeps them. The path of
    each diverges from the specification as its models narrow it, and shows what a system does."""
    mended: tuple[str, ...] = ()
    """Ids of another table's deviations that a build claims to have mended."""

    def __post_init__(self) -> None:
        if not self.deviation and not self.mended:
            raise ValueError("it has neither [[deviation]] nor `mended`")
        for choice in self.choice:
            if choice.definitions or choice.breaks or not (choice.overrides and choice.path):
                raise ValueError(
                    f"the choice {choice.id} needs `path` and `overrides` with an operator of the "
                    "specification's own: it defines nothing, and nothing breaks"
                )


def _load(path: Path) -> _DeviationTable:
    return read_toml(path, _DeviationTable, "a table of deviations", "docs/kafka.md")


def load_deviations(path: Path) -> tuple[Deviation, ...]:
    """Read a table. DataError if it is not as `Deviation` says."""
    return _load(path).deviation


def load_choices(path: Path) -> tuple[Deviation, ...]:
    """The choices of a table. DataError if it is not as `Deviation` says."""
    return _load(path).choice


def overriding(known: Sequence[Deviation], root: str) -> tuple[Deviation, ...]:
    """Those that override the models of a root module: the specification, or one on top of it."""
    below = {deviation.specification for deviation in known if deviation.module == root}
    return tuple(
        deviation
        for deviation in known
        if deviation.module in ("", root) and any(map(deviation.concerns, (root, *below)))
    )


def concerning(known: Sequence[Deviation], roots: Collection[str]) -> tuple[Deviation, ...]:
    """Those that depart from one of these root modules, or override models on top of it."""
    return tuple(
        deviation
        for deviation in known
        if any(deviation.concerns(root) or deviation in overriding(known, root) for root in roots)
    )


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table that the maker of an implementation declares, in a file of his own."""

    path: Path

    def version_of(self, _part: str) -> str:
        """It is of one version."""
        return ""

    def deviations(self) -> tuple[Deviation, ...]:
        """All of it. DataError that says what is wrong with it."""
        return load_deviations(self.path)

    def mended(self) -> tuple[str, ...]:
        """The ids of known deviations that the build claims to have mended."""
        return _load(self.path).mended

    def file(self, name: str) -> Path:
        """A saved path beside it."""
        return self.path.parent / name


@runtime_checkable
class Deviating(Protocol):
    """Optional, of a factory: its systems are known to depart from the specification."""

    def version_of(self, part: str) -> str:
        """The version of a part of what is driven, as the table's (`Deviation.part`)."""

    def deviations(self) -> tuple[Deviation, ...]:
        """The table, of all versions, of the parts that are driven."""

    def file(self, name: str) -> Path:
        """Where a saved path of the table lies."""


@runtime_checkable
class Free(Protocol):
    """Optional, of a factory: the specification leaves its systems a choice."""

    def choices(self) -> tuple[Deviation, ...]:
        """What a system may do in place of what the models say."""

    def file(self, name: str) -> Path:
        """Where a saved path of the table lies."""
