"""Keys of findings: the same from run to run, and the same for what has one cause."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def finding_key(stage: str, parts: Iterable[str]) -> str:
    """Of a finding that no short name would tell from others: what it is about, hashed."""
    digest = hashlib.sha256("|".join(parts).encode()).hexdigest()
    return f"{stage}-{digest[:12]}"
