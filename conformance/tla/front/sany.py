"""Runs SANY, TLA+'s own parser, and hands its XML or its complaint to the caller."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from conformance.tla.errors import EnvironmentProblem, SpecError
from conformance.tla.front.monolith import write_further_modules
from conformance.tla.front.tools import Tools

COMMUNITY_MODULES = Path(__file__).resolve().parents[1] / "modules"
"""Our own definitions of the community modules' operators (SequencesExt, ...)."""

PROOF_MODULES = COMMUNITY_MODULES / "proofs"
"""The names that modules with proofs take from the proof system's library. Proofs are read only."""

OWN_MODULES = (COMMUNITY_MODULES, PROOF_MODULES)

_NOISE = re.compile(
    r"^(\*{6} SANY2.*|Parsing file .*|Semantic (processing|errors).*|Residual stack trace.*|"
    r"Fatal errors while parsing.*|tla2sany\.semantic\.AbortException|\*\*\* .*|"
    r"(Could not parse|Linting of) module .*|.* starting at line \d+, column \d+\.|In module \S+)?$"
)

_BEGUN = re.compile(r"SANY2|Parsing file")
"""What it prints before anything else, in all versions."""
_CULPRIT = re.compile(r"Could not parse module (\w+) from file|, col \d+ of module (\w+)")


def library_path(module: Path, search: Iterable[Path]) -> str:
    """The value of TLA-Library that has the module's own folder, `search` and ours.

    SpecError for a folder whose name has the sign that stands between two folders of a path.
    """
    folders = [str(folder) for folder in _folders(module, search)]
    for folder in folders:
        if os.pathsep in folder:
            raise SpecError(
                f"The TLA+ tools cannot read modules in {folder}: they take {os.pathsep!r} for the "
                "end of a folder's name. Rename the folder, or copy the modules elsewhere."
            )
    return os.pathsep.join(folders)


def _folders(module: Path, search: Iterable[Path]) -> list[Path]:
    return [module.resolve().parent, *(path.resolve() for path in search), *OWN_MODULES]


_LARGEST = 5_000_000
"""Bytes of a module that is parsed: the largest known ones have some hundred thousand."""


def check_size(module: Path) -> None:
    """SpecError for a module that SANY would read for minutes."""
    size = module.stat().st_size
    if size > _LARGEST:
        raise SpecError(
            f"{module} has {size:,} bytes. A module of more than {_LARGEST:,} bytes is not parsed: "
            "it would take minutes. Give a smaller one."
        )


def export_xml(module: Path, tools: Tools, search: Iterable[Path] = ()) -> bytes:
    """The XML of a module and all it needs; SpecError with SANY's message if it does not parse."""
    if not module.is_file():
        raise SpecError(f"There is no TLA+ module {module}. Name an existing .tla file.")
    check_size(module)
    with tempfile.TemporaryDirectory(prefix="sany-") as scratch:
        write_further_modules(module, Path(scratch))
        search = (*search, Path(scratch))
        # SANY unpacks its standard modules into java.io.tmpdir: shared, two runs would collide.
        jvm = (
            f"-Djava.io.tmpdir={scratch}",
            f"-DTLA-Library={library_path(module, search)}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dfile.encoding=UTF-8",
            "-Dstdout.encoding=UTF-8",
        )
        # The exporter, unlike SANY and TLC, ignores TLA-Library.
        paths = [word for folder in _folders(module, search) for word in ("-I", str(folder))]
        exported = _run(tools, "tla2sany.xml.XMLExporter", ["-o", *paths, module.name], jvm, module)
        start = exported.stdout.find(b"<?xml")
        # Of some semantic errors the exporter only tells, and writes the module all the same.
        if exported.returncode == 0 and start >= 0 and b"*** Errors:" not in exported.stderr:
            return exported.stdout[start:]
        # The exporter keeps the parser's reasons to itself; the parser's own main prints them.
        parsed = _run(tools, "tla2sany.SANY", [module.name], jvm, module)
    text = (parsed.stdout + parsed.stderr).decode(errors="replace")
    if not _BEGUN.search(text):
        raise EnvironmentProblem(
            f"SANY does not run: {tools.java} with {tools.jar} prints "
            f"{text.strip()[-500:] or 'nothing'}. Name the jar of the TLA+ tools in TLA2TOOLS_JAR, "
            "and a Java that runs it in JAVA_HOME or on PATH."
        )
    complaint = _complaint(text) or exported.stderr.decode(errors="replace").strip()[-2000:]
    culprit = _culprit(text, module, search)
    raise SpecError(f"{culprit} does not parse. SANY says: {complaint}")


def _run(
    tools: Tools, main: str, args: list[str], jvm: tuple[str, ...], module: Path
) -> subprocess.CompletedProcess[bytes]:
    command = tools.command(main, *args, jvm=jvm)
    return subprocess.run(command, cwd=module.resolve().parent, capture_output=True, check=False)


def _culprit(output: str, module: Path, search: Iterable[Path]) -> Path:
    """The file that SANY cannot read: the module's own, or that of one which it extends."""
    named = _CULPRIT.search(output)
    name = f"{named.group(1) or named.group(2)}.tla" if named else module.name
    paths = (folder / name for folder in _folders(module, search))
    return module if name == module.name else next(filter(Path.is_file, paths), module)


def _complaint(output: str) -> str:
    lines = (line.strip() for line in output.splitlines())
    return "\n".join(dict.fromkeys(line for line in lines if not _NOISE.match(line)))
