"""Typed events: what the engines tell, and all that the reports know.

Engines take an `Emit` and never print. A consumer ignores the events that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conformance.verdict import Verdict

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


@dataclass(frozen=True, slots=True)
class StageStarted:
    """A stage (`check`, `suite`, `replay`, `record`, `audit`, `bugs`, ...) begins."""

    stage: str
    subject: str = ""
    total: int | None = None
    """Units of work when known in advance, in the unit that `Progress.done` counts."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is; sent at most a few times a second."""

    stage: str
    done: int
    total: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One variable in which the implementation's state differs from what the spec allows."""

    variable: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation: what, where first, and how to see it again.

    `key` merges duplicates: findings of one key are one cause, `count` says how many traces.
    `location` is `file:line:column` or a file, as seen from the current folder.
    """

    key: str
    title: str
    stage: str
    message: str
    trace: str = ""
    step: int | None = None
    action: str = ""
    formula: str = ""
    location: str = ""
    differences: tuple[Difference, ...] = ()
    story: tuple[str, ...] = ()
    reproduce: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class StageFinished:
    """A stage ends with its verdict; `figures` is the stage's part of the JSON report."""

    stage: str
    subject: str
    verdict: Verdict
    seconds: float
    summary: str = ""
    figures: Mapping[str, JsonValue] = field(default_factory=dict)
    fault: bool = False
    """Whether kconform contradicted itself, so that what it says of others is not to be trusted."""


Event = StageStarted | Progress | Finding | StageFinished
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An `Emit` for callers that want only the result."""
