"""TLA+ in Python: reads modules, evaluates formulas and finds successors; knows no Kafka."""

from __future__ import annotations

from conformance.errors import SpecError, UnsupportedError
from conformance.tla.config import ModelConfig, Override, parse_config
from conformance.tla.evaluate.errors import EvaluationError
from conformance.tla.explain import Explanation
from conformance.tla.reader import load_module
from conformance.tla.spec import ActionFormula, Spec, StateFormula, bind
from conformance.tla.syntax import Location, Module
from conformance.tla.tools import Tools, find_tools
from conformance.tla.values import Action, Fn, ModelValue, State, Value

__all__ = [
    "Action",
    "ActionFormula",
    "EvaluationError",
    "Explanation",
    "Fn",
    "Location",
    "ModelConfig",
    "ModelValue",
    "Module",
    "Override",
    "Spec",
    "SpecError",
    "State",
    "StateFormula",
    "Tools",
    "UnsupportedError",
    "Value",
    "bind",
    "find_tools",
    "load_module",
    "parse_config",
]
