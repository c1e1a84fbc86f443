"""A model and an adapter's skeleton for a module of the user's own: `kconform init`.

The skeleton runs, and fails until its last gap is filled in: each gap raises.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UserError
from conformance.files import check_file
from conformance.modelcheck.form import SCHEMA
from conformance.modelcheck.manifest import model_from_config, near
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.tla import Fn, ModelValue, Tools, Value, canonical_sorted

VALUES = (
    ('1, TRUE, "a"', '1, True, "a"'),
    ("a model value, CONSTANT n1 = n1", 'ModelValue("n1"), which no string equals'),
    ("a set {1, 2}", "frozenset({1, 2})"),
    ("a sequence or tuple <<1, 2>>", "(1, 2)"),
    ("a record [a |-> 1]", 'Fn({"a": 1})'),
    ('a function [n \\in {"a"} |-> 0]', 'Fn({"a": 0})'),
    ("a function on 1..2", "(first, second)"),
)
"""What a value of TLA+ is in Python; docs/tutorial.md has the same table."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Two files that do not exist yet: the model's manifest and the adapter."""

    manifest: Path
    adapter: Path
    manifest_text: str
    adapter_text: str
    actions: int
    variables: int

    def write(self) -> None:
        """Write both. UserError if one is there: nothing is overwritten, and nothing written."""
        for path in (self.manifest, self.adapter):
            if path.exists() or path.is_symlink():
                raise UserError(
                    f"{near(path)} is there already. `kconform init` overwrites nothing: remove or "
                    "rename it, and start again."
                )
            check_file(path)
        self.manifest.write_text(self.manifest_text, encoding="utf-8")
        self.adapter.write_text(self.adapter_text, encoding="utf-8")


def skeleton_of(module: Path, config: Path | None, tools: Tools) -> Skeleton:
    """What to begin with. UserError for a module or configuration that feeds no suite."""
    if module.suffix != ".tla":
        raise UserError(f"{near(module)} is no TLA+ module. Name the module, path/Spec.tla.")
    chosen = config or module.with_suffix(".cfg")
    if module.is_file() and not chosen.is_file():
        raise UserError(
            f"There is no configuration {near(chosen)}. TLC and kconform need one: write lines "
            "such as `INIT Init`, `NEXT Next`, `CONSTANT Nodes = {n1, n2}` and `INVARIANT TypeOK` "
            "to it, or name another one with --config."
        )
    model = model_from_config(module, chosen).driving()
    if model.feeds_no_suite:
        raise UserError(
            f"{near(chosen)}: {model.feeds_no_suite}. Then start again, or name another "
            "configuration with --config."
        )
    if not (model.check.specification or (model.check.init and model.check.next)):
        raise UserError(
            f"{near(chosen)} names no behaviours, so there is nothing to drive: add INIT and NEXT, "
            "or SPECIFICATION."
        )
    prepared = prepare(model, tools)
    name = module.stem.lower()
    adapter = f"{name}_adapter"
    actions = _actions(prepared)
    return Skeleton(
        module.with_name(f"{name}.toml"),
        Path(f"{adapter}.py"),
        _manifest(prepared, chosen, f"{adapter}:create"),
        "\n".join(_adapter(prepared, actions, near(module.with_name(f"{name}.toml")))) + "\n",
        len(actions),
        len(prepared.spec.variables),
    )


def _manifest(prepared: PreparedModel, config: Path, system: str) -> str:
    path = config.resolve()
    folder = prepared.model.spec_path.parent
    named = path.relative_to(folder) if path.is_relative_to(folder) else path
    return f"""# What to check of {prepared.model.spec} and to drive along it: docs/models.md.
schema = {SCHEMA}
spec = "{prepared.model.spec}"
config = {json.dumps(str(named), ensure_ascii=False)}
system = "{system}"
feeds_suite = true

[expect]
result = "holds"
"""


