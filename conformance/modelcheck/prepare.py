"""From a model to what TLC and the evaluator get: generated module, parsed and bound spec."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.errors import UnsupportedError, UserError
from conformance.modelcheck.cache import cache_key, module_files
from conformance.modelcheck.generate import (
    OWN_OPERATORS,
    GeneratedModule,
    LabelledNext,
    generate,
)
from conformance.modelcheck.labels import encloses, is_safety_property, specification_parts
from conformance.modelcheck.left_out import postconditions_for
from conformance.modelcheck.manifest import MODEL_VALUES, Model
from conformance.modelcheck.parser import Parser
from conformance.tla import DEFINED, OWN_MODULES, Module, Spec, Tools, bind, parse_config


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """A model, its bound spec, and the module that TLC gets for it."""

    model: Model
    module: Module
    spec: Spec
    generated: GeneratedModule


def prepare(model: Model, tools: Tools, parser: Parser | None = None) -> PreparedModel:
    """Parse the model's module with SANY, bind it, and label its actions if that is possible.

    SpecError with SANY's message if it does not parse, UserError for names that do not exist.
    A `parser` that several models share saves most of the time.
    """
    plain = bound(model, tools, parser)
    labelled = _labelled(model, plain.module, plain.spec)
    if labelled is None:
        return plain
    declared = [constant.name for constant in plain.module.constants]
    return replace(plain, generated=generate(model, labelled, declared))


def bound(model: Model, tools: Tools, parser: Parser | None = None) -> PreparedModel:
    """As `prepare`, but TLC's labels are those of the module: nobody lists the actions.

    For constants so large that their action instances cannot be listed.
    """
    plain = generate(model)
    module = (parser or Parser()).module(model, plain, tools)
    _require_names(model, module)
    return bound_again(model, module)


def bound_again(model: Model, module: Module) -> PreparedModel:
    """As `bound`, of a module that was parsed before: another process need not ask SANY."""
    plain = generate(model)
    spec = bind(module, parse_config(plain.config, source=str(model.stated_in)))
    return PreparedModel(model, module, spec, plain)


@contextmanager
def written(generated: GeneratedModule) -> Iterator[tuple[Path, Path]]:
    """Module and configuration as files in a folder that exists as long as the context."""
    with tempfile.TemporaryDirectory(prefix="kconform-model-") as folder:
        yield generated.write(Path(folder))


def model_key(model: Model, tools: Tools) -> str:
    """Hash of everything that TLC's answer depends on: modules, model, jar. Starts no JVM."""
    plain = generate(model)
    files = module_files(model.spec_path, [*model.search, *OWN_MODULES])
    deadlock = "deadlock" if model.check.deadlock else ""
    simulation = repr(model.check.simulation) if model.check.simulation else ""
    config = plain.config + postconditions_for(model, tools)
    return cache_key([plain.module, config, deadlock + simulation, tools.jar_sha256], files)


def _labelled(model: Model, module: Module, spec: Spec) -> LabelledNext | None:
    """The labelled next-state relation; None where the model must keep its own formula.

    Fairness and liveness speak of the original actions, so such models are left as they are. So
    are those in which an action is an unnamed part of an operator that holds other actions too:
    no name stands for it alone; and those that override what the labelled text itself says.
    """
    check = model.check
    if not spec.has_behaviours or model.own_text or not OWN_OPERATORS.isdisjoint(_given(model)):
        return None
    if not all(is_safety_property(module, name) for name in check.properties):
        return None
    init = check.init
    if check.specification:
        parts = specification_parts(module, check.specification)
        if parts is None:
            return None
        init = parts.init
    try:
        actions = spec.actions
    except UnsupportedError:
        return None  # TLC may still know what to do with it
    names = {action.name for action in actions}
    for action in actions:
        definition = module.operator(action.name)
        if definition is None or len(definition.params) != len(action.args):
            return None
        if encloses(module, definition, names - {action.name}):
            return None
    return LabelledNext(init, actions) if actions else None


def _given(model: Model) -> set[str]:
    """The names of all constants and operators that the model gives a meaning to."""
    scoped = {line.partition(" ")[0] for line in model.scoped}
    return {*model.constants, *model.literals, *model.overrides, *scoped}


