"""Any broker's transactions, through its port (docs/wire.md)."""
