"""Survivors that have a reason: mutants that nobody could tell from the implementation."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from conformance import toml
from conformance.bugs.mutants import Mutant
from conformance.errors import UserError

FILE = Path(__file__).with_name("survivors.toml")


class Survivor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a line of text, and why it shows nowhere."""

    file: str
    function: str
    """The innermost one that the change is in, without its class."""
    line: str
    """The source line that the change begins in, without its indentation."""
    kind: str
    new: str
    """What the change puts in; of a lock, the first line of what it guards."""
    reason: str


class _Survivors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    survivor: tuple[Survivor, ...] = ()


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reasons by change. The line's number does not matter, its text does."""

    by_change: Mapping[tuple[str, ...], str]

    def of(self, mutant: Mutant, text: str) -> str:
        """Why the mutant of this file's text shows nowhere; empty if nothing is known."""
        line = text.splitlines()[mutant.line - 1].strip()
        function = function_at(text, mutant.line)
        change = (mutant.file, function, line, mutant.kind, mutant.texts[1])
        return self.by_change.get(change, "")


def function_at(text: str, line: int) -> str:
    """The innermost function that the line is in; empty outside of any."""
    around = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno).name if around else ""


def read_survivors(path: Path = FILE) -> Reasons:
    """Those in the file; UserError if it is damaged."""
    try:
        read = toml.decode(path.read_bytes(), _Survivors)
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{path} is no list of survivors: {error}.") from error
    return Reasons(
        {
            (
                survivor.file,
                survivor.function,
                survivor.line,
                survivor.kind,
                _plain(survivor.new),
            ): survivor.reason
            for survivor in read.survivor
        }
    )


def _plain(text: str) -> str:
    return " ".join(text.split())
