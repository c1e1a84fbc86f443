"""Writes the module and the configuration that TLC gets for a model.

TLC labels a transition with the action's name only. Where the next-state relation is a choice
between action instances over constant sets, the generated module names each instance,

    Fetch__3 == Fetch("b1") /\\ fired(3)

and takes the disjunction of these as its next-state relation: then the label says all. The
conjunction keeps TLC from looking through the definition for the inner name. The number of states
stays the same.

`fired(3)` is TRUE and prints its number the first time. So every run tells which instances never
took a step; TLC's own `-coverage` would tell the same at almost three times the run time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.modelcheck.form import Check
from conformance.modelcheck.manifest import Model
from conformance.tla import STANDARD_MODULES, Action, Fn, ModelValue, Value, format_value

FIRED = "kconform: first step of action"
"""What the generated module prints with an action's number."""

OWN_OPERATORS = frozenset({"..", "TLCGet", "TLCSet", "PrintT"})
"""What the labelled text uses of the standard modules: an override would replace it there too."""

_CONSTANT = "const_"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\w+|:>|@@|\.\.|\\\w+|<=|>=|[-+*^%<>]')


@dataclass(frozen=True, slots=True)
class GeneratedModule:
    """A root module of its own name, its configuration, and what its action labels mean."""

    name: str
    module: str
    config: str
    labels: Mapping[str, Action]
    """TLC's label to action; empty where TLC's own labels (without arguments) must do."""

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write both files into `folder`; returns module and configuration."""
        module, config = folder / f"{self.name}.tla", folder / f"{self.name}.cfg"
        module.write_text(self.module, encoding="utf-8")
        config.write_text(self.config, encoding="utf-8")
        return module, config


@dataclass(frozen=True, slots=True)
class LabelledNext:
    """The initial predicate's name and all instances of the next-state relation."""

    init: str
    actions: tuple[Action, ...]


def definitions(model: Model) -> list[str]:
    """The model's own definitions, a line each: its operators, then its constants."""
    lines = [f"{head} == {text}" for head, text in model.definitions.items()]
    lines += [f"{_CONSTANT}{constant} == {text}" for constant, text in model.constants.items()]
    return lines


def module_text(name: str, spec: str, body: Sequence[str], values: Sequence[str] = ()) -> str:
    """A module that extends `spec` by definitions, and by model values as constants."""
    head = [f"EXTENDS {', '.join([spec, *_standard_modules(body)])}"]
    if values:
        head.append(f"CONSTANTS {', '.join(values)}")
    return "\n\n".join([f"---- MODULE {name} ----", *head, *body, "====\n"])


def generate(
    model: Model, labelled: LabelledNext | None = None, declared: Iterable[str] = ()
) -> GeneratedModule:
    """Module and configuration of `model`, with labelled actions if `labelled` is given.

    `declared` are the constants that the spec declares: model values beyond them, which TLA+
    text can name only if they are declared, become constants of the generated module.
    """
    if model.own_text:
        text = model.spec_path.read_text(encoding="utf-8")
        return GeneratedModule(model.spec, text, config_text(model, model.check), {})
    name = f"{model.spec}__model"
    actions = labelled.actions if labelled else ()
    wrappers = {_label(action, number): action for number, action in enumerate(actions)}
    values = sorted(model_values(action.args for action in actions) - set(declared))
    body = definitions(model)
    check = model.check
    if labelled is not None:
        if check.simulation:
            # Simulating threads have registers of their own, which no ASSUME has set.
            body += [f"{label} == {action}" for label, action in wrappers.items()]
        else:
            body.append(_fired(name, len(actions)))
            body += [
                f"{label} == {action} /\\ {name}_fired({number})"
                for number, (label, action) in enumerate(wrappers.items())
            ]
        next_name = f"{name}_next"
        disjuncts = "".join(f"\n    \\/ {label}" for label in wrappers) or " FALSE"
        body.append(f"{next_name} =={disjuncts}")
        check = _with_next(check, labelled.init, next_name)
    text = module_text(name, model.spec, body, values)
    return GeneratedModule(name, text, config_text(model, check, values), wrappers)


def _fired(name: str, actions: int) -> str:
    """Registers of TLC, one per action instance: FALSE until it takes its first step."""
    return (
        f"ASSUME \\A i \\in 0..{max(actions - 1, 0)} : TLCSet(i, FALSE)\n\n"
        f"{name}_fired(i) ==\n  IF TLCGet(i) THEN TRUE "
        f'ELSE TLCSet(i, TRUE) /\\ PrintT(<<"{FIRED}", i>>)'
    )


def _label(action: Action, number: int) -> str:
    # `I!Step` is no identifier; the number keeps labels apart.
    return f"{action.name.replace('!', '_')}__{number}"


def _with_next(check: Check, init: str, next_name: str) -> Check:
    return Check(
        init=init,
        next=next_name,
        invariants=check.invariants,
        properties=check.properties,
        constraints=check.constraints,
        action_constraints=check.action_constraints,
        symmetry=check.symmetry,
        view=check.view,
        deadlock=check.deadlock,
    )


def model_values(values: Iterable[Value]) -> set[str]:
    """The names of the model values that occur in the values."""
    result: set[str] = set()

    def visit(value: Value) -> None:
        if isinstance(value, ModelValue):
            result.add(value.name)
        elif isinstance(value, Fn):
            for key, item in value.items():
                visit(key)
                visit(item)
        elif isinstance(value, (tuple, frozenset)):
            for item in value:
                visit(item)

    for value in values:
        visit(value)
    return result


def _standard_modules(texts: Sequence[str]) -> list[str]:
    """The standard modules whose operators the texts use; no more, a spec may redefine one."""
    tokens = {token for text in texts for token in _TOKEN.findall(text)}
    tokens = {{"<=": "\\leq", ">=": "\\geq"}.get(token, token) for token in tokens}
    wanted = ("Integers", "Sequences", "FiniteSets", "Bags", "TLC")
    return [name for name in wanted if tokens & STANDARD_MODULES[name]]


def config_text(model: Model, check: Check, values: Sequence[str] = ()) -> str:
    """A configuration: the model's constants and overrides, and what `check` names."""
    lines = [f"CONSTANT {name} <- {_CONSTANT}{name}" for name in model.constants]
    lines += [f"CONSTANT {name} = {format_value(value)}" for name, value in model.literals.items()]
    lines += [f"CONSTANT {name} = {name}" for name in values]
    lines += [f"CONSTANT {name} <- {by}" for name, by in model.overrides.items()]
    lines += [f"CONSTANT {line}" for line in model.scoped]
    single = {
        "SPECIFICATION": check.specification,
        "INIT": check.init,
        "NEXT": check.next,
        "SYMMETRY": check.symmetry,
        "VIEW": check.view,
    }
    lines += [f"{keyword} {name}" for keyword, name in single.items() if name]
    several = {
        "INVARIANT": check.invariants,
        "PROPERTY": check.properties,
        "CONSTRAINT": check.constraints,
        "ACTION_CONSTRAINT": check.action_constraints,
    }
    lines += [f"{keyword} {name}" for keyword, names in several.items() for name in names]
    return "\n".join(lines) + "\n"
