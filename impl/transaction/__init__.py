"""The transaction coordinator (org.apache.kafka.coordinator.transaction), by the rules of 4.4.

Not here: two-phase commit (KIP-939).
"""
