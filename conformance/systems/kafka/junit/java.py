"""Java sources from templates: parts for a release or a test, and imports as its jars have them.

A template is Java with lines `//@ before 4.2`, `//@ from 4.2`, `//@ when PART`,
`//@ unless PART` and `//@ end` around what not every test has; they nest. Its imports name the
classes as the newest release has them: a class that another release keeps elsewhere is found by
its own name.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from string import Template

from conformance.errors import UserError
from conformance.kafka.jars import KafkaJars

_PRAGMA = re.compile(r"\s*//@ (before|from|when|unless|end) ?(\S*)$")
_IMPORT = re.compile(r"import ([\w.]+\.(\w+));$")
_KAFKA = re.compile(r"(kafka|org/apache/kafka)/[\w/]+\.class")


def rendered(template: Path, values: Mapping[str, str], parts: Set[str], jars: KafkaJars) -> str:
    """The source of a test: `values` by placeholder, `parts` that `when` asks for."""
    kept = _kept(template.read_text(encoding="utf-8").splitlines(), parts, jars.release)
    return _imported(Template("\n".join(kept) + "\n").substitute(values), jars)


def _kept(lines: Iterable[str], parts: Set[str], release: tuple[int, ...]) -> Iterator[str]:
    shown = [True]
    alternative: list[str] = [""]
    for line in lines:
        pragma = _PRAGMA.match(line)
        if pragma is None:
            if all(shown):
                yield line
            continue
        word, subject = pragma[1], pragma[2]
        if word == "end" or (word == "from" and alternative[-1] == "before"):
            shown.pop()
            alternative.pop()
        if word != "end":
            shown.append(_holds(word, subject, parts, release))
            alternative.append(word)


def _holds(word: str, subject: str, parts: Set[str], release: tuple[int, ...]) -> bool:
    if word in ("when", "unless"):
        return (subject in parts) is (word == "when")
    number = tuple(map(int, subject.split(".")))
    return (release >= number) is (word == "from")


def _imported(source: str, jars: KafkaJars) -> str:
    """Imports that nothing uses are left out; the others name the class where it is."""
    lines = source.splitlines()
    used = set(re.findall(r"\w+", "\n".join(line for line in lines if not _IMPORT.match(line))))
    own = re.search(r"^package ([\w.]+);", source, re.MULTILINE)
    imports = {
        f"import {place};"
        for match in filter(None, map(_IMPORT.match, lines))
        if match[2] in used
        for place in [_place(match[1], match[2], jars)]
        if own is None or place.rpartition(".")[0] != own[1]
    }
    first = next(number for number, line in enumerate(lines) if _IMPORT.match(line))
    rest = [line for line in lines[first:] if not _IMPORT.match(line)]
    text = "\n".join([*lines[:first], *sorted(imports), *rest]) + "\n"
    return re.sub(r"\n\n+( *\})", r"\n\1", re.sub(r"\n{3,}", "\n\n", text))


def _place(place: str, name: str, jars: KafkaJars) -> str:
    """Where a class of this name is among the jars; UserError if that is not one place."""
    if not place.startswith(("kafka.", "org.apache.kafka.")):
        return place
    places = _classes(jars.classpath).get(name, frozenset())
    if place in places:
        return place
    if len(places) != 1:
        raise UserError(
            f"Kafka {jars.version} has {len(places)} classes {name}: no JUnit test can be written "
            "for it. Name another release with --kafka."
        )
    return next(iter(places))


@cache
def _classes(classpath: tuple[Path, ...]) -> Mapping[str, frozenset[str]]:
    """By its simple name, where a class of Kafka's is; nested ones are left out."""
    places: dict[str, set[str]] = {}
    for jar in classpath:
        if not jar.name.startswith("kafka"):
            continue
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if _KAFKA.fullmatch(entry):
                    place = entry.removesuffix(".class").replace("/", ".")
                    places.setdefault(place.rpartition(".")[2], set()).add(place)
    return {name: frozenset(where) for name, where in places.items()}


def text(words: str) -> str:
    """Words within a Java string."""
    return words.replace("\\", "\\\\").replace('"', '\\"')
