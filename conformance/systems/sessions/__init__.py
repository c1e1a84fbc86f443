"""spec/FetchSessions.tla meets impl: the wire server's broker, asked in this process."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.sessions.system import SessionSystem, create

__all__ = ["SessionSystem", "create"]
