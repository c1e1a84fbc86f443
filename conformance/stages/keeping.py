"""Keeps the behaviour of a finding as an ITF file under the output folder, and names it there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from conformance.events import Finding
from conformance.files import written_aside
from conformance.modelcheck.manifest import Model, reference
from conformance.stages.context import Context
from conformance.story.behaviour import Behaviour
from conformance.story.itf import trace_of
from conformance.tla import Json, dump_trace


def divergence_file(context: Context, model: str, finding: Finding) -> Path:
    """Where a finding's behaviour is kept; the same place in every run."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{model}-{finding.stage}-{finding.key}").strip("-")
    return context.settings.divergences / f"{stem}.itf.json"


def kept(
    context: Context, finding: Finding, behaviour: Behaviour, *, model: Model, system: str = ""
) -> Finding:
    """The finding with the file that holds its behaviour; without one if no state is known whole.

    `system` is what `kconform replay FILE` is to drive, if it is here at all.
    """
    about: dict[str, Json] = {"model": reference(model), "system": system, "key": finding.key}
    trace = trace_of(behaviour, about)
    if not trace.states:
        return finding
    path = divergence_file(context, model.name, finding)
    with written_aside(path) as aside:
        aside.write_text(dump_trace(trace) + "\n", encoding="utf-8")
    return replace(finding, artifact=str(path))
