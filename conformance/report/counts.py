"""How often each action, disjunct and formula of a specification was met, beside its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from conformance.events import Held, ModuleText, StageFinished
from conformance.printable import counted
from conformance.report.collect import Report

SOURCES = ("replay", "explore", "audit")
"""Where steps are counted: suites, Hypothesis, recorded traces."""


Kind = Literal["action", "formula", "disjunct"]


@dataclass(frozen=True, slots=True)
class Count:
    """Steps that took an action or a disjunct, by source; of a formula, where it had a value."""

    name: str
    kind: Kind
    by_source: Mapping[str, int]

    @property
    def total(self) -> int:
        """Over all sources."""
        return sum(self.by_source.values())

    @property
    def told(self) -> str:
        """In words, for a tooltip and a screen reader."""
        if self.kind == "formula":
            return f"{self.name}: had a value on {self.total:,} distinct states or steps"
        parts = ", ".join(f"{name} {count:,}" for name, count in self.by_source.items())
        what = "a disjunct or branch" if self.kind == "disjunct" else self.name
        return f"{what}: {counted(self.total, 'step')} ({parts or 'never taken'})"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a module; the counts of what begins on it, a definition before disjuncts."""

    number: int
    text: str
    counts: tuple[Count, ...] = ()

    @property
    def margin(self) -> str:
        """The counts as they stand beside the line."""
        return " ".join(f"{one.total:,}" for one in self.counts)

    @property
    def told(self) -> str:
        """The counts in words."""
        return "; ".join(one.told for one in self.counts)

    @property
    def met(self) -> bool:
        """Whether everything that begins here was met."""
        return all(one.total for one in self.counts)

    @property
    def definitions(self) -> tuple[Count, ...]:
        """The actions and formulas that are defined here."""
        return tuple(one for one in self.counts if one.kind != "disjunct")


@dataclass(frozen=True, slots=True)
class Module:
    """A module's text with its counts."""

    name: str
    path: str
    lines: tuple[Line, ...]

    @property
    def never(self) -> tuple[str, ...]:
        """What is defined here and was never met."""
        found = (count for one in self.lines for count in one.definitions)
        return tuple(count.name for count in found if not count.total)

    @property
    def disjuncts(self) -> tuple[tuple[Line, Count], ...]:
        """The disjuncts, each with the line on which it begins."""
        return tuple(
            (line, count)
            for line in self.lines
            for count in line.counts
            if count.kind == "disjunct"
        )

    @property
    def never_taken(self) -> tuple[int, ...]:
        """The numbers of the lines with a disjunct that no step took."""
        found = (line.number for line, count in self.disjuncts if not count.total)
        return tuple(dict.fromkeys(found))

    @property
    def width(self) -> int:
        """Characters of the margin."""
        return max(len(line.margin) for line in self.lines)


@dataclass(frozen=True, slots=True)
class SpecCounts:
    """What a run met of one specification."""

    spec: str
    actions: tuple[Count, ...]
    formulas: tuple[Count, ...]
    modules: tuple[Module, ...] = field(default=())

    @property
    def never(self) -> tuple[str, ...]:
        """Actions that no source took."""
        return tuple(one.name for one in self.actions if not one.total)

    @property
    def disjuncts(self) -> int:
        """How many disjuncts the actions have."""
        return sum(len(module.disjuncts) for module in self.modules)

    @property
    def never_taken(self) -> int:
        """How many of them no step took."""
        found = (count for module in self.modules for _, count in module.disjuncts)
        return sum(not count.total for count in found)


def counts(report: Report) -> tuple[SpecCounts, ...]:
    """Per specification; of a run that held nothing against a text, none."""
    specs = dict.fromkeys(held.spec for held in report.held)
    return tuple(_of(report, spec) for spec in specs if _was_counted(report, spec))


def _was_counted(report: Report, spec: str) -> bool:
    return any(_steps(stage) for stage in _stages(report, spec))


def _stages(report: Report, spec: str) -> Iterator[StageFinished]:
    models = {held.model for held in report.held if held.spec == spec}
    return (s for s in report.stages if s.stage in SOURCES and s.figures.get("model") in models)


def _of(report: Report, spec: str) -> SpecCounts:
    held = [one for one in report.held if one.spec == spec]
    taken: dict[str, Counter[str]] = {name: Counter() for one in held for name in one.actions}
    passed: dict[str, Counter[str]] = {name: Counter() for one in held for name in one.branches}
    judged: Counter[str] = Counter()
    for stage in _stages(report, spec):
        for name, count in _steps(stage).items():
            taken.setdefault(name, Counter())[stage.stage] += count
        for name, count in _integers(stage, "branches").items():
            passed.setdefault(name, Counter())[stage.stage] += count
        judged.update(_integers(stage, "formulas_judged"))
    actions = {name: Count(name, "action", dict(by)) for name, by in taken.items()}
    formulas = {name: Count(name, "formula", {"audit": n}) for name, n in judged.items()}
    disjuncts = {name: Count(name, "disjunct", dict(by)) for name, by in passed.items()}
    modules = _modules(held, {**formulas, **actions}, disjuncts)
    return SpecCounts(spec, tuple(actions.values()), tuple(formulas.values()), modules)


def _steps(stage: StageFinished) -> Counter[str]:
    """Steps by action name, whatever its arguments."""
    key = "actions_fired" if stage.stage == "audit" else "actions"
    found: Counter[str] = Counter()
    for name, count in _integers(stage, key).items():
        found[name.partition("(")[0]] += count
    return found


def _integers(stage: StageFinished, key: str) -> dict[str, int]:
    figures = stage.figures.get(key)
    pairs = figures.items() if isinstance(figures, dict) else ()
    return {name: count for name, count in pairs if isinstance(count, int)}


def _modules(
    held: Sequence[Held], defined: Mapping[str, Count], disjuncts: Mapping[str, Count]
) -> tuple[Module, ...]:
    """The modules in which something is counted."""
    texts = {module.name: module for one in held for module in one.modules}
    begins: dict[tuple[str, int], dict[str, Count]] = {}
    for one in held:
        for name, (module, first, _) in one.places.items():
            if name in defined:
                begins.setdefault((module, first), {})[name] = defined[name]
    for one in held:
        for name, place in one.branches.items():
            begins.setdefault(place, {})[name] = disjuncts[name]
    counted = dict.fromkeys(module for module, _ in begins if module in texts)
    return tuple(_module(texts[name], begins) for name in counted)


def _module(text: ModuleText, begins: Mapping[tuple[str, int], Mapping[str, Count]]) -> Module:
    numbered = enumerate(text.text.splitlines(), 1)
    lines = [Line(n, one, tuple(begins.get((text.name, n), {}).values())) for n, one in numbered]
    return Module(text.name, text.path, tuple(lines))
