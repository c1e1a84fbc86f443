"""Any broker's data path, through its port (docs/wire.md)."""
