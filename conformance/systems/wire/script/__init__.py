"""A divergence of a broker at its port as a script of raw requests, for those who maintain it.

The script stands alone: it needs kio and nothing of ours. It fails where the finding is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from conformance.story.behaviour import Behaviour
from conformance.systems.shared.departing import Unsayable
from conformance.systems.wire.script.group import GroupScript


def script(behaviour: Behaviour, constants: Mapping[str, str], title: str) -> str:
    """The Python source of a script. Unsayable if none can be written of this behaviour."""
    if "groupRecord" not in behaviour.variables:
        raise Unsayable("scripts are written for groups of the classic protocol only")
    written = GroupScript.of(behaviour, constants)
    text = (Path(__file__).parent / "group.py.txt").read_text(encoding="utf-8")
    return Template(text).substitute(
        title=title,
        script="\n".join(written.lines()),
        **written.placeholders,
    )
