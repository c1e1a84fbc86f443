"""How far a replica's log had reached, by what others wrote down: an older copy lacks the rest.

A log that was cut, or an older copy that was put back together with its checkpoints, contradicts
nothing in its own folder. Its broker's server log tells where it began to lead or to follow. The
controller tells who led, and who came into the ISR: a leader's log reaches to where its epoch
begins, and so does that of whoever joins the ISR in that epoch (Partition.isFollowerInSync).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from conformance.inspect.copies import Copies
from conformance.inspect.exposure import explained_by
from conformance.inspect.findings import Discovery
from conformance.inspect.history import Elections, Registration
from conformance.inspect.lines import UNKNOWN, ServerLogLine
from conformance.inspect.subjects import InspectedPartition, ReplicaCopy


@dataclass(frozen=True, slots=True)
class Attestation:
    """A log had held everything below `end` at some time, in milliseconds since 1970."""

    end: int
    time: int
    what: str
    source: str


def outdated(
    subject: InspectedPartition, starts: Mapping[int, int], copies: Copies
) -> Iterator[Discovery]:
    """Replicas whose logs end below what they are known to have held.

    `starts`: the offset at which each leader epoch began.
    """
    for broker, copy in subject.copies.items():
        by_lines = _by_lines([line for line in subject.lines if line.broker == broker])
        if by_lines is not None and by_lines.end > copy.end:
            yield _outdated_by_lines(subject, copy, by_lines, copies)
            continue
        node = copies[broker].node
        if subject.elections is None or node is None:
            continue
        attested = _by_controller(subject.elections, node, starts, copy.end)
        if attested is not None:
            yield _outdated_by_controller(subject, copy, attested, copies)


# --- the broker's own server log -----------------------------------------------------------------


def _by_lines(lines: Sequence[ServerLogLine]) -> Attestation | None:
    """The end of the log as a broker's own lines leave it, the last of them for the end."""
    last: Attestation | None = None
    for line in lines:
        if line.kind in ("started", "restarted", "truncated") and line.offset != UNKNOWN:
            what = f"led from offset {line.offset} on in epoch {line.epoch}"
            if not line.leads:
                what = f"had the records below {line.offset}"
            last = Attestation(line.offset, line.time, what, f"{line.source}: {line.text}")
        elif last is not None and line.high_watermark > last.end:
            what = f"had a high watermark of {line.high_watermark}"
            source = f"{line.source}: {line.text}"
            last = Attestation(line.high_watermark, line.time, what, source)
    return last


def _outdated_by_lines(
    subject: InspectedPartition, replica_copy: ReplicaCopy, by_lines: Attestation, copies: Copies
) -> Discovery:
    finding = _finding(
        "older-than-its-log",
        subject,
        replica_copy,
        by_lines,
        f"By its own server log {replica_copy.broker} {by_lines.what}, and no later line tells "
        "that it cut "
        f"them. The log in the folder ends at {replica_copy.end}.",
    )
    copy = copies[replica_copy.broker]
    if copy.copied_at < by_lines.time:
        return finding.softened(
            f"the newest file of {replica_copy.broker} is older than that line: an older copy was "
            "taken, "
            "or put back, or the server log's time zone is not the one that was given (--zone)."
        )
    if not copy.is_clean(replica_copy.directory):
        return finding.softened(
            f"{replica_copy.broker} was not shut down in order, and a power failure loses what "
            "was not "
            "flushed."
        )
    return finding


# --- the controller ------------------------------------------------------------------------------


def _by_controller(
    elections: Elections, node: int, starts: Mapping[int, int], end: int
) -> tuple[Attestation, bool] | None:
    """What reached farthest beyond the log's end, and whether it still must be there."""
    attestations: list[Attestation] = []
    for registration, what in _joined(elections, node):
        start = min(
            (offset for epoch, offset in starts.items() if epoch >= registration.leader_epoch),
            default=-1,
        )
        if registration.leader_epoch not in starts or start <= end:
            continue
        if explained_by(elections, starts, end, registration.leader_epoch) is None:
            source = f"__cluster_metadata-0, offset {registration.offset}"
            attestations.append(Attestation(start, registration.time, what, source))
    if not attestations:
        return None
    last = elections.last
    return max(attestations, key=lambda attestation: attestation.end), node in (
        *last.electable,
        last.leader,
    )


def _joined(elections: Elections, node: int) -> Iterator[tuple[Registration, str]]:
    """The registrations with which a node began to lead, or came into the ISR."""
    for election in elections.elections:
        if election.leader == node:
            yield election, f"was elected in epoch {election.leader_epoch}"
    for before, after in pairwise(elections.registrations):
        if node in after.isr and node not in before.isr and after.leader != node:
            yield after, f"came into the ISR in epoch {after.leader_epoch}"


def _outdated_by_controller(
    subject: InspectedPartition,
    replica_copy: ReplicaCopy,
    attested: tuple[Attestation, bool],
    copies: Copies,
) -> Discovery:
    attestation, owed = attested
    finding = _finding(
        "older-than-the-controller",
        subject,
        replica_copy,
        attestation,
        f"{replica_copy.broker} {attestation.what}, so it held the records below "
        f"{attestation.end}, where "
        "the other replicas have that epoch begin. The log in its folder ends at "
        f"{replica_copy.end}.",
    )
    copy = copies[replica_copy.broker]
    if (
        not copy.is_clean(replica_copy.directory)
        and attestation.time >= copy.copied_at - copy.window
    ):
        return finding.softened(
            f"the files of {replica_copy.broker} may have been copied before that."
        )
    if not owed:
        return finding.softened(
            f"{replica_copy.broker} is not in the ISR: its disk may have been replaced since."
        )
    return finding


def _finding(
    kind: str,
    subject: InspectedPartition,
    copy: ReplicaCopy,
    attestation: Attestation,
    message: str,
) -> Discovery:
    return Discovery(
        kind,
        subject.name,
        f"{subject.name}: the log of {copy.broker} is of an earlier time: it ends at {copy.end}, "
        f"and had reached {attestation.end}",
        message,
        offsets=(copy.end, attestation.end),
        brokers=(copy.broker,),
        sources=(attestation.source,),
        topic=subject.key[0],
        partition=subject.key[1],
    )
