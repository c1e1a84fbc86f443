"""What of a .cfg an engine leaves out: no verdict may look as if it had been followed."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.modelcheck.manifest import Model
from conformance.tla import Tools

_POSTCONDITION = "POSTCONDITION"


_LEFT_OUT = {
    "ALIAS": ("states are shown as they are, not as an ALIAS has them", False),
    "_POSSIBLE": ("no engine here judges whether a state or step that satisfies it exists", True),
    "_PERIODIC": ("no engine here evaluates a formula again and again during the search", True),
    "_RL_REWARD": ("it weighs the steps of TLC's simulation, and changes no verdict", False),
}
"""By keyword: why no engine follows the entry, and whether it says that a model is wrong."""


@dataclass(frozen=True, slots=True)
class IgnoredEntry:
    """An entry of a configuration, as it is written, and why it was not followed."""

    entry: str
    why: str
    judges: bool
    """Whether it says of a model that it is right or wrong: what holds is then not known."""

    def __str__(self) -> str:
        return f"{self.entry} is left out: {self.why}."


def postconditions_for(model: Model, tools: Tools) -> str:
    """The lines of a configuration that this TLC is given for the postconditions; perhaps none."""
    if not model.postconditions or not tools.knows(_POSTCONDITION):
        return ""
    return "".join(f"{_POSTCONDITION} {name}\n" for name in model.postconditions)


def left_out(model: Model, tools: Tools | None) -> tuple[IgnoredEntry, ...]:
    """What TLC leaves out of the model's configuration, or our own engine if no tools are given."""
    entries = [IgnoredEntry(entry, *_LEFT_OUT[entry.split()[0]]) for entry in model.ignored]
    if tools is None or not tools.knows(_POSTCONDITION):
        why = "only --engine tlc with a TLC after 2.15 checks it (TLA2TOOLS_JAR names its jar)"
        entries += [
            IgnoredEntry(f"{_POSTCONDITION} {name}", why, judges=True)
            for name in model.postconditions
        ]
    return tuple(entries)
