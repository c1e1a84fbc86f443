"""Turns typed events into a terminal's lines, JSON, JUnit and HTML. Reads nothing else."""
