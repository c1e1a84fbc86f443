"""Operators of the community modules: our definitions, and what TLC's own code makes of them.

TLC computes many operators of the community modules in Java, and not always as their definitions
say: a fold has an order, a subsequence counts from the beginning of the whole. The table is
`community.txt`, of the form of `formulas.txt`. `python -m tests.differential.tla.community` asks
TLC with our definitions; `... community FOLDER CLASSPATH` asks the TLC of that class path with the
community modules in that folder and the Java code for them in the class path (nothing of it is in
this repository). Exit code 1 if a line differs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from conformance.modelcheck.tlc import Processes, TlcJob, TlcOptions, run_tlc
from conformance.tla import Spec, Tools, bind, find_tools, load_module, parse_config
from tests.differential.tla import formulas
from tests.differential.tla.against_tlc import Workspace, write_workspace

TABLE = "community.txt"
_HEAD = """---- MODULE CommunityFormulas ----
EXTENDS Integers, Sequences, FiniteSets, Bags, TLC, TLCExt, SequencesExt, FiniteSetsExt, Functions,
        BagsExt, UndirectedGraphs, Bitwise, Folds
VARIABLE state
Init == state = 0
Next == UNCHANGED state
"""
_CONFIG = "INIT Init\nNEXT Next\n"


def _write(folder: Path, texts: Sequence[str], invariants: Sequence[int] = ()) -> Workspace:
    definitions = [f"{formulas.name(i)} == {text}" for i, text in enumerate(texts)]
    checked = [f"INVARIANT {formulas.name(i)}" for i in invariants]
    text = "\n".join([_HEAD, *definitions, "====", ""])
    return write_workspace(folder, "CommunityFormulas", text, "\n".join([_CONFIG, *checked, ""]))


def bound(folder: Path, texts: Sequence[str]) -> Spec:
    """The formulas for our evaluator."""
    return bind(load_module(_write(folder, texts).module), parse_config(_CONFIG))


def outcome(texts: Sequence[str], tools: Tools, search: tuple[Path, ...]) -> str:
    """pass if all hold; fail if one is violated first, error if one has no value first."""
    with tempfile.TemporaryDirectory() as folder, Processes() as processes:
        workspace = _write(Path(folder), texts, range(len(texts)))
        job = TlcJob(workspace.module, workspace.config, search, short=True)
        result = run_tlc(job, tools, TlcOptions(), processes, lambda _generated, _distinct: None)
    if result.exit_code == 0:
        return "pass"
    return "fail" if result.transcript.violation is not None else "error"


def main(arguments: Sequence[str]) -> int:
    """Compare the table with TLC; 1 if a line differs."""
    tools, search = find_tools(), tuple[Path, ...]()
    if arguments:
        folder, classpath = arguments
        tools, search = replace(tools, jar=Path(classpath)), (Path(folder),)
    return formulas.compare(formulas.read(TABLE), partial(outcome, tools=tools, search=search))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
