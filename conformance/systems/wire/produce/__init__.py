"""Any broker's idempotent produce, through its port (docs/wire.md)."""
