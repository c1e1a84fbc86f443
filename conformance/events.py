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
class PrintedLine:
    """A line that the specification prints, by `Print` or `PrintT`, as TLC prints it."""

    stage: str
    line: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One variable in which the implementation's state differs from what the spec allows."""

    variable: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step of a behaviour as texts. `values` are the variables that have another value now."""

    action: str
    """Empty for the initial state."""
    changes: tuple[str, ...]
    values: Mapping[str, str]
    location: str = ""
    """Where the action is defined: `file:line:column`."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One line of why a formula is false: an expression of the spec and what it came out as.

    `location` is `module:line:column`; `end` the line and column of the expression's end, both
    included. A heading has a text only.
    """

    depth: int
    text: str
    outcome: str = ""
    location: str = ""
    end: tuple[int, int] = (0, 0)
    bound: str = ""
    """The values of the names that were bound just above, as `b = "b1", o = 0`."""


@dataclass(frozen=True, slots=True)
class ModuleText:
    """The text of one module; `path` as seen from the current folder."""

    name: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A behaviour made ready to be looked at: texts and one drawing, no values.

    The first step is the initial state. `svg` draws it as a space-time diagram whose rows carry
    the numbers of the steps, from 0.
    """

    steps: tuple[ShownStep, ...]
    svg: str
    reasons: tuple[Reason, ...] = ()
    ending: str = ""
    observed: Mapping[str, str] = field(default_factory=dict)
    """The variables that an implementation showed with other values than the last step's."""
    texts: tuple[ModuleText, ...] = ()
    """The modules to which the reasons lead."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation: what, where first, and how to see it again.

    `key` says what went wrong in the same words in every stage (`story.key`): findings of one key
    are of one cause. Those of one stage are merged, and `count` says how many there were, unless
    they are about different things. `location` is `file:line:column` or a file, as seen from the
    current folder.
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
    about: str = ""
    """The model that the finding is about, if it is about a model and no implementation."""
    artifact: str = ""
    """The file that holds the behaviour (ITF), if one was written."""
    exhibit: Exhibit | None = None
    """The way to it, for the page; the other formats have `story`."""


@dataclass(frozen=True, slots=True)
class ComparedModel:
    """What is held against what: a system against a model of a specification.

    `places` are the lines, first and last, of the actions and formulas that are counted, by name:
    `(module, first, last)`. `actions` are those of Next, `branches` the module and line of each of
    their disjuncts, by the key that the stages' figures give it.
    """

    spec: str
    protocol: str
    model: str
    variant: str
    system: str
    version: str
    actions: tuple[str, ...]
    modules: tuple[ModuleText, ...]
    places: Mapping[str, tuple[str, int, int]]
    branches: Mapping[str, tuple[str, int]] = field(default_factory=dict)


OWN_PROCESS = "kconform"
"""The worker that is the command's own process."""


@dataclass(frozen=True, slots=True)
class Work:
    """That a worker was at a stage, from `start` to `end` by `time.monotonic()`.

    A worker does one thing at a time: it is the command's own process, another process, or a slot
    of those in which models are checked. The operating system moves it from core to core.
    """

    worker: str
    start: float
    end: float


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
    consequence: bool = False
    """Whether it came to no verdict only because an earlier stage failed, which is told there."""
    exhibit: Exhibit | None = None
    """A counterexample that was expected, for the page."""
    work: tuple[Work, ...] = ()
    """Who was at it, and when; empty: the command's own process until now."""
    checks: bool = True
    """Whether it checked anything; a pass of one that only prepared earns nothing."""


Event = StageStarted | Progress | PrintedLine | ComparedModel | Finding | StageFinished
Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An `Emit` for callers that want only the result."""
