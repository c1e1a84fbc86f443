"""spec/DataPathAtPort.tla and spec/FetchSessions.tla meet impl.

The wire server's broker is asked in this process.
"""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.data.sessions import SessionSystem
from conformance.systems.data.sessions import create as create_sessions
from conformance.systems.data.system import DataSystem, create

__all__ = ["DataSystem", "SessionSystem", "create", "create_sessions"]
