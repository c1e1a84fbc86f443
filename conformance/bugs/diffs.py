"""Applies a unified diff to a copy of the implementation; hunks may have moved."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import patch_ng

from conformance.errors import UserError
from conformance.inputs import read_text

_NOTHING = "/dev/null"
_HUNK = re.compile(r"^@@", re.MULTILINE)
_BINARY = re.compile(
    r"^diff --git \S+ (?P<git>\S+)\n(?:(?!diff --git ).*\n)*?GIT binary patch$"
    r"|^Binary files \S+ and (?P<other>\S+) differ$",
    re.MULTILINE,
)
_TESTS = "tests"
"""Their folders are named after what they test: tests/unit/impl is none of the package's."""


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines that stand at `line` (from 0) of the file that the diff was made of."""

    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]

    def place(self, lines: Sequence[str], moved: int) -> int | None:
        """Where the old lines stand: at their line, else nearest to it; None if they do not."""
        length, expected = len(self.old), self.line + moved
        places = [
            place
            for place in range(len(lines) - length + 1)
            if tuple(lines[place : place + length]) == self.old
        ]
        return min(places, key=lambda place: abs(place - expected), default=None)


def apply_diff(diff: Path, folder: Path, package: str) -> None:
    """Change the package in `folder` as the diff says; what it says of other files is left out.

    UserError if it is no unified diff, is damaged, changes no file of the package, or does not fit
    the files that are there.
    """
    changes = 0
    for item in _parsed(diff, package):
        source = _inside(item.source, package)
        target = _inside(item.target, package)
        if source is None and target is None:
            continue
        changes += 1
        before = "" if source is None else _text(diff, folder, source)
        after = _changed(diff, str(source or target), before, [_hunk(part) for part in item.hunks])
        if target is None and after:
            raise UserError(
                f"{diff} does not apply: it removes {source}, which has other lines than the diff "
                "says in this version."
            )
        if source is not None and source != target:
            (folder / source).unlink()
        if target is not None:
            _write(diff, folder / target, after, new=source != target)
    if not changes:
        raise UserError(
            f"{diff} changes nothing in {package}/: its paths name no file below a folder "
            f"{package}/. Make it with `git diff` in a checkout."
        )


def _parsed(diff: Path, package: str) -> Sequence[patch_ng.Patch]:
    """Its files. The parser skips a hunk with a damaged header and whatever is binary: then what is
    left is another change than the diff's."""
    text = read_text(diff)
    parsed = patch_ng.fromstring(text.encode())
    if not parsed or not parsed.items:
        raise UserError(f"{diff} is no unified diff. Make it with `git diff` in a checkout.")
    hunks, headers = sum(len(item.hunks) for item in parsed.items), len(_HUNK.findall(text))
    if hunks != headers:
        raise UserError(
            f"{diff} is damaged: {headers} of its lines begin a hunk (@@), and {hunks} of them can "
            "be read. Make it again with `git diff` in a checkout."
        )
    for binary in _BINARY.finditer(text):
        name = binary["git"] or binary["other"]
        if _inside(name.encode(), package) is not None:
            raise UserError(
                f"{diff} changes {name} as a binary file, which cannot be applied. Make it with "
                "`git diff --text`, or leave this file out."
            )
    return list(parsed.items)


def _write(diff: Path, path: Path, text: str, *, new: bool) -> None:
    if new and path.exists():
        raise UserError(
            f"{diff} does not apply: it makes {path.name} as a new file, and this version has it. "
            "Has it been applied already?"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _inside(path: bytes, package: str) -> PurePosixPath | None:
    """The file below the package's folder, however the diff calls what is above it."""
    name = path.decode()
    parts = PurePosixPath(name).parts
    if name == _NOTHING or package not in parts[:-1]:
        return None
    if _TESTS in parts[: parts.index(package)]:
        return None
    return PurePosixPath(*parts[parts.index(package) :])


def _text(diff: Path, folder: Path, file: PurePosixPath) -> str:
    path = folder / file
    if not path.is_file():
        raise UserError(
            f"{diff} does not apply: it changes {file}, and there is no such file in this version."
        )
    return path.read_text(encoding="utf-8")


def _hunk(parsed: patch_ng.Hunk) -> _Hunk:
    lines = [line.decode().rstrip("\r\n") for line in parsed.text]
    old = tuple(line[1:] for line in lines if not line or line[0] in " -")
    new = tuple(line[1:] for line in lines if not line or line[0] in " +")
    return _Hunk(max(0, parsed.startsrc - 1), old, new)


def _changed(diff: Path, file: str, text: str, hunks: Sequence[_Hunk]) -> str:
    lines, moved = text.splitlines(), 0
    for hunk in hunks:
        place = hunk.place(lines, moved)
        if place is None:
            first = next((line.strip() for line in hunk.old if line.strip()), "")
            raise UserError(
                f"{diff} does not apply to {file}: the lines of its hunk at line {hunk.line + 1}, "
                f"which begin with `{first}`, stand nowhere in this file. The diff is of another "
                "version. Make it with `git diff` in a checkout of this version."
            )
        lines[place : place + len(hunk.old)] = hunk.new
        moved = place - hunk.line + len(hunk.new) - len(hunk.old)
    return "".join(f"{line}\n" for line in lines)
