"""Explains what was seen of a system by a behaviour of the specification. Knows no protocol."""
