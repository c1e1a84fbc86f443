"""Test suites from a state graph: transition cover, random walks, situations.

Knows graphs and nothing of any protocol.
"""
