"""Several modules, and a configuration, in one file, as SANY and TLC after 2.15 read them.

Of such a file SANY reads the module that the file is named after. The others are what its EXTENDS
and INSTANCE find where no file of that name is; the configuration stands between
`---- CONFIG Name ----` and `====`.
"""

from __future__ import annotations

import re
from pathlib import Path

from conformance.tla.errors import SpecError

_LINE = re.compile(r"[ \t]*(?:-{4,}\s*(?P<kind>MODULE|CONFIG)\s+(?P<name>\w+)\s*-{4,}|={4,})")


def further_modules(path: Path) -> dict[str, str]:
    """The texts of the file's other modules, by name; a module within a module is none."""
    parts = _parts(path.read_text(encoding="utf-8", errors="replace"))
    return {name: text for kind, name, text in parts if kind == "MODULE" and name != path.stem}


def write_further_modules(path: Path, folder: Path) -> None:
    """Each of the file's other modules as a file of its own."""
    for name, text in further_modules(path).items():
        (folder / f"{name}.tla").write_text(text, encoding="utf-8")


def config_text(path: Path) -> str:
    """The text of a configuration file, or of the configuration within a module's file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".tla":
        return text
    for kind, name, part in _parts(text):
        if kind == "CONFIG" and name == path.stem:
            lines = part.splitlines()
            return "\n".join(lines[1:-1])
    raise SpecError(
        f"{path} holds no configuration. Write it between the lines `---- CONFIG {path.stem} ----` "
        "and `====`, or name a .cfg file."
    )


def _parts(text: str) -> list[tuple[str, str, str]]:
    """Kind, name and text of what stands outermost in a file."""
    parts: list[tuple[str, str, str]] = []
    lines = text.splitlines()
    begun, depth = 0, 0
    kind, name = "", ""
    for number, line in enumerate(lines):
        match = _LINE.match(line)
        if match is None or (kind == "CONFIG" and match["kind"]):
            continue
        if match["kind"]:
            if depth == 0:
                kind, name, begun = match["kind"], match["name"], number
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                parts.append((kind, name, "\n".join(lines[begun : number + 1]) + "\n"))
                kind = ""
    return parts
