"""A client in the loop: a real client process, and a coordinator that the specification plays."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
