"""What an inspection finds: in words, with the files that bear it out and how to see the bytes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from conformance.events import Finding, JsonValue, Reason
from conformance.story.key import hashed_key
from conformance.verdict import Verdict

__all__ = ["Discovery", "UnjudgedSubject"]


@dataclass(frozen=True, slots=True)
class Discovery:
    """One finding.

    `kind` is the name of a formula, a kind of `damage.KINDS`, or one of truncated-exposed,
    lost-by-unclean-election, contents-differ. A finding that the moments of the copies could
    explain as well is INCONCLUSIVE.
    """

    kind: str
    subject: str
    """`orders-0`, `group billing`, or a file."""
    title: str
    message: str
    verdict: Verdict = Verdict.FAIL
    offsets: tuple[int, int] | None = None
    """The first offset and the one behind the last."""
    brokers: tuple[str, ...] = ()
    formula: str = ""
    location: str = ""
    reasons: tuple[Reason, ...] = ()
    sources: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    topic: str = ""
    partition: int = -1
    scale: str = ""
    """What the numbers in `reasons` stand for."""

    @property
    def key(self) -> str:
        """Stays the same from run to run."""
        place = "" if self.offsets is None else f"{self.offsets[0]}"
        parts = (self.kind, self.subject, place, ",".join(self.brokers), self.title)
        return hashed_key("inspect", parts)

    def as_json(self) -> dict[str, JsonValue]:
        """The finding in findings.json."""
        return {
            "key": self.key,
            "kind": self.kind,
            "verdict": str(self.verdict),
            "subject": self.subject,
            "topic": self.topic,
            "partition": self.partition,
            "offsets": None if self.offsets is None else list(self.offsets),
            "brokers": list(self.brokers),
            "title": self.title,
            "message": self.message,
            "formula": self.formula,
            "location": self.location,
            "why": [
                f"{'  ' * reason.depth}{reason.text} {reason.outcome}".rstrip()
                for reason in self.reasons
            ],
            "scale": self.scale,
            "sources": list(self.sources),
            "commands": list(self.commands),
        }

    def as_event(self, reproduce: str) -> Finding:
        """The finding as every report takes it."""
        return Finding(
            key=self.key,
            title=self.title,
            stage="inspect",
            message=self.message,
            trace=self.subject,
            formula=self.formula,
            location=self.location,
            story=(*self.sources, *self.commands),
            reproduce=reproduce,
        )

    def softened(self, why: str) -> Discovery:
        """The same, if `why` could explain it as well."""
        message = f"{self.message} Not proved: {why}"
        return replace(self, verdict=Verdict.INCONCLUSIVE, message=message)


@dataclass(frozen=True, slots=True)
class UnjudgedSubject:
    """What could not be judged, and why."""

    subject: str
    what: str
    why: str
    matters: bool = False
    """Whether the verdict cannot be a pass because of it."""


@dataclass(slots=True)
class FindingNotes:
    """Collects both while a partition is judged."""

    discoveries: list[Discovery] = field(default_factory=list)
    unjudged: list[UnjudgedSubject] = field(default_factory=list)
