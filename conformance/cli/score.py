"""kconform score: which areas of the protocols a broker, a release or a client gets right."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from conformance.cli.client import client
from conformance.cli.completion import system_names
from conformance.cli.gate import gate
from conformance.cli.options import (
    ApiVersionOption,
    DeviationsOption,
    JsonOption,
    KafkaLibOption,
    SeedOption,
    SystemOptions,
)
from conformance.cli.session import CommandSession, session
from conformance.conversion import convert
from conformance.errors import CommandEnded, DataError, ExitCode, UserError
from conformance.events import JsonValue, StageFinished, StageStarted
from conformance.files import check_folder, written_aside
from conformance.inputs import read_text
from conformance.registry import factory_path
from conformance.report import card as cards
from conformance.report.card import ScoreCard
from conformance.stages.score import card_of
from conformance.tla import load_json

_CLIENT = "client:"
_LONGEST = 80
"""Characters of a folder's name that tell the subject."""


def score(
    subjects: Annotated[
        list[str],
        typer.Argument(
            help="Systems, as of gate --system; client:COMMAND; or report.json or card.json files.",
            autocompletion=system_names,
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the cards, and for the runs.")
    ] = Path("card"),
    model: Annotated[
        list[str] | None, typer.Option("--model", help="Drive these models' suites only.")
    ] = None,
    tier: Annotated[str | None, typer.Option(help="ci or nightly.")] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.1, help="As of gate: only suites that take so long.")
    ] = None,
    traces: Annotated[
        int | None, typer.Option(min=1, help="As of gate: traces to record in all.")
    ] = None,
    examples: Annotated[int, typer.Option(min=1, help="Of a client: number of examples.")] = 100,
    variant: Annotated[str, typer.Option(help="Of a client: java, librdkafka.")] = "java",
    deviations: DeviationsOption = None,
    api_version: ApiVersionOption = None,
    kafka_lib: KafkaLibOption = None,
    seed: SeedOption = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Say what stands otherwise in the second card.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Drive a system along every suite that it can take, and make a score card of the result.

    The card is written as card.md, card.json, card.html and badge.svg.
    """

    def run(subject: str, folder: Path) -> None:
        if subject.startswith(_CLIENT):
            client(
                subject.removeprefix(_CLIENT),
                examples=examples,
                variant=variant,
                seed=seed,
                deviations=None if deviations is None else Path(deviations),
                report=folder,
            )
        gate(
            model,
            system=subject,
            tier=tier,
            minutes=minutes,
            traces=traces,
            seed=seed,
            output=folder,
            kafka_lib=kafka_lib,
            api_version=api_version,
            deviations=deviations,
        )

    with session("score", as_json=as_json) as work:
        if compare and len(subjects) != 2:
            raise UserError("--compare takes two cards: kconform score --compare A/card.json B.")
        check_folder(output)
        options = SystemOptions(api_version, None, None, None, deviations)
        made = [_card(work, subject, output, run, options) for subject in subjects]
        _write(work, output, made)
        if compare:
            _compare(work, made)


def _card(
    work: CommandSession,
    subject: str,
    output: Path,
    run: Callable[[str, Path], None],
    options: SystemOptions,
) -> ScoreCard:
    """A subject's card: read, made of a report, or made of a run."""
    file = Path(subject) / "card.json" if Path(subject).is_dir() else Path(subject)
    if file.suffix == ".json":
        return _read(work, file)
    folder = output / "runs" / _slug(subject)
    try:
        run(subject, folder)
    except CommandEnded as ended:
        if ended.code in (ExitCode.USAGE, ExitCode.INTERRUPTED, ExitCode.INTERNAL):
            raise
    return card_of(folder / "report.json", _factory(work, options.name(subject)))


def _slug(subject: str) -> str:
    """The name of the subject's folder; a client's command may be longer than a name can be."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", subject).strip("-")
    if len(slug) <= _LONGEST:
        return slug
    return f"{slug[:_LONGEST]}-{hashlib.sha256(subject.encode()).hexdigest()[:8]}"


def _factory(work: CommandSession, system: str | None) -> str:
    if system is None or system.startswith(_CLIENT):
        return ""
    return factory_path(system, work.settings.systems)


def _read(work: CommandSession, file: Path) -> ScoreCard:
    text = read_text(file)
    try:
        return cards.load(text)
    except (msgspec.MsgspecError, DataError) as error:
        refused = DataError(f"{file} is neither a card.json nor a report.json: {error}.")
    try:
        named = convert(load_json(text), _Named)
    except (msgspec.MsgspecError, DataError):
        raise refused from None
    if named.areas is not None:
        raise refused
    factory = ""
    with suppress(UserError):  # the run was another machine's, where this system has a name
        factory = _factory(work, named.system or None)
    return card_of(file, factory)


class _Named(msgspec.Struct):
    """What of a report is needed to find the table of its system; a card has areas."""

    areas: object = None
    system: str = ""


def _write(work: CommandSession, output: Path, made: Sequence[ScoreCard]) -> None:
    """The files; of several cards those of one card lie in folders of their own."""
    for number, whole in enumerate(made, 1):
        folder = output if len(made) == 1 else output / str(number)
        card = cards.relative_to(whole, folder)
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            "card.md": cards.markdown(card),
            "card.json": cards.dumps(card),
            "badge.svg": cards.badge_of(card),
        }
        for name, text in texts.items():
            _save(folder / name, text)
        work.emit(StageStarted("score", card.system))
        figures: dict[str, JsonValue] = msgspec.json.decode(cards.dumps(card))
        work.emit(StageFinished("score", card.system, card.verdict, 0.0, card.score, figures))
    _save(output / "card.html", cards.page([cards.relative_to(card, output) for card in made]))
    work.closing = f"cards: {output}"


def _save(path: Path, text: str) -> None:
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="backslashreplace")


def _compare(work: CommandSession, made: Sequence[ScoreCard]) -> None:
    lines = cards.changes(*made)
    work.header["changes"] = list(lines)
    work.closing = "\n".join([*(lines or ["nothing stands otherwise"]), work.closing])
