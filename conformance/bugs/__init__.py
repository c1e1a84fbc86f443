"""The bug bench: known faults in a copy of the implementation, and which oracle finds them."""
