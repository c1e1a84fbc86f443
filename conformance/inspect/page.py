"""The page for the incident review: what was found, the logs side by side, the time line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files

from conformance.inspect import drawing
from conformance.inspect.findings import Discovery, UnjudgedSubject
from conformance.inspect.groups import JudgedGroup
from conformance.inspect.history import Registration
from conformance.inspect.inspection import Inspection
from conformance.inspect.judgement import PartitionJudgement
from conformance.inspect.server_logs import ServerLog
from conformance.printable import counted, plural
from conformance.report import page
from conformance.report.page.view import anchor
from conformance.verdict import Verdict

_FINDINGS, _PARTITIONS, _UNJUDGED, _ROWS = 60, 40, 100, 400


@dataclass(frozen=True, slots=True)
class InspectFindingView:
    """A finding with the logs around it."""

    discovery: Discovery
    drawing: str


@dataclass(frozen=True, slots=True)
class TimeLineRow:
    """A row of the time line."""

    at: int
    time: str
    what: str
    source: str
    epoch: int | None = None
    bad: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A replica as its files show it."""

    broker: str
    start: int
    end: int
    high_watermark: str
    cache: str
    in_isr: str


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """Offsets in which the replicas differ."""

    offsets: str
    cells: tuple[str, ...]
    conflicting: bool


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition on the page."""

    anchor: str
    name: str
    summary: str
    open: bool
    drawing: str
    brokers: tuple[str, ...]
    replicas: tuple[ReplicaRow, ...]
    differences: tuple[DifferenceRow, ...]
    timeline: tuple[TimeLineRow, ...]


@dataclass(frozen=True, slots=True)
class GroupRowView:
    """A record of a group."""

    offset: int
    time: str
    state: str
    generation: int
    protocol: str
    members: str
    assigned: str


@dataclass(frozen=True, slots=True)
class InspectGroupView:
    """A group on the page."""

    name: str
    type: str
    partition: int
    broker: str
    rows: tuple[GroupRowView, ...]


@dataclass(frozen=True, slots=True)
class CopyRow:
    """A broker's copy."""

    broker: str
    node: str
    time: str
    clean: str
    end: int


@dataclass(frozen=True, slots=True)
class InspectionPage:
    """All that the template lays out."""

    verdict: str
    sentence: str
    cards: tuple[tuple[str, str], ...]
    findings: tuple[InspectFindingView, ...]
    more_findings: int
    partitions: tuple[PartitionView, ...]
    more_partitions: int
    groups: tuple[InspectGroupView, ...]
    apart: str
    copies: tuple[CopyRow, ...]
    files: str
    server_logs: tuple[ServerLog, ...]
    more_server_logs: int
    formulas: tuple[tuple[str, dict[str, int]], ...]
    unjudged: tuple[UnjudgedSubject, ...]
    more_unjudged: int


def dumps(inspection: Inspection) -> str:
    """The page's text: self-contained, and complete without its script."""
    style = files("conformance.inspect").joinpath("templates/incident.css").read_text("utf-8")
    return page.render(
        "incident.html.j2",
        package="conformance.inspect",
        folder="templates",
        style=style,
        view=view_of(inspection),
    )


def view_of(inspection: Inspection) -> InspectionPage:
    """What the page shows."""
    shown = list(inspection.partitions.values())[:_PARTITIONS]
    discoveries = inspection.discoveries
    return InspectionPage(
        str(inspection.verdict),
        _sentence(inspection),
        tuple(_cards(inspection)),
        tuple(_finding(inspection, discovery) for discovery in discoveries[:_FINDINGS]),
        max(len(discoveries) - _FINDINGS, 0),
        tuple(_partition(inspection, judgement) for judgement in shown),
        inspection.partition_count - len(shown),
        tuple(map(_group, inspection.groups[:_PARTITIONS])),
        _apart(inspection),
        tuple(_copies(inspection)),
        _files(inspection),
        inspection.server_logs[:_ROWS],
        max(len(inspection.server_logs) - _ROWS, 0),
        tuple(sorted(inspection.truths.items())),
        tuple(sorted(inspection.unjudged, key=lambda gap: not gap.matters))[:_UNJUDGED],
        max(len(inspection.unjudged) - _UNJUDGED, 0),
    )


