"""The idempotent producer's own bookkeeping, without its network."""
