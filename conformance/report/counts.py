"""The number of times that each action, disjunct and formula of a specification was exercised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from conformance.events import ComparedModel, ModuleText, StageFinished
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
    def description(self) -> str:
        """In words, for a tooltip and a screen reader."""
        if self.kind == "formula":
            return f"{self.name}: had a value on {self.total:,} distinct states or steps"
        parts = ", ".join(f"{name} {count:,}" for name, count in self.by_source.items())
        what = "a disjunct or branch" if self.kind == "disjunct" else self.name
        return f"{what}: {counted(self.total, 'step')} ({parts or 'never taken'})"


@dataclass(frozen=True, slots=True)
class CountedLine:
    """One line of a module; the counts of what begins on it, a definition before disjuncts."""

    number: int
    text: str
    counts: tuple[Count, ...] = ()

    @property
    def margin(self) -> str:
        """The counts, formatted for the line."""
        return " ".join(f"{count.total:,}" for count in self.counts)

    @property
    def description(self) -> str:
        """The counts in words."""
        return "; ".join(count.description for count in self.counts)

    @property
    def met(self) -> bool:
        """Whether everything that begins here was met."""
        return all(count.total for count in self.counts)

    @property
    def definitions(self) -> tuple[Count, ...]:
        """The actions and formulas that are defined here."""
        return tuple(count for count in self.counts if count.kind != "disjunct")


@dataclass(frozen=True, slots=True)
class CountedModule:
    """A module's text with its counts."""

    name: str
    path: str
    lines: tuple[CountedLine, ...]

    @property
    def never(self) -> tuple[str, ...]:
        """The definitions of this module that were never exercised."""
        result = (count for line in self.lines for count in line.definitions)
        return tuple(count.name for count in result if not count.total)

    @property
    def disjuncts(self) -> tuple[tuple[CountedLine, Count], ...]:
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
        result = (line.number for line, count in self.disjuncts if not count.total)
        return tuple(dict.fromkeys(result))

    @property
    def width(self) -> int:
        """Characters of the margin."""
        return max(len(line.margin) for line in self.lines)


@dataclass(frozen=True, slots=True)
class SpecCounts:
    """A run's counts for one specification."""

    spec: str
    actions: tuple[Count, ...]
    formulas: tuple[Count, ...]
    modules: tuple[CountedModule, ...] = field(default=())

    @property
    def never(self) -> tuple[str, ...]:
        """Actions that no source took."""
        return tuple(action.name for action in self.actions if not action.total)

    @property
    def disjuncts(self) -> int:
        """How many disjuncts the actions have."""
        return sum(len(module.disjuncts) for module in self.modules)

    @property
    def never_taken(self) -> int:
        """How many of them no step took."""
        result = (count for module in self.modules for _, count in module.disjuncts)
        return sum(not count.total for count in result)


def counts(report: Report) -> tuple[SpecCounts, ...]:
    """Per specification; of a run that held nothing against a text, none."""
    specs = dict.fromkeys(compared_model.spec for compared_model in report.comparisons)
    return tuple(_of(report, spec) for spec in specs if _was_counted(report, spec))


def _was_counted(report: Report, spec: str) -> bool:
    return any(_steps(stage) for stage in _stages(report, spec))


def _stages(report: Report, spec: str) -> Iterator[StageFinished]:
    models = {
        compared_model.model for compared_model in report.comparisons if compared_model.spec == spec
    }
    return (s for s in report.stages if s.stage in SOURCES and s.figures.get("model") in models)


def _of(report: Report, spec: str) -> SpecCounts:
    models = [
        compared_model for compared_model in report.comparisons if compared_model.spec == spec
    ]
    frequencies: dict[str, Counter[str]] = {
        name: Counter() for compared_model in models for name in compared_model.actions
    }
    passed: dict[str, Counter[str]] = {
        name: Counter() for compared_model in models for name in compared_model.branches
    }
    judged: Counter[str] = Counter()
    for stage in _stages(report, spec):
        for name, count in _steps(stage).items():
            frequencies.setdefault(name, Counter())[stage.stage] += count
        for name, count in _integers(stage, "branches").items():
            passed.setdefault(name, Counter())[stage.stage] += count
        judged.update(_integers(stage, "formulas_judged"))
    actions = {name: Count(name, "action", dict(by)) for name, by in frequencies.items()}
    formulas = {name: Count(name, "formula", {"audit": n}) for name, n in judged.items()}
    disjuncts = {name: Count(name, "disjunct", dict(by)) for name, by in passed.items()}
    modules = _modules(models, {**formulas, **actions}, disjuncts)
    return SpecCounts(spec, tuple(actions.values()), tuple(formulas.values()), modules)


def _steps(stage: StageFinished) -> Counter[str]:
    """Steps by action name, whatever its arguments."""
    key = "actions_fired" if stage.stage == "audit" else "actions"
    steps: Counter[str] = Counter()
    for name, count in _integers(stage, key).items():
        steps[name.partition("(")[0]] += count
    return steps


def _integers(stage: StageFinished, key: str) -> dict[str, int]:
    figures = stage.figures.get(key)
    pairs = figures.items() if isinstance(figures, dict) else ()
    return {name: count for name, count in pairs if isinstance(count, int)}


def _modules(
    models: Sequence[ComparedModel], defined: Mapping[str, Count], disjuncts: Mapping[str, Count]
) -> tuple[CountedModule, ...]:
    """The modules in which something is counted."""
    texts = {module.name: module for compared_model in models for module in compared_model.modules}
    begins: dict[tuple[str, int], dict[str, Count]] = {}
    for compared_model in models:
        for name, (module, first, _) in compared_model.places.items():
            if name in defined:
                begins.setdefault((module, first), {})[name] = defined[name]
    for compared_model in models:
        for name, place in compared_model.branches.items():
            begins.setdefault(place, {})[name] = disjuncts[name]
    counted = dict.fromkeys(module for module, _ in begins if module in texts)
    return tuple(_module(texts[name], begins) for name in counted)


def _module(
    text: ModuleText, begins: Mapping[tuple[str, int], Mapping[str, Count]]
) -> CountedModule:
    numbered = enumerate(text.text.splitlines(), 1)
    lines = [
        CountedLine(n, name, tuple(begins.get((text.name, n), {}).values())) for n, name in numbered
    ]
    return CountedModule(text.name, text.path, tuple(lines))
