"""The bug bench: faults in a copy of the implementation, and which oracle kills them.

A fault is a patch in a catalogue beside an adapter (`systems/*/faults.toml`). `bench` patches a
copy of `impl` and runs the oracles in a process whose import path begins with the copy.
docs/design/bugs.md describes how random mutants are drawn and judged.
"""
