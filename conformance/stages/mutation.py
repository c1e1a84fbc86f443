"""Stage `mutation`: how well the tests hold the code that decides, as last measured."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

import conformance
from conformance.conversion import convert
from conformance.errors import DataError
from conformance.printable import counted
from conformance.stages.context import Context, stage
from conformance.tla import load_json
from conformance.verdict import Verdict

FILE = "mutation.json"


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What `tox run -e mutation` writes; docs/mutation.md tells how it is measured.

    `digest` is of the text of `modules`: a score says nothing of another text.
    """

    schema_version: int
    tool: str
    modules: list[str]
    digest: str
    mutants: int
    noticed: int
    explained: int
    unexplained: int


def mutation(context: Context, output: Path) -> None:
    """Tell the score in the folder of the reports, if there is one.

    INCONCLUSIVE if a mutant survived without a reason, or if the score is of another text.
    DataError if the file cannot be read.
    """
    path = output / FILE
    if not path.exists():
        return
    with stage(context, "mutation", FILE) as outcome:
        score = _read(path)
        outcome.summary = (
            f"{counted(score.mutants, 'mutant')} of {counted(len(score.modules), 'module')}: "
            f"{score.noticed:,} "
            f"noticed by tests, {score.explained:,} equivalent or harmless"
        )
        outcome.verdict = Verdict.PASS if score.mutants else Verdict.INCONCLUSIVE
        if score.unexplained:
            outcome.verdict = Verdict.INCONCLUSIVE
            outcome.summary += f", {score.unexplained:,} survived"
        if score.digest != digest(score.modules):
            outcome.verdict = Verdict.INCONCLUSIVE
            outcome.summary += "; of another text of these modules: measure again, or remove it"
        outcome.figures = {
            "mutants": score.mutants,
            "noticed": score.noticed,
            "explained": score.explained,
            "unexplained": score.unexplained,
            "modules": list(score.modules),
            "tool": score.tool,
        }


def _read(path: Path) -> Score:
    try:
        return convert(load_json(path.read_bytes()), Score)
    except (OSError, msgspec.MsgspecError, DataError) as error:
        raise DataError(
            f"{path} is not a mutation score: {error}. Measure it again with `tox run -e "
            "mutation`, or remove it."
        ) from error


def digest(modules: Sequence[str]) -> str:
    """SHA-256 of the text of modules, given by their paths as the checkout has them."""
    root, text = Path(conformance.__file__).parents[1], hashlib.sha256()
    for module in sorted(modules):
        source = root / module
        text.update(source.read_bytes() if source.is_file() else b"")
    return text.hexdigest()
