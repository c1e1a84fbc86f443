"""Reports what was found of a model: the counterexample as a file, findings, the stage's end."""

from __future__ import annotations

from pathlib import Path

from conformance.events import Emit, StageFinished, Work
from conformance.modelcheck.manifest import reference
from conformance.modelcheck.result import CheckResult
from conformance.story import itf
from conformance.tla import Json

STAGE = "check"


def report(result: CheckResult, emit: Emit, keep: Path | None = None, *work: Work) -> None:
    """Emit the result's findings and the end of its stage; they name the file that was kept.

    `keep` is the folder for counterexamples, those of models that must fail too. `work` says which
    worker was at it when.
    """
    file = str(_kept(result, keep)) if keep is not None and result.outcome.steps else ""
    for finding in result.findings(file):
        emit(finding)
    emit(
        StageFinished(
            STAGE,
            result.model.name,
            result.verdict,
            result.seconds,
            result.summary(),
            result.to_json(),
            exhibit=None if result.problems else result.exhibit(),
            work=work,
        )
    )


def _kept(result: CheckResult, folder: Path) -> Path:
    """Write the counterexample; `kconform story` shows it."""
    says: dict[str, Json] = {
        "model": reference(result.model),
        "key": result.outcome.is_broken(),
    }
    path = itf.file_in(folder, result.model.name)
    itf.keep(path, result.outcome.behaviour(), says)
    return path
