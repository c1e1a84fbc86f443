"""Idempotent produce: what adapters of logs in a JVM and of brokers at a port have in common."""
