"""What an inspection leaves behind beside its tables: findings.json."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.files import written_aside
from conformance.inspect.inspection import Inspection


def write(inspection: Inspection, output: Path) -> None:
    """findings.json, whole or absent."""
    body = {
        "schema_version": 1,
        "verdict": str(inspection.verdict),
        **inspection.figures(),
        "copies": {
            name: {"copied_at": copy.copied_at, "window_ms": copy.window, "node": copy.node,
                   "shut_down_in_order": sorted(copy.clean)}
            for name, copy in inspection.copies.copies.items()
        },
        "findings": [discovery.as_json() for discovery in inspection.discoveries],
    }  # fmt: skip
    with written_aside(output / "findings.json") as path:
        path.write_text(json.dumps(body, indent=1), encoding="utf-8")
