"""Small modules for tests: written to a folder, parsed by SANY, bound."""

from __future__ import annotations

from pathlib import Path

from conformance.tla import ModelConfig, Module, Spec, bind, load_module, parse_config

HEADER = "EXTENDS Integers, Sequences, FiniteSets, Bags, TLC\n"


def module(folder: Path, body: str, *, name: str = "Small", header: str = HEADER) -> Module:
    """The module with that body, parsed."""
    path = folder / f"{name}.tla"
    path.write_text(f"---- MODULE {name} ----\n{header}{body}\n====\n")
    return load_module(path)


def spec(folder: Path, body: str, config: str = "", *, header: str = HEADER) -> Spec:
    """The module with that body, bound to a configuration."""
    parsed = module(folder, body, header=header)
    return bind(parsed, parse_config(config) if config else ModelConfig())
