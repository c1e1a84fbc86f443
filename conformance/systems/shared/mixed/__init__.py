"""What adapters of MixedGroup.tla share: its constants, its consumers, its steps."""