def _actions(prepared: PreparedModel) -> dict[str, tuple[str, ...]]:
    """The names of each action's parameters, as the module has them."""
    actions: dict[str, tuple[str, ...]] = {}
    for action in prepared.spec.actions:
        definition = prepared.module.operator(action.name)
        names = () if definition is None else tuple(param.name for param in definition.params)
        if len(names) != len(action.args):
            names = tuple(f"argument{n}" for n in range(1, len(action.args) + 1))
        actions.setdefault(action.name, tuple(map(_identifier, names)))
    return actions


def _identifier(name: str) -> str:
    is_reserved = keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in _NAMES
    return f"{name}_" if is_reserved else name


_NAMES = ("action", "gap", "self")
"""What the skeleton calls things where an action's parameters have names."""


_HEAD = '''r"""Lets kconform drive an implementation along {module}.

An adapter only translates: actions to calls, the state to values of the specification's variables.
It never decides whether a state is right. Fill in the gaps; each raises until then:

    kconform gate {manifest}

{table}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from conformance.tla import Action, Fn, ModelValue, Value  # noqa: F401


def gap(what: str) -> NoReturn:
    """A part of the adapter that is not written yet."""
    raise NotImplementedError(f"the adapter does not say yet how to {{what}}")


class Adapter:
    """One instance of the implementation."""

    # Leave out what an implementation does not have: a variable that only the proof needs.
    variables = ({variables})

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self.constants = constants'''

_RESET = '''
    def reset(self, initial: Mapping[str, Value]) -> None:
        """Start afresh; `initial` has the values of all variables."""
        gap("start the implementation")

    def apply(self, action: Action) -> None:
        """Take one step; raise conformance.systems.protocol.ActionRefused if it cannot be taken."""
        match action:'''

_OBSERVE = '''            case _:
                gap(f"take {action}")

    def observe(self) -> Mapping[str, Value]:
        """The present values; behind each is what the specification begins with."""
        return {'''

_CREATE = '''        }


def create(constants: Mapping[str, Value]) -> Adapter:
    """Makes an adapter from the values of the model's constants."""
    return Adapter(constants)'''


def _adapter(
    prepared: PreparedModel, actions: dict[str, tuple[str, ...]], manifest: str
) -> Iterator[str]:
    spec = prepared.spec
    width = max(len(tla) for tla, _ in VALUES)
    yield _HEAD.format(
        module=prepared.model.spec_path.name,
        manifest=manifest,
        table="\n".join(f"    {tla:<{width}}  {python}" for tla, python in VALUES),
        variables="".join(f'"{name}", ' for name in spec.variables).strip(),
    )
    for constant in prepared.module.constants:
        if not constant.arity:
            yield f"        # {constant.name}: {_short(spec.value(constant.name))}"
    yield _RESET
    for name, parameters in actions.items():
        shown = f"{name}({', '.join(parameters)})" if parameters else name
        pattern = f"({', '.join(parameters)}{',' if len(parameters) == 1 else ''})"
        yield f'            case ("{name}", {pattern}):\n                gap("take {shown}")'
    yield _OBSERVE
    initial = next(iter(spec.initial_states()), None)
    for position, name in enumerate(spec.variables):
        begins = "" if initial is None else f"  # {_short(initial[position])}"
        yield f'            "{name}": gap("observe {name}"),{begins}'
    yield _CREATE


_LONGEST = 80


def _short(value: Value) -> str:
    text = python_text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def python_text(value: Value) -> str:
    """The value as an expression of Python, the same in every process."""
    match value:
        case Fn():
            pairs = ((key, value[key]) for key in canonical_sorted(value))
            return f"Fn({{{', '.join(f'{python_text(k)}: {python_text(v)}' for k, v in pairs)}}})"
        case frozenset():
            members = ", ".join(map(python_text, canonical_sorted(value)))
            return f"frozenset({{{members}}})" if value else "frozenset()"
        case tuple():
            members = ", ".join(map(python_text, value))
            return f"({members},)" if len(value) == 1 else f"({members})"
        case ModelValue():
            return f'ModelValue("{value.name}")'
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case _:
            return repr(value)
