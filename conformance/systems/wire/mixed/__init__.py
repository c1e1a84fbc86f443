"""A group that changes its protocol, behind a port, driven by MixedGroup.tla's actions."""
