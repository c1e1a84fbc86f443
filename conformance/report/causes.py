"""Findings of one likely cause, joined over stages and models: five symptoms are one bug.

Two findings are joined where one departs at the same action with a variable in common, where the
same function raised the same exception, where exactly the same variables differ, or where the
same formula is violated by models of one kind. Which is a guess, and called one: nothing is left
out, the symptoms stand below their cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.events import Finding
from conformance.story.comparison import variables_of


@dataclass(frozen=True, slots=True)
class Cause:
    """Symptoms that likely have one cause; the first is the shortest way to it."""

    symptoms: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The symptom to look at."""
        return self.symptoms[0]

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that met it."""
        return tuple(dict.fromkeys(one.stage for one in self.symptoms))


def causes(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """The findings grouped; causes in the order in which their first symptom was met."""
    groups: list[tuple[set[tuple[str, ...]], list[int]]] = []
    for number, finding in enumerate(findings):
        traits, members = set(_traits(finding)), [number]
        apart = []
        for known, others in groups:
            if traits & known:
                traits |= known
                members = [*others, *members]
            else:
                apart.append((known, others))
        groups = [*apart, (traits, members)]
    ordered = sorted(sorted(members) for _, members in groups)
    return tuple(Cause(tuple(sorted((findings[n] for n in one), key=_length))) for one in ordered)


def _length(finding: Finding) -> int:
    return finding.step if finding.step is not None else 1 << 30


def _traits(finding: Finding) -> Iterator[tuple[str, ...]]:
    """What two findings of one cause have in common."""
    yield ("key", finding.key)
    action = finding.action.partition("(")[0].partition(",")[0]
    names = variables_of(finding.differences)
    for name in names:
        yield ("action and variable", action, name)
    if names:
        yield ("variables", *sorted(names))
    _, _, rest = finding.key.partition(":raised:")
    if rest:
        yield ("raised", rest)
    if finding.stage == "check" and finding.formula:
        yield ("formula", finding.formula)
    if action and not names and not rest and finding.stage != "check":
        yield ("action", action)
