"""kconform story: one behaviour, told or drawn, for a bug report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import KafkaLibOption
from conformance.cli.session import session
from conformance.errors import CommandEnded, ExitCode, UserError
from conformance.files import check_file, written_aside
from conformance.kafka.jars import NEWEST, chosen_jars
from conformance.report import page
from conformance.report.text import printable
from conformance.stages.story import StoryFile, junit_of, read_story, script_of
from conformance.story.behaviour import end_lines, step_lines
from conformance.story.exhibit import exhibit
from conformance.story.scene import scene_of
from conformance.story.svg import standalone


def story(
    file: Annotated[Path, typer.Argument(help="An ITF file: a divergence, a counterexample.")],
    svg: Annotated[bool, typer.Option("--svg", help="Draw it: a space-time diagram.")] = False,
    html: Annotated[bool, typer.Option("--html", help="A page with a slider.")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="Whose picture to use (docs/pictures.md).",
            show_default="the file's",
            autocompletion=model_names,
        ),
    ] = None,
    junit: Annotated[
        bool, typer.Option("--junit", help="A JUnit test of Kafka's own classes.")
    ] = False,
    script: Annotated[
        bool, typer.Option("--script", help="A Python script of requests to a broker's port.")
    ] = False,
    kafka: Annotated[
        str | None,
        typer.Option(help="Of --junit: the release.", show_default=NEWEST),
    ] = None,
    kafka_lib: KafkaLibOption = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write here.", show_default="standard output"),
    ] = None,
) -> None:
    """Tell or draw the behaviour of an ITF file: a divergence, a counterexample.

    --junit writes a divergence of Kafka's classes as a test that needs nothing of kconform,
    --script that of a broker at its port as a script that needs nothing but kio.
    """
    with session("story", as_json=False):
        if svg + html + junit + script > 1:
            raise UserError("Give one of --svg, --html, --junit and --script.")
        if not junit and (kafka or kafka_lib):
            raise UserError(
                "--kafka and --kafka-lib say whose classes --junit is for: give it, too."
            )
        if output is not None:
            check_file(output)
        story_file = read_story(file, model)
        if junit:
            text = junit_of(file, story_file, chosen_jars(kafka, kafka_lib))
        elif script:
            text = script_of(story_file)
        else:
            text = _drawn(story_file, as_page=html) if svg or html else _text(story_file)
        if output is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            with written_aside(output) as aside:
                aside.write_text(text, encoding="utf-8")
        raise CommandEnded(ExitCode.PASS)


def _drawn(story_file: StoryFile, *, as_page: bool) -> str:
    behaviour = story_file.behaviour
    if as_page:
        return page.behaviour_page(
            exhibit(behaviour, story_file.picture, story_file.title), story_file.title
        )
    return standalone(
        scene_of(behaviour, story_file.picture), story_file.title, end_lines(behaviour)
    )


def _text(story_file: StoryFile) -> str:
    behaviour = story_file.behaviour
    shown = (story_file.title, *step_lines(behaviour), *end_lines(behaviour))
    return "".join(f"{printable(line)}\n" for line in shown)
