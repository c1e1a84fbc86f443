"""Findings of one likely cause, joined over stages and models: five symptoms are one bug.

Two findings are joined where they have one key, where one departs at the same action with a
variable in common, where the same function raised the same exception, where exactly the same
variables differ, where the same formula is violated, or where the same action is taken, offered or
refused against the specification. Which is a guess, and called one: nothing is left out, the
symptoms stand below their cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.events import Finding
from conformance.story.comparison import variables_of
from conformance.story.key import (
    ENDLESS,
    NOT_ALLOWED,
    NOT_ENABLED,
    RAISED,
    REFUSED,
    kind_of,
    subjects_of,
)

_OF_THE_ACTION = {NOT_ENABLED, REFUSED, ENDLESS}
"""Kinds that are about the action itself, whatever variables differ."""


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
        return tuple(dict.fromkeys(symptom.stage for symptom in self.symptoms))


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
    return tuple(
        Cause(tuple(sorted((findings[n] for n in numbers), key=_length))) for numbers in ordered
    )


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
    kind = kind_of(finding.key)
    if kind == RAISED:
        yield ("raised", finding.key.partition(f":{RAISED}:")[2])
    elif kind in _OF_THE_ACTION or (kind == NOT_ALLOWED and not names):
        for subject in subjects_of(finding.key):
            yield ("action", subject)
