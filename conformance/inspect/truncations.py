"""Truncations that the server logs tell: which cut only what nobody could read, which cut more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.inspect.exposure import Exposure, explained_by
from conformance.inspect.history import Elections, Registration
from conformance.inspect.lines import UNKNOWN, ServerLogLine


@dataclass(frozen=True, slots=True)
class Truncation:
    """A replica cut its log to `offset` while it followed the leader of `epoch`."""

    broker: str
    offset: int
    end: int
    """Where its log ended when it began to follow; -1 if no line tells."""
    epoch: int
    leader: int
    time: int
    source: str
    text: str
    known: int
    """The greatest high watermark that is known to have been reached before; -1: none is."""
    evidence: str = ""
    """The line or file that tells that high watermark."""
    unclean: Registration | None = None
    """The unclean election that made the cut necessary, if one did."""

    @property
    def cuts_exposed(self) -> bool:
        """Whether consumers could read some of what was cut."""
        return self.known > self.offset

    @property
    def verdict(self) -> str:
        """In words."""
        if not self.cuts_exposed:
            return "legal: nothing above is known to have been exposed"
        if self.unclean is not None:
            return "cut exposed records, after an unclean election"
        return "cut exposed records"


def truncations(
    lines: Sequence[ServerLogLine],
    exposed: Sequence[Exposure],
    elections: Elections | None,
    starts: Mapping[int, int],
) -> tuple[Truncation, ...]:
    """The truncations of a partition's replicas, each held against what was exposed by then."""
    result = (
        truncation
        for broker in sorted({line.broker for line in lines})
        for truncation in _of(broker, lines)
    )
    return tuple(_judged(truncation, exposed, elections, starts) for truncation in result)


def _of(broker: str, lines: Sequence[ServerLogLine]) -> Iterator[Truncation]:
    """A broker's own: its epoch, its log end and its own high watermark are those of the lines."""
    epoch = leader = end = known = UNKNOWN
    text = ""
    for line in lines:
        if line.broker != broker:
            continue
        if line.high_watermark > known:
            known, text = line.high_watermark, f"{line.source}: {line.text}"
        if line.kind == "started":
            epoch, leader, end = line.epoch, line.leader, line.offset
        elif line.kind == "truncated":
            yield Truncation(
                broker, line.offset, end, epoch, line.leader if line.leader >= 0 else leader,
                line.time, line.source, line.text, known, text,
            )  # fmt: skip
            known, end = min(known, line.offset), line.offset


def _judged(
    truncation: Truncation,
    exposed: Sequence[Exposure],
    elections: Elections | None,
    starts: Mapping[int, int],
) -> Truncation:
    """With what other brokers knew to be exposed before the epoch in which it was cut."""
    known, text, since = truncation.known, truncation.evidence, truncation.epoch - 1
    for other in exposed:
        if (
            other.epoch < truncation.epoch
            and other.below > known
            and other.below <= max(truncation.end, 0)
        ):
            known, text, since = other.below, other.source, other.epoch
    if known <= truncation.offset:
        unclean = None
    else:
        unclean = explained_by(
            elections, starts, truncation.offset, min(since, truncation.epoch - 1)
        )
        if unclean is not None and unclean.leader_epoch > truncation.epoch:
            unclean = None
    return Truncation(
        truncation.broker, truncation.offset, truncation.end, truncation.epoch, truncation.leader,
        truncation.time, truncation.source, truncation.text, known, text, unclean,
    )  # fmt: skip
