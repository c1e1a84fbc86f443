"""spec/FetcherThreads.tla meets impl: the fetcher threads of a follower, over real logs."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.fetchers.system import FetchersSystem, create

__all__ = ["FetchersSystem", "create"]
