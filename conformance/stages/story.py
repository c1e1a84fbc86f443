"""Stories of files: an ITF file's behaviour as text, as a drawing, or as a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import DataError, UserError
from conformance.inputs import read_text
from conformance.kafka.jars import KafkaJars
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.pictures import picture_of
from conformance.story.behaviour import Behaviour
from conformance.story.itf import about, behaviour_of
from conformance.story.picture import Picture
from conformance.systems.kafka.factory import KafkaFactory
from conformance.systems.kafka.junit import junit_test
from conformance.systems.wire.script import script
from conformance.tla import load_trace


@dataclass(frozen=True, slots=True)
class StoryFile:
    """A file's behaviour, its picture, and what it was called."""

    behaviour: Behaviour
    picture: Picture | None
    title: str
    constants: Mapping[str, str]
    """Of the model, as the file names them."""


def read_story(path: Path, model: str | None = None) -> StoryFile:
    """Read an ITF file; the picture is that of `model`, else of the model that the file names.

    DataError if the file is none. A model that is not here any more costs the picture only.
    """
    text = read_text(path)
    try:
        trace = load_trace(text)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if not trace.states:
        raise DataError(f"{path} holds no state: there is nothing to tell.")
    meta = about(trace)
    named = str(meta.get("model", ""))
    title = ": ".join(filter(None, [named or path.name, str(meta.get("key", ""))]))
    constants = meta.get("constants")
    words = constants.items() if isinstance(constants, Mapping) else ()
    return StoryFile(
        behaviour_of(trace),
        _picture(model, named),
        title,
        {str(name): str(value) for name, value in words},
    )


def junit_of(path: Path, story: StoryFile, jars: KafkaJars) -> str:
    """A JUnit test of the file's behaviour, for the release of these jars (systems/kafka/junit).

    A path of Kafka's table of deviations is told with the table's words. UserError if the file
    is no departure of Kafka's classes, or the release is too old.
    """
    known = KafkaFactory(jars.version, client=jars.version).deviations()  # the client's, too
    deviation = next((item for item in known if item.path == path.name), None)
    return junit_test(story.behaviour, story.constants, jars, deviation)


def script_of(story: StoryFile) -> str:
    """A script of raw requests to a broker at its port (systems/wire/script).

    UserError if the file is no departure that is seen there.
    """
    return script(story.behaviour, story.constants, story.title)


def _picture(wanted: str | None, named: str) -> Picture | None:
    if wanted is not None:
        return picture_of(_model_named(wanted))
    try:
        return picture_of(_model_named(named)) if named else None
    except UserError:
        return None


def _model_named(name: str) -> Model:
    models = find_models([name])
    if len(models) != 1:
        raise UserError(f"{name} names {len(models)} models. Name one of them with --model.")
    return models[0]
