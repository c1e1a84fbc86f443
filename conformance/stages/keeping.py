"""Keeps the behaviour of a finding as an ITF file under the output folder, and names it there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.events import Finding
from conformance.modelcheck.manifest import Model, reference
from conformance.stages.context import Context
from conformance.story.behaviour import Behaviour
from conformance.story.itf import file_in, keep
from conformance.tla import Json


def divergence_file(context: Context, model: str, finding: Finding) -> Path:
    """Where a finding's behaviour is kept; the same place in every run."""
    return file_in(context.settings.divergences, model, finding.stage, finding.key)


def kept(
    context: Context, finding: Finding, behaviour: Behaviour, *, model: Model, system: str = ""
) -> Finding:
    """The finding with the file that holds its behaviour; without one if no state is known whole.

    `system` is what `kconform replay FILE` is to drive, if it is here at all.
    """
    about: dict[str, Json] = {"model": reference(model), "system": system, "key": finding.key}
    path = divergence_file(context, model.name, finding)
    return replace(finding, artifact=str(path)) if keep(path, behaviour, about) else finding
