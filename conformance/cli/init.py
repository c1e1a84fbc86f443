"""kconform init: a model and an adapter's skeleton for a module of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import ConfigOption, JsonOption
from conformance.cli.session import session
from conformance.modelcheck.manifest import near
from conformance.printable import counted
from conformance.stages.skeleton import skeleton_of
from conformance.tla import find_tools


def init(
    module: Annotated[Path, typer.Argument(help="A TLA+ module of your own, path/Spec.tla.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a model and an adapter's skeleton for a module of your own; overwrite nothing."""
    with session("init", as_json=as_json) as work:
        made = skeleton_of(module, config, find_tools())
        made.write()
        gaps = f"{counted(made.actions, 'action')}, {counted(made.variables, 'variable')}"
        rows = ((made.manifest, "the model"), (made.adapter, f"the adapter, to fill in: {gaps}"))
        lines = [(f"{near(path)}: {what}", str(path)) for path, what in rows]
        if not as_json:
            lines.append((f"Then: kconform gate {near(made.manifest)}", ""))
        work.listing("files", lines)
