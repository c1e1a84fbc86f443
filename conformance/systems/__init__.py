"""Adapters: the only place where a specification and an implementation meet."""