def _require_names(model: Model, module: Module) -> None:
    """UserError for the first name that the model uses and the spec lacks."""
    constants = {constant.name for constant in module.constants}
    operators = set(module.operators)
    _require_known_constants(model, constants)
    _require_something_to_check(model, module)
    _require_overridden(model, operators | constants | DEFINED, operators | DEFINED)
    _require_operators(model, operators)
    _require_all_constants(model, constants)


def _require_known_constants(model: Model, constants: Set[str]) -> None:
    for name, text in model.constants.items():  # of a .cfg's TLC ignores those that are none
        if name not in constants:
            raise _no_such(model, "constants", name, constants)
        if text.strip() == name:
            raise UserError(
                f"{model.origin}: the constant {name} is said to be {name}, which is itself. Its "
                f"value is a TLA+ expression, such as the string '\"{name}\"'. {MODEL_VALUES}"
            )


def _require_something_to_check(model: Model, module: Module) -> None:
    check = model.check
    if not (check.specification or check.init or module.variables or module.assumptions):
        raise UserError(
            f"{model.stated_in}: {model.spec} has neither behaviours nor an ASSUME: there is "
            "nothing to check. Name an initial predicate and a next-state relation, or a "
            "specification."
        )


def _require_overridden(model: Model, names: Set[str], operators: Set[str]) -> None:
    """Both sides of `original <- replacement` must be there, in SANY's spelling."""
    for original, replacement in model.overrides.items():
        if original not in names:
            raise _no_such(model, "overrides", original, operators)
        if replacement not in operators:
            raise _no_such(model, "overrides", replacement, operators)


def _require_operators(model: Model, operators: Set[str]) -> None:
    check = model.check
    uses = {
        "check.specification": [check.specification],
        "check.init": [check.init],
        "check.next": [check.next],
        "check.invariants": check.invariants,
        "check.properties": check.properties,
        "check.constraints": check.constraints,
        "check.action_constraints": check.action_constraints,
        "check.symmetry": [check.symmetry],
        "check.view": [check.view],
        "situations.names": model.situations,
        "postconditions": model.postconditions,
    }
    for key, names in uses.items():
        for name in names:
            if name and name not in operators:
                raise _no_such(model, key, name, operators)


def _require_all_constants(model: Model, constants: Set[str]) -> None:
    given = {*model.constants, *model.literals, *model.overrides}
    if missing := sorted(constants - given):
        raise UserError(
            f"{model.stated_in}: the model gives no value to {', '.join(missing)}, which "
            f"{model.spec} declares as constants. Add them under `{_keyword(model, 'constants')}`."
        )


_KEYWORDS = {
    "constants": "CONSTANTS",
    "overrides": "CONSTANTS",
    "check.specification": "SPECIFICATION",
    "check.init": "INIT",
    "check.next": "NEXT",
    "check.invariants": "INVARIANTS",
    "check.properties": "PROPERTIES",
    "check.constraints": "CONSTRAINTS",
    "check.action_constraints": "ACTION_CONSTRAINTS",
    "check.symmetry": "SYMMETRY",
    "check.view": "VIEW",
    "postconditions": "POSTCONDITION",
}
"""What TLC's configurations call the keys of our manifests."""


def _keyword(model: Model, key: str) -> str:
    """The key as the file that the user wrote has it."""
    return key if model.config is None else _KEYWORDS.get(key, key)


_SPELLINGS = {
    "(+)": r"\oplus", "(-)": r"\ominus", "(.)": r"\odot", "(/)": r"\oslash", r"(\X)": r"\otimes",
    "<=": r"\leq", "=<": r"\leq", ">=": r"\geq", r"\circ": r"\o",
}  # fmt: skip
"""The spelling under which SANY, and so TLC, knows an operator that TLA+ writes in several ways."""


def _no_such(model: Model, key: str, name: str, known: Set[str]) -> UserError:
    spelt = [_SPELLINGS[name]] if _SPELLINGS.get(name) in {*known, *DEFINED} else []
    close = spelt or difflib.get_close_matches(name, known, n=2)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return UserError(
        f"{model.stated_in}: `{_keyword(model, key)}` names {name}, which the module {model.spec} "
        f"does not have.{hint}"
    )
