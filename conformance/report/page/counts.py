"""How often each action and formula of a specification was met, beside its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.events import Held, StageFinished
from conformance.report.collect import Report

SOURCES = ("replay", "explore", "audit")
"""Where steps are counted: suites, Hypothesis, recorded traces."""


@dataclass(frozen=True, slots=True)
class Count:
    """Steps that took an action, by source; states or steps on which a formula had a value."""

    name: str
    formula: bool
    by_source: Mapping[str, int]

    @property
    def total(self) -> int:
        """Over all sources."""
        return sum(self.by_source.values())

    @property
    def told(self) -> str:
        """In words, for a tooltip and a screen reader."""
        if self.formula:
            return f"{self.name}: had a value on {self.total:,} distinct states or steps"
        parts = ", ".join(f"{name} {count:,}" for name, count in self.by_source.items())
        return f"{self.name}: {self.total:,} steps ({parts or 'never taken'})"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a module, with the count of what is defined from here on."""

    number: int
    text: str
    count: Count | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """A module's text with its counts."""

    name: str
    path: str
    lines: tuple[Line, ...]

    @property
    def never(self) -> tuple[str, ...]:
        """What is defined here and was never met."""
        return tuple(one.count.name for one in self.lines if one.count and not one.count.total)


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
    names = dict.fromkeys(name for one in held for name in one.actions)
    taken: dict[str, Counter[str]] = {name: Counter() for name in names}
    judged: Counter[str] = Counter()
    for stage in _stages(report, spec):
        for name, count in _steps(stage).items():
            taken.setdefault(name, Counter())[stage.stage] += count
        judged.update(_integers(stage, "formulas_judged"))
    actions = {name: Count(name, False, dict(by)) for name, by in taken.items()}
    formulas = {name: Count(name, True, {"audit": n}) for name, n in judged.items()}
    modules = _modules(held, {**formulas, **actions})
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


def _modules(held: Sequence[Held], known: Mapping[str, Count]) -> tuple[Module, ...]:
    """The modules in which something is counted."""
    texts = {module.name: module for one in held for module in one.modules}
    begins: dict[tuple[str, int], Count] = {}
    for one in held:
        for name, (module, first, _) in one.places.items():
            if name in known:
                begins[module, first] = known[name]
    found = []
    for name, text in texts.items():
        if any(where == name for where, _ in begins):
            numbered = enumerate(text.text.splitlines(), 1)
            lines = tuple(Line(n, line, begins.get((name, n))) for n, line in numbered)
            found.append(Module(name, text.path, lines))
    return tuple(found)
