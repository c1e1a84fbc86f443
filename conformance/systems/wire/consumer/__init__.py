"""KIP-848's coordinator behind a port, driven by ConsumerGroup.tla's actions."""
