"""kconform versions: models against several versions of a system, as a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from conformance.cli.completion import model_names, system_names
from conformance.cli.options import ColdOption, JsonOption, KafkaLibOption, use_kafka_lib
from conformance.cli.session import session
from conformance.config import settled_tier
from conformance.errors import UserError
from conformance.events import JsonValue
from conformance.files import check_folder
from conformance.kafka.jars import RELEASES, release_of
from conformance.modelcheck.check import CheckOptions
from conformance.modelcheck.form import Tier as TierName
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.prepare import model_key
from conformance.report.releases import (
    RECORD_SCHEMA,
    ReleaseRecord,
    SuiteRecord,
    file_of,
    load,
    save,
)
from conformance.stages.context import Context
from conformance.stages.deviations import deviations
from conformance.stages.load import log_answers
from conformance.stages.versions import ModelOutcome, Trial, VersionCell
from conformance.stages.versions import versions as versions_stage
from conformance.tla import Tools, find_tools
from conformance.verdict import Verdict

_ALL_SYSTEMS = (f"kafka-{RELEASES[0]}..{RELEASES[-1]}", f"broker-4.0.0..{RELEASES[-1]}")
"""Of --all without --system: KIP-848's groups can be driven through the port from 4.0 on."""


def versions(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Models, or folders of models.", autocompletion=model_names),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            help="Systems, with commas or repeated: kafka-3.8.1,3.9.1,4.4.0 or kafka-4.0.0..4.4.0.",
            autocompletion=system_names,
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Every suite of the tier that a system can take, and every path of its table; "
            "without --system all releases of Kafka.",
        ),
    ] = False,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            "--log",
            help="A copy of a coordinator's partition, which the classes of each release load; "
            "repeatable.",
        ),
    ] = None,
    tier: Annotated[str | None, typer.Option(help="Of --all: ci or nightly.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Keep the results here, a file for each system; what it has is not run again.",
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Suites side by side.")] = None,
    kafka_lib: KafkaLibOption = None,
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Drive several systems along the same models and print a matrix of their deviations."""
    use_kafka_lib(kafka_lib)
    with session("versions", as_json=as_json) as work:
        work.keep_divergences()
        if not (models or whole or log):
            raise UserError("Name models to drive the systems along, or give --all or --log.")
        given = system or (_ALL_SYSTEMS if whole else ())
        systems = list(dict.fromkeys(name for text in given for name in _names(text)))
        if not systems:
            raise UserError("--system names no system: give kafka-3.8.1,kafka-3.9.1 or the like.")
        settled = settled_tier(work.settings, tier or work.settings.tier)
        known: TierName = "nightly" if settled.name == "nightly" else "ci"
        candidates = find_models(models or (), None if models else known) if models or whole else ()
        chosen = [model for model in (each.driving() for each in candidates) if model.feeds_suite]
        if candidates and not chosen:
            raise UserError("None of these models feeds a suite: there is nothing to drive along.")
        if output is not None:
            check_folder(output)
        options = CheckOptions(jobs=jobs or work.settings.jobs, cold=cold)
        context = Context(work.settings, work.emit, options)
        store = None if output is None else _Records(output, chosen, find_tools())
        if store is not None:
            for name in systems:
                store.ask(name)
        if whole:
            for name in systems:
                _paths(context, name, store)
        loaded = {name: _logs(context, name, log, store) for name in systems} if log else {}
        cells = versions_stage(context, chosen, systems, store)
        work.header["matrix"] = _object(cells)
        tables = [_table(cells)] if cells else []
        if log:
            work.header["logs"] = {name: {**rows} for name, rows in loaded.items()}
            tables.append(_log_table(loaded))
        work.closing = "\n\n".join("\n".join(lines) for lines in tables)
        if idle := undriven(cells):
            work.extra.append(Verdict.INCONCLUSIVE)
            work.say(f"nothing was compared, since no model here drives it: {', '.join(idle)}")


def _paths(context: Context, system: str, store: _Records | None) -> None:
    """Replay the paths of a system's table, but for those of which a result was kept."""
    kept = {} if store is None else store.record(system).deviations
    results = deviations(context, system, replayed=kept)
    shown = {item.deviation.id: str(item.presence) for item in results}
    if store is not None and shown:
        store.put(msgspec.structs.replace(store.record(system), deviations={**kept, **shown}))


def _logs(
    context: Context, system: str, folders: Sequence[Path], store: _Records | None
) -> Mapping[str, str]:
    """What the system makes of each unit of these logs, with what was kept."""
    kept = {} if store is None else store.record(system).logs
    made = log_answers(context, folders, system, kept)
    if store is not None and made:
        store.put(msgspec.structs.replace(store.record(system), logs={**kept, **made}))
    return {**kept, **made}


@dataclass(frozen=True, slots=True)
class _Records:
    """The records of a folder."""

    folder: Path
    models: Sequence[Model]
    tools: Tools

    def record(self, system: str) -> ReleaseRecord:
        """What was kept of a system."""
        file = file_of(self.folder, system)
        return load(file) if file.exists() else ReleaseRecord(RECORD_SCHEMA, system, {}, {})

    def put(self, record: ReleaseRecord) -> None:
        """Keep it, before anything else is run."""
        save(self.folder, record)

    def ask(self, system: str) -> None:
        """Keep which models the system is to be driven by."""
        record = self.record(system)
        asked = tuple(sorted({*record.asked, *(model.name for model in self.models)}))
        if asked != record.asked:
            self.put(msgspec.structs.replace(record, asked=asked))

    def _key(self, name: str) -> str:
        return model_key(next(model for model in self.models if model.name == name), self.tools)

    def cell(self, trial: Trial) -> VersionCell | None:
        """The cell of an earlier run, if model and specification are what they were."""
        kept = self.record(trial.system).suites.get(trial.model)
        is_same = kept is not None and kept.key == self._key(trial.model)
        return _cell(trial, kept) if kept is not None and is_same else None

    def earlier(self, trial: Trial) -> tuple[VersionCell, str] | None:
        """The cell of an earlier run, of whatever text, and the digest of its state graph."""
        kept = self.record(trial.system).suites.get(trial.model)
        return None if kept is None else (_cell(trial, kept), kept.graph)

    def keep(self, cell: VersionCell, digest: str) -> None:
        """Keep a cell in the system's file."""
        record = self.record(cell.system)
        suite = SuiteRecord(
            answer=str(cell.answer),
            key=self._key(cell.model),
            graph=digest,
            deviations=cell.deviations,
            unexpected=cell.unexpected,
            reason=cell.reason,
            tests=cell.tests,
            steps=cell.steps,
        )
        suites = {**record.suites, cell.model: suite}
        self.put(msgspec.structs.replace(record, suites=suites))


def _cell(trial: Trial, kept: SuiteRecord) -> VersionCell:
    return VersionCell(
        trial.system,
        trial.model,
        ModelOutcome(kept.answer),
        kept.deviations,
        kept.unexpected,
        kept.reason,
        kept.tests,
        kept.steps,
    )


def _names(given: str) -> list[str]:
    """`kafka-3.8.1,3.9.0`: a bare version is one of the system before it; A..B all from A to B.

    A command may have commas of its own.
    """
    if given.startswith("exec:"):
        return [given]
    names: list[str] = []
    for name in filter(None, map(str.strip, given.split(","))):
        family = names[-1].partition("-")[0] if names and name[0].isdigit() else ""
        names += _releases(f"{family}-{name}" if family else name)
    return names


def _releases(name: str) -> Iterator[str]:
    """`kafka-4.0.0..4.1.0` is every release of Kafka between the two. UserError without any."""
    first, dots, last = name.partition("..")
    family, dash, oldest = first.partition("-")
    if not (dots and dash and oldest[:1].isdigit() and last[:1].isdigit()):
        yield name
        return
    between = [
        release
        for release in RELEASES
        if release_of(oldest) <= release_of(release) <= release_of(last)
    ]
    if not between:
        raise UserError(
            f"{name} names no release of Kafka: those that kconform knows are from {RELEASES[0]} "
            f"to {RELEASES[-1]}. Write the older one first."
        )
    yield from (f"{family}-{release}" for release in between)


def undriven(cells: Sequence[VersionCell]) -> tuple[str, ...]:
    """The systems that no model drove: nothing is known of them, so the run is no pass."""
    driven = {cell.system for cell in cells if cell.answer is not ModelOutcome.LEFT_OUT}
    return tuple(
        name for name in dict.fromkeys(cell.system for cell in cells) if name not in driven
    )


def _object(cells: Sequence[VersionCell]) -> dict[str, JsonValue]:
    """By model, by system."""
    result: dict[str, dict[str, JsonValue]] = {}
    for cell in cells:
        result.setdefault(cell.model, {})[cell.system] = {
            "answer": str(cell.answer),
            "deviations": list(cell.deviations),
            "tests": cell.tests,
            "steps": cell.steps,
        }
    return dict(result)


def _log_table(loaded: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A row for each unit of a log, a column for each system."""
    rows = [["", *loaded]]
    for name in sorted({row for answers in loaded.values() for row in answers}):
        rows.append([name, *(answers.get(name, "-") for answers in loaded.values())])
    return _aligned(rows)


def _table(cells: Sequence[VersionCell]) -> list[str]:
    """A row for each model, a column for each system; below it what was driven and agreed."""
    systems = list(dict.fromkeys(cell.system for cell in cells))
    rows = [["", *systems]]
    for model in dict.fromkeys(cell.model for cell in cells):
        shown = {cell.system: cell for cell in cells if cell.model == model}
        rows.append([model, *(shown[system].short for system in systems)])
        if any(cell.driven for cell in shown.values()):
            rows.append(["", *(shown[system].driven for system in systems)])
    return _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(w) for text, w in zip(r, widths, strict=True)).rstrip() for r in rows
    ]
