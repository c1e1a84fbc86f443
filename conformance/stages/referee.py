"""Stage `referee`: TLC judges a sample of a store, and must agree with the audit."""

from __future__ import annotations

from pathlib import Path

from conformance.audit.referee import STAGE as REFEREE
from conformance.audit.referee import RefereeResult
from conformance.audit.referee import referee as run_referee
from conformance.errors import UserError
from conformance.stages.context import (
    Context,
    stage,
)
from conformance.stages.subject import AuditedStore
from conformance.tla import find_tools


def referee(
    context: Context, subject: AuditedStore, listing: Path, *, traces: int
) -> RefereeResult:
    """Have TLC judge a sample of the store, and compare; `listing` is what the audit wrote.

    UserError of a store whose traces may begin anywhere: TLC holds each against Init.
    """
    if subject.store.manifest.identity.begins_anywhere:
        raise UserError(
            f"The traces of {subject.store.path} may begin in any state, and the referee holds "
            "each trace against the initial states. Audit the store without --referee."
        )
    with stage(context, REFEREE, subject.prepared.model.name, traces) as outcome:
        result = run_referee(
            subject.store,
            subject.prepared,
            listing,
            count=traces,
            seed=context.seed,
            tools=context.check.tools or find_tools(),
            options=context.check.tlc,
        )
        for finding in result.disagreements:
            context.emit(finding)
        outcome.verdict, outcome.summary = result.verdict, result.summary()
        outcome.figures, outcome.fault = result.figures(), bool(result.disagreements)
    return result