def _sentence(inspection: Inspection) -> str:
    proved = sum(discovery.verdict is Verdict.FAIL for discovery in inspection.discoveries)
    possible = len(inspection.discoveries) - proved
    if proved:
        more = f", and {possible} that the copies do not prove" if possible else ""
        count = counted(proved, "finding")
        return f"{count}{more}. The first: {inspection.discoveries[0].title}."
    if possible:
        return f"{counted(possible, 'finding')}, none of which the copies prove."
    if inspection.verdict is Verdict.PASS:
        return "Everything that could be judged is as the specification wants it."
    return "Nothing was found, but not enough could be judged: see what was not judged."


def _cards(inspection: Inspection) -> Iterator[tuple[str, str]]:
    yield plural(inspection.partition_count, "partition"), f"{inspection.partition_count:,}"
    yield plural(len(inspection.copies.copies), "broker"), f"{len(inspection.copies.copies):,}"
    yield "batches", f"{inspection.batches:,}"
    yield plural(inspection.group_count, "group"), f"{inspection.group_count:,}"
    yield plural(len(inspection.discoveries), "finding"), f"{len(inspection.discoveries):,}"


def _apart(inspection: Inspection) -> str:
    copies = inspection.copies
    return (
        f"The newest files of the brokers are up to {copies.apart / 1000:.1f} s apart, their "
        f"metadata logs up to {copies.metadata_apart} records. What could be due to that is "
        "reported as not proved."
    )


def _copies(inspection: Inspection) -> Iterator[CopyRow]:
    for name, copy in inspection.copies.copies.items():
        clean = "yes" if copy.clean else "no"
        node = "unknown" if copy.node is None else str(copy.node)
        yield CopyRow(name, node, _time(copy.copied_at), clean, copy.last_metadata_offset + 1)


def _files(inspection: Inspection) -> str:
    files = inspection.files
    return (
        f"{files['read']:,} files were read, {files['skipped']:,} skipped, {files['error']:,} in "
        "error; evidence/files lists each with the reason."
    )


def _time(milliseconds: int) -> str:
    if milliseconds < 0:
        return ""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _finding(inspection: Inspection, discovery: Discovery) -> InspectFindingView:
    judged = inspection.partitions.get((discovery.topic, discovery.partition))
    if judged is None or not judged.states or discovery.subject.startswith("group "):
        return InspectFindingView(discovery, "")
    return InspectFindingView(discovery, _drawing(judged, discovery.offsets))


def _drawing(judged: PartitionJudgement, focus: tuple[int, int] | None = None) -> str:
    watermarks = {name: copy.high_watermark for name, copy in judged.subject.copies.items()}
    return drawing.logs(judged.states, watermarks, focus)


def _partition(inspection: Inspection, judged: PartitionJudgement) -> PartitionView:
    subject = judged.subject
    accused = any((o.topic, o.partition) == subject.key for o in inspection.discoveries)
    elections = len(subject.elections.elections) if subject.elections else 0
    differing = sum(difference.conflicting for difference in judged.differences)
    summary = (
        f"{counted(len(judged.states), 'replica')}, {counted(elections, 'leader epoch')}, "
        f"{counted(len(judged.truncations), 'truncation')}, "
        f"{counted(differing, 'conflicting range')}"
    )
    brokers = tuple(judged.states)
    return PartitionView(
        anchor("partition", subject.name),
        subject.name,
        summary,
        accused,
        _drawing(judged),
        brokers,
        tuple(_replicas(judged)),
        tuple(_differences(inspection, judged, brokers)),
        tuple(_timeline(inspection, judged))[:_ROWS],
    )


def _replicas(judged: PartitionJudgement) -> Iterator[ReplicaRow]:
    for name, state in judged.states.items():
        copy = judged.subject.copies[name]
        cache = ", ".join(f"{entry.epoch} from {entry.start}" for entry in copy.epoch_cache or ())
        watermark = "not written down" if copy.high_watermark is None else str(copy.high_watermark)
        in_isr = "yes" if name in judged.moment.registered.isr else "no"
        yield ReplicaRow(name, state.start, state.end, watermark, cache, in_isr)


