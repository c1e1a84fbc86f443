"""Tells a failure from states and events: what changed, why it is false, as lines and drawing."""
