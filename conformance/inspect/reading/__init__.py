"""Reads data directories and server logs into the tables of `conformance.inspect.evidence`."""
