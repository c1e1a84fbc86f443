"""A module with its configuration applied: what every name stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from conformance.tla.errors import SpecError
from conformance.tla.front import syntax as s
from conformance.tla.front.config import ModelConfig, Override
from conformance.tla.semantics.analysis import Analysis
from conformance.tla.semantics.temporal import TemporalReader
from conformance.tla.values import Value


@dataclass(frozen=True, slots=True)
class Program:
    """Names resolved: constants to values, operators to definitions, overrides followed.

    `replaced` maps the uid of an overridden definition to its replacement or value, `builtins`
    the name of an overridden standard operator (`Nat <- SmallNat`).
    """

    module: s.Module
    config: ModelConfig
    constants: Mapping[str, Value | s.Definition]
    replaced: Mapping[int, Value | s.Definition]
    builtins: Mapping[str, Value | s.Definition]

    def definition(self, uid: int) -> s.Definition:
        """The definition with that uid."""
        return self.module.definitions[uid]

    def operator(self, name: str, why: str) -> s.Definition:
        """The module-level operator of that name, overrides followed; SpecError if none."""
        definition = self.module.operator(name)
        if definition is None:
            raise SpecError(
                f"{self.config.source or self.module.name} names {name} as {why}, but the module "
                f"{self.module.name} defines no operator of that name."
            )
        replacement = self.replaced.get(definition.uid)
        return replacement if isinstance(replacement, s.Definition) else definition

    def meaning(self, node: s.Argument) -> s.Definition | Value | None:
        """What a call, constant or overridden builtin stands for; None for everything else."""
        match node:
            case s.Call(target=int(uid)) | s.OperatorArg(target=int(uid)):
                return self.replaced.get(uid, self.module.definitions[uid])
            case (
                s.Constant(name=name)
                | s.Call(target=s.Constant(name=name))
                | s.OperatorArg(target=s.Constant(name=name))
            ):
                return self.constants[name]
            case s.Builtin(operator=name) | s.OperatorArg(target=str(name)):
                return self.builtins.get(name)
            case _:
                return None

    def analysis(self) -> Analysis:
        """Facts of this program's expressions."""

        def resolve(node: s.Argument) -> int | None:
            result = self.meaning(node)
            return result.uid if isinstance(result, s.Definition) else None

        of_module = frozenset(self.module.operators.values())
        return Analysis(self.definition, resolve, of_module)

    def temporal_reader(self) -> TemporalReader:
        """A reader of this program's temporal formulas, overrides followed."""

        def resolve(node: s.Argument) -> s.Definition | None:
            result = self.meaning(node)
            return result if isinstance(result, s.Definition) else None

        return TemporalReader(resolve)


def link(module: s.Module, config: ModelConfig) -> Program:
    """Applies a configuration; SpecError names what it names and does not exist, or leaves out."""
    source = config.source or "The configuration"
    declared = {constant.name: constant for constant in module.constants}
    constants: dict[str, Value | s.Definition] = {}
    replaced: dict[int, Value | s.Definition] = {}
    builtins: dict[str, Value | s.Definition] = {}
    modules = {*module.sources, *s.STANDARD_MODULES}
    module = _with_builtins(module, config.overrides)

    def replace_name(name: str, new: Value | s.Definition, scope: str | None) -> None:
        if name in declared and scope in (None, declared[name].location.module):
            constants[name] = new
        elif uids := _definitions_named(module, name, scope):
            replaced.update(dict.fromkeys(uids, new))
        elif name in s.DEFINED and (scope is None or scope in modules):
            # In whichever module's name: the modules share one definition, which TLC replaces.
            builtins[name] = new
        elif scope in modules:
            return  # a constant that the INSTANCE substitutes: TLC takes what is substituted
        else:
            where = module.name if scope is None else scope
            raise SpecError(
                f"{source} gives a value to {name}, but the module {where} has neither a CONSTANT "
                "nor an operator of that name."
            )

    known = {*declared, *module.operators, *s.DEFINED}
    for name, value in config.constants.items():
        if name in known:  # TLC takes no notice of others, such as model values of a set's own
            replace_name(name, value, None)
    for scoped_value in config.scoped_values:
        replace_name(scoped_value.name, scoped_value.value, scoped_value.module)
    for override in config.overrides:
        replace_name(override.name, _replacement(module, override, source), override.module)
    missing = [name for name in declared if name not in constants]
    if missing:
        raise SpecError(
            f"{source} gives no value to the CONSTANT {', '.join(missing)} of module "
            f"{module.name}. Add for example `CONSTANT {missing[0]} = 3`."
        )
    _check_arities(declared, constants, source)
    for uid, meaning in replaced.items():
        old = module.definitions[uid]
        _check_arity(old.name, len(old.params), meaning, source)
    for name, meaning in builtins.items():
        _check_arity(name, s.ARITY[name], meaning, source)
    return Program(module, config, constants, replaced, builtins)


def _replacement(module: s.Module, override: Override, source: str) -> s.Definition:
    definition = module.operator(override.operator)
    if definition is None:
        raise SpecError(
            f"{source} replaces {override.name} by {override.operator}, which the module "
            f"{module.name} does not define."
        )
    return definition


def _with_builtins(module: s.Module, overrides: Iterable[Override]) -> s.Module:
    """The module, in which a builtin that replaces something is an operator like any other."""
    wanted = dict.fromkeys(
        override.operator for override in overrides if override.operator != override.name
    )
    names = [name for name in wanted if name in s.DEFINED and name not in module.operators]
    made = [_definition_of(name, -100 * number) for number, name in enumerate(names, 1)]
    return replace(
        module,
        definitions=MappingProxyType(
            {**module.definitions, **{definition.uid: definition for definition in made}}
        ),
        operators=MappingProxyType(
            {**module.operators, **{definition.name: definition.uid for definition in made}}
        ),
    )


def _definition_of(builtin: str, uid: int) -> s.Definition:
    """`a + b` as the body of an operator; SANY's uids are above zero, ours below."""
    where = s.Location(builtin, 1, 1, 1, 1)
    params = tuple(s.Bound(where, uid - n, f"p{n}") for n in range(1, s.ARITY[builtin] + 1))
    return s.Definition(where, uid, builtin, params, s.Builtin(where, builtin, params))


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _check_arity(name: str, arity: int, meaning: Value | s.Definition, source: str) -> None:
    """SpecError if the operator takes other arguments than what replaces it, as in TLC."""
    if isinstance(meaning, s.Definition) and len(meaning.params) != arity:
        raise SpecError(
            f"{source}: {name} takes {_arguments(arity)}, what it is replaced by, {meaning.name}, "
            f"takes {len(meaning.params)}."
        )


def _definitions_named(module: s.Module, name: str, scope: str | None) -> list[int]:
    if scope is None:
        return [module.operators[name]] if name in module.operators else []
    return [
        uid
        for uid, definition in module.definitions.items()
        if definition.name.rpartition("!")[2] == name
        and scope in (definition.location.module, definition.body.location.module)
    ]


def _check_arities(
    declared: Mapping[str, s.Declaration],
    constants: Mapping[str, Value | s.Definition],
    source: str,
) -> None:
    for name, meaning in constants.items():
        arity = len(meaning.params) if isinstance(meaning, s.Definition) else 0
        if arity != declared[name].arity:
            raise SpecError(
                f"{source}: the CONSTANT {name} takes {_arguments(declared[name].arity)}, what "
                f"it is replaced by takes {arity}."
            )
