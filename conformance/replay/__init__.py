"""Drives a system along a suite, a walk or a Hypothesis machine, with the spec as the oracle."""
