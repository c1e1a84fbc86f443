"""spec/IdempotentProduce.tla meets impl: logs with producer state, and an idempotent producer."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.produce.system import ProduceSystem, create

__all__ = ["ProduceSystem", "create"]
