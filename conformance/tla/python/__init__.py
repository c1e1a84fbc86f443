"""Evaluates TLA+ in Python: formulas and actions compiled to Python code once, then run."""
