"""A Kafka client's configuration file, as far as it says how to connect.

The form is that of Java's Properties; the names are those of Kafka's clients (security.protocol,
sasl.mechanism, sasl.jaas.config, ssl.*). Other settings in it are no business of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.errors import DataError, UserError
from conformance.inputs import read_text

_SEPARATOR = re.compile(r"\s*[=:]\s*|\s+")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LOGIN = re.compile(r'(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;]+)')


def read_properties(path: Path) -> Mapping[str, str]:
    """The settings of a file. Raises UserError if it cannot be read."""
    try:
        text = read_text(path)
    except DataError as error:
        raise DataError(
            f"The client's configuration is not readable: {error} Give --wire-config a file "
            "in the form of Kafka's client.properties."
        ) from error
    return dict(_pairs(text))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in _logical_lines(text):
        # An escaped separator belongs to the key, as java.util.Properties has it.
        end = next(
            (m for m in _SEPARATOR.finditer(line) if not line[: m.start()].endswith("\\")), None
        )
        key = line if end is None else line[: end.start()]
        value = "" if end is None else line[end.end() :]
        yield _unescape(key), _unescape(value)


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments; one that ends in an odd number of backslashes goes on."""
    begun = ""
    for line in text.splitlines():
        line = begun + line.lstrip()
        if not begun and line[:1] in ("", "#", "!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        begun = line[:-1] if backslashes % 2 else ""
        if not begun:
            yield line
    if begun:
        yield begun


def _unescape(text: str) -> str:
    def letter(match: re.Match[str]) -> str:
        output = match[1]
        return chr(int(output[1:], 16)) if len(output) == 5 else _LETTERS.get(output, output)

    return _ESCAPED.sub(letter, text)


def login_of(jaas: str) -> tuple[str, str]:
    """User name and password of sasl.jaas.config. Raises UserError."""
    options = {name: _unquoted(value) for name, value in _LOGIN.findall(jaas)}
    if not {"username", "password"} <= options.keys():
        raise UserError(
            "sasl.jaas.config names no username and password. Write it as for Kafka's clients: "
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="..." password="...";'
        )
    return options["username"], options["password"]


def _unquoted(value: str) -> str:
    return _unescape(value[1:-1]) if value.startswith('"') else value
