"""Gives the wheel's adapters the name that the bundled implementation has there.

`impl` lies at the top of the repository, where readers look for it. A wheel that installed so plain
a name would clash with a user's own package, so it lies in `conformance/_data` there. Only import
statements of the adapters differ between the two; see conformance/systems/bundled.py.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "conformance._data.impl"
_IMPORT = re.compile(r"^(\s*)from impl(?=[. ])", re.MULTILINE)


def renamed(source: str) -> str:
    """A module's text with the imports that a wheel needs."""
    return _IMPORT.sub(rf"\1from {PACKAGE}", source)


# Hatchling is there when a wheel is built, not always when types are checked; then it has no types.
class ImplementationName(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Hatch calls it for each wheel."""

    _rewritten: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put rewritten modules in the place of those that import the implementation."""
        if version == "editable":
            return
        self._rewritten = tempfile.TemporaryDirectory()
        root, folder = Path(self.root), Path(self._rewritten.name)
        for path in sorted((root / "conformance").rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if (text := renamed(source)) != source:
                place = path.relative_to(root)
                (folder / place).parent.mkdir(parents=True, exist_ok=True)
                (folder / place).write_text(text, encoding="utf-8")
                build_data["force_include"][str(folder / place)] = str(place)

    def finalize(
        self,
        version: str,  # noqa: ARG002
        build_data: dict[str, Any],  # noqa: ARG002
        artifact_path: str,  # noqa: ARG002
    ) -> None:
        """The wheel is written."""
        if self._rewritten is not None:
            self._rewritten.cleanup()