def _differences(
    inspection: Inspection, judged: PartitionJudgement, brokers: Sequence[str]
) -> Iterator[DifferenceRow]:
    elections = judged.subject.elections
    for part in judged.differences[:_ROWS]:
        cells = []
        for name in brokers:
            if name not in part.epochs:
                cells.append("below its log start")
                continue
            epoch = part.epochs[name]
            leader = elections.leader_of(epoch) if elections and epoch is not None else None
            by = (
                f", by {inspection.copies.name(leader)}"
                if leader is not None and leader >= 0
                else ""
            )
            cells.append("no record" if epoch is None else f"epoch {epoch}{by}")
        offsets = f"{part.start} to {part.end - 1}"
        yield DifferenceRow(offsets, tuple(cells), part.conflicting)


def _timeline(inspection: Inspection, judged: PartitionJudgement) -> Iterator[TimeLineRow]:
    rows = [*_registrations(inspection, judged), *_lines(inspection, judged)]
    yield from sorted(rows, key=lambda row: row.at)


def _registrations(inspection: Inspection, judged: PartitionJudgement) -> Iterator[TimeLineRow]:
    elections = judged.subject.elections
    if elections is None:
        return
    unclean = {registration.offset for registration in elections.unclean}
    before: Registration | None = None
    for registration in elections.registrations:
        what = _registration(
            inspection, judged, before, registration, registration.offset in unclean
        )
        source = f"__cluster_metadata-0, offset {registration.offset}"
        yield TimeLineRow(
            registration.time,
            _time(registration.time),
            what,
            source,
            registration.leader_epoch,
            registration.offset in unclean,
        )
        before = registration


def _registration(
    inspection: Inspection,
    judged: PartitionJudgement,
    before: Registration | None,
    registration: Registration,
    unclean: bool,
) -> str:
    names = inspection.copies
    isr = ", ".join(names.name(node) for node in registration.isr) or "empty"
    tail = f"ISR {isr}; partition epoch {registration.partition_epoch}"
    if registration.eligible:
        tail += (
            f"; eligible leaders {', '.join(names.name(node) for node in registration.eligible)}"
        )
    if before is not None and before.leader_epoch == registration.leader_epoch:
        return f"ISR changed: {tail}"
    if registration.leader < 0:
        return f"no leader; {tail}"
    start = judged.starts.get(registration.leader_epoch)
    where = "" if start is None else f" from offset {start}"
    how = (
        "created with leader" if before is None else "unclean election of" if unclean else "elected"
    )
    return f"{how} {names.name(registration.leader)}{where}; {tail}"


def _lines(inspection: Inspection, judged: PartitionJudgement) -> Iterator[TimeLineRow]:
    """Truncations with their verdict, and high watermarks that servers wrote down."""
    cuts = {(cut.source, cut.offset): cut for cut in judged.truncations}
    for line in judged.subject.lines:
        cut = cuts.get((line.source, line.offset))
        if line.kind == "truncated" and cut is not None:
            end = "" if cut.end < 0 else f" from {cut.end}"
            what = f"{line.broker} truncates{end} to {line.offset}: {cut.verdict}"
            yield TimeLineRow(
                line.time, _time(line.time), what, line.source, None, cut.cuts_exposed
            )
        elif line.kind == "high-watermark":
            what = f"{line.broker} has the high watermark {line.high_watermark}"
            yield TimeLineRow(line.time, _time(line.time), what, line.source)
        elif line.kind == "started":
            leader = "nobody" if line.leader < 0 else inspection.copies.name(line.leader)
            role = "leads" if line.leads else f"follows {leader}"
            what = (
                f"{line.broker} {role} from offset {line.offset}, high watermark "
                f"{line.high_watermark}"
            )
            yield TimeLineRow(line.time, _time(line.time), what, line.source, line.epoch)


def _group(group: JudgedGroup) -> InspectGroupView:
    rows = tuple(
        GroupRowView(
            row.offset,
            _time(row.time),
            row.state,
            row.generation,
            row.protocol,
            ", ".join(sorted(row.assigned)),
            "; ".join(
                f"{member}: {', '.join(sorted(assigned)) or 'nothing'}"
                for member, assigned in sorted(row.assigned.items())
            ),
        )
        for row in group.rows[-_ROWS:]
    )
    return InspectGroupView(group.name, group.type, group.partition, group.broker, rows)
