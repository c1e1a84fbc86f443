"""Stage `import`: what a foreign implementation wrote, into a store that the audit judges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.audit.explain import EvaluatedSpec
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import prepare
from conformance.stages.context import Context, stage
from conformance.stages.identity import FOREIGN, identity
from conformance.tla import find_tools
from conformance.traces.importing import ImportResult
from conformance.traces.importing import import_traces as run_import
from conformance.verdict import Verdict


def import_traces(
    context: Context, model: Model, files: Sequence[Path], store: Path, *, replace: bool = False
) -> ImportResult:
    """Import files; a trace that cannot be read is in the store, listed, and inconclusive."""
    with stage(context, "import", str(store), len(files)) as outcome:
        prepared = prepare(model, context.check.tools or find_tools(), context.check.parser)
        result = run_import(
            files,
            identity(prepared, FOREIGN, {"files": ", ".join(path.name for path in files)}),
            store,
            spec=EvaluatedSpec(prepared.spec),
            replace=replace,
        )
        counts = result.manifest.counts
        outcome.verdict = Verdict.INCONCLUSIVE if result.problems else Verdict.PASS
        outcome.summary = (
            f"{counts.traces:,} traces, {counts.steps:,} steps; "
            f"{len(result.problems)} cannot be judged"
        )
        outcome.figures = {
            "store": str(store),
            "traces": counts.traces,
            "steps": counts.steps,
            "ambiguous": result.ambiguous,
            "problems": [
                {"trace": p.trace, "file": p.file, "line": p.line, "reason": p.reason}
                for p in result.problems[:100]
            ],
        }
    return result
