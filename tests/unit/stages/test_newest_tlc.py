"""KCONFORM_TLC=newest: the repository's jar takes the place of the default, or a paragraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from conformance.errors import EnvironmentProblem, UserError
from conformance.kafka.maven import Coordinate, NotInRepository, Tell
from conformance.stages import newest_tlc
from conformance.stages.newest_tlc import use_newest_tlc

JAR = Path("cache") / "tla2tools-1.9.0.jar"


def serving(*answers: Path | Exception) -> object:
    """A resolver that gives these jars, or raises."""

    def resolve(
        _name: str, coordinates: Sequence[Coordinate], *, tell: Tell, environ: Mapping[str, str]
    ) -> tuple[Path, ...]:
        assert [str(each) for each in coordinates] == ["org.lamport:tla2tools:latest.release"]
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return tuple(answer for answer in answers if isinstance(answer, Path))

    return resolve


def test_nothing_is_fetched_unless_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest_tlc, "maven_jars", serving(AssertionError("nobody asked")))
    environ: dict[str, str] = {}

    use_newest_tlc(environ)

    assert environ == {}


def test_the_jar_of_the_repository_is_the_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest_tlc, "maven_jars", serving(Path("cache/gson-2.9.1.jar"), JAR))
    environ = {"KCONFORM_TLC": "newest"}

    use_newest_tlc(environ)

    assert environ["TLA2TOOLS_JAR"] == str(JAR)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (NotInRepository("use --kafka-lib"), "The Maven repository has no org.lamport:tla2tools."),
        (EnvironmentProblem("No network."), "No network."),
    ],
)
def test_a_repository_without_it_is_a_paragraph(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, words: str
) -> None:
    monkeypatch.setattr(newest_tlc, "maven_jars", serving(problem))

    with pytest.raises(EnvironmentProblem) as raised:
        use_newest_tlc({"KCONFORM_TLC": "newest"})

    assert words in str(raised.value)
    assert "--kafka-lib" not in str(raised.value)
    assert "name a tla2tools.jar that you have in TLA2TOOLS_JAR" in str(raised.value)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"KCONFORM_TLC": "1.8"}, "Set it to `newest`"),
        ({"KCONFORM_TLC": "newest", "TLA2TOOLS_JAR": "a.jar"}, "Unset one of them"),
    ],
)
def test_what_says_two_things_is_refused(environ: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        use_newest_tlc(environ)
