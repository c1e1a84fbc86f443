"""Drives a system along a suite, a walk or a Hypothesis machine and compares every step.

`engine.Driver` keeps the candidate states: after each action those successors of the specification
whose observed variables equal the observation. A `Divergence` is an action after which no candidate
is left, a step on offer that the specification does not enable, the lack of a step that it does
enable, an exception, or a call that does not end (`watch`). The oracle is a model's state graph or
the evaluator (`oracle`). docs/design/driving.md has the details.
"""
