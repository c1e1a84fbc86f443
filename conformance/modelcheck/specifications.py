"""The specification's modules as models name them, bound to what was observed.

A model in models/ says what every constant is, and which formulas are asked. Members and the like
are not the model's: they are those of the files or histories. So nothing of the specification is
written a second time here, and TLC checks what is asked of them on a small instance too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from conformance.modelcheck.manifest import load_model
from conformance.modelcheck.prepare import bound
from conformance.resources import models_dir
from conformance.tla import ModelConfig, Module, Spec, Value, bind, find_tools

_KEPT = 300
"""Bound specifications of one model."""


@dataclass(frozen=True, slots=True)
class Specification:
    """A model's module, parsed, and the model's constants; keeps what it has bound.

    Can be pickled: the code that was generated does not travel.
    """

    module: Module
    config: ModelConfig
    invariants: tuple[str, ...]
    properties: tuple[str, ...]
    _bound: dict[frozenset[tuple[str, Value]], Spec] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def bound(self, constants: Mapping[str, Value]) -> Spec:
        """With other values for some of its constants; equal ones give the same."""
        key = frozenset(constants.items())
        if key not in self._bound:
            if len(self._bound) >= _KEPT:
                self._bound.clear()
            kept = tuple(
                override for override in self.config.overrides if override.name not in constants
            )
            known = {**self.config.constants, **constants}
            config = replace(self.config, constants=known, overrides=kept)
            self._bound[key] = bind(self.module, config)
        return self._bound[key]

    def __reduce__(self) -> tuple[object, ...]:
        return Specification, (self.module, self.config, self.invariants, self.properties)


@dataclass(slots=True)
class Specifications:
    """The models' specifications, each parsed when it is first asked for; can be pickled."""

    _parsed: dict[str, Specification] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Specification:
        """The specification as a model has it (`replication/files-2b`)."""
        if name not in self._parsed:
            self._parsed[name] = _parsed(name)
        return self._parsed[name]

    def prepare(self, names: Iterable[str]) -> None:
        """Parse these now."""
        for name in names:
            _ = self[name]


def _parsed(name: str) -> Specification:
    model = load_model(models_dir() / f"{name}.toml")
    prepared = bound(model, find_tools())
    config = prepared.spec.config
    return Specification(prepared.module, config, model.check.invariants, model.check.properties)
