"""Maps a recording to the specification's actions and variables. See docs/mapping.md."""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from conformance.errors import DataError, UserError
from conformance.inputs import read_toml
from conformance.judge.budget import JudgeLimits
from conformance.judge.order import Guarantee
from conformance.tla import ActionPattern, parse_pattern

__all__ = [
    "Collect",
    "Mapping",
    "MappingStart",
    "Rename",
    "RequiredCoverage",
    "Translate",
    "load_mapping",
]

SCHEMA = 1


class SilentActions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which actions may happen unseen, and how many in a row at most."""

    actions: tuple[str, ...] = ()
    """Patterns: `SendFetch`, `Crash("b1", _, _)`."""
    directly: tuple[str, ...] = ()
    """Patterns of what may happen unseen only directly before the next event of its process: the
    one that the action's first argument names."""
    steps: Annotated[int, msgspec.Meta(ge=0)] | None = None
    each: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The maximum number of them with the same process, that is, the same first argument."""


class RequiredCoverage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The actions that the recordings must take together, or the verdict is inconclusive."""

    actions: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """This share of the kinds of action of the specification."""
    taken: tuple[str, ...] = ()
    """These kinds of action."""


class MappingStart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the recording begins."""

    at: Literal["Init", "any"] = "Init"
    values: dict[str, str] = {}  # msgspec copies mutable defaults
    """TLA+ values at the start of variables that no recorder observes."""
    invariants: tuple[str, ...] = ("TypeOK",)
    """What holds in every state from which a recording may begin; the first bounds variables."""


class Collect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A constant that is made of what the recordings name.

    `collect` names places (`leaderEpoch[_]`, everything below them counts), arguments of actions
    (`ElectLeader.1`) and `process`.
    """

    collect: tuple[str, ...]
    as_: Literal["set", "interval"] = msgspec.field(name="as", default="set")
    include: tuple[str, ...] = ()
    """TLA+ values that belong to it in any case."""
    beyond: Annotated[int, msgspec.Meta(ge=0)] = 0
    """An interval goes on so far above the largest number."""


class Rename(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Texts that match the regular expression are called `to` from now on.

    `\\1` in it is a group of the expression, `{n}` numbers the distinct texts from 1, in the order
    in which a trace names them.
    """

    match: str
    to: str


class Translate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values at (and below) some places or arguments of actions are replaced."""

    at: tuple[str, ...]
    values: dict[str, str] = {}
    """TLA+ values by TLA+ values: error codes, states."""
    subtract: int | Literal["first"] = 0
    """From every number; "first": the first one that the trace shows there."""


class _LimitsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    candidates: Annotated[int, msgspec.Meta(ge=1)] = JudgeLimits().candidates
    seconds: Annotated[float, msgspec.Meta(gt=0)] = JudgeLimits().seconds
    states: Annotated[int, msgspec.Meta(ge=1)] = JudgeLimits().states
    evaluation: Annotated[float, msgspec.Meta(gt=0)] = JudgeLimits().evaluation
    memory: Annotated[int, msgspec.Meta(ge=1)] = JudgeLimits().memory


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mapping file's content."""

    schema: int
    complete: bool = False
    order: Literal["total", "process", "clocks"] = "total"
    skew: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    hidden: tuple[str, ...] = ()
    silent: SilentActions = SilentActions()
    start: MappingStart = MappingStart()
    constants: dict[str, str | Collect] = {}
    names: tuple[Rename, ...] = ()
    values: tuple[Translate, ...] = ()
    limits: _LimitsTable = _LimitsTable()
    coverage: RequiredCoverage = RequiredCoverage()


@dataclass(frozen=True, slots=True)
class Mapping:
    """Declarations about recordings. The default declares a total order and nothing else."""

    declared: bool = False
    """Whether the user declared it; only declared facts are checked."""
    complete: bool = False
    """Whether it says, in words, that every step of the system is an event."""
    guarantee: Guarantee = Guarantee.TOTAL
    skew: float = 0.0
    hidden: frozenset[str] = frozenset()
    silent: tuple[ActionPattern, ...] = ()
    directly: tuple[ActionPattern, ...] = ()
    """Silent too, directly before the next event of its process only."""
    start: MappingStart = field(default_factory=MappingStart)
    constants: MappingOf[str, str | Collect] = field(default_factory=dict)
    names: tuple[Rename, ...] = ()
    values: tuple[Translate, ...] = ()
    limits: JudgeLimits = field(default_factory=JudgeLimits)
    coverage: RequiredCoverage = field(default_factory=RequiredCoverage)


def load_mapping(path: Path) -> Mapping:
    """The mapping in a TOML file; UserError that names the file and the key if it is none."""
    file = _read(path)
    silent = _silent(path, file.silent, "actions")
    directly = _silent(path, file.silent, "directly")
    if (silent or directly) and file.complete:
        raise UserError(
            f"{path}: `complete` says that every step is an event, and `silent.actions` that some "
            "are not. Remove one of them."
        )
    for rename in file.names:
        _check_expression(path, rename)
    return Mapping(
        declared=True,
        complete=file.complete,
        guarantee=Guarantee(file.order),
        skew=file.skew,
        hidden=frozenset(file.hidden),
        silent=silent,
        directly=directly,
        start=file.start,
        constants=file.constants,
        names=file.names,
        values=file.values,
        limits=JudgeLimits(
            (file.silent.steps or 0) if silent or directly else 0,
            file.limits.candidates,
            file.limits.seconds,
            file.limits.states,
            file.limits.evaluation,
            file.silent.each,
            file.limits.memory,
        ),
        coverage=file.coverage,
    )


_LONGEST_EXPRESSION = 10_000
"""Characters; one of millions takes minutes to compile."""


def _check_expression(path: Path, rename: Rename) -> None:
    try:
        if len(rename.match) > _LONGEST_EXPRESSION:
            raise DataError(f"it has {len(rename.match):,} characters")
        re.compile(rename.match).sub(rename.to, "")
    except (re.error, IndexError, RecursionError, OverflowError, DataError) as error:
        raise UserError(
            f"{path}: `names` has a `match` or a `to` that is no regular expression of Python's: "
            f"{error}."
        ) from None


def _read(path: Path) -> _File:
    file = read_toml(path, _File, "a valid mapping", "docs/mapping.md")
    if file.schema != SCHEMA:
        raise UserError(
            f"{path}: `schema` is {file.schema}, this kconform reads {SCHEMA}. Use the version of "
            "kconform that the mapping was written for, or write the mapping for this one."
        )
    return file


def _silent(
    path: Path, asked: SilentActions, key: Literal["actions", "directly"]
) -> tuple[ActionPattern, ...]:
    try:
        silent = tuple(map(parse_pattern, getattr(asked, key)))
    except DataError as error:
        raise UserError(f"{path}: `silent.{key}` names an action that is none. {error}") from None
    if silent and asked.steps is None:
        raise UserError(
            f"{path}: `silent.{key}` says what may happen unseen, but not how much of it: give "
            "`silent.steps`, at most so many in a row."
        )
    return silent
