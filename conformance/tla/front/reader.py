"""Reads SANY's XML into the syntax tree and resolves every INSTANCE on the way.

SANY exports an instance's operator as its original body under a substitution, and that body
calls other operators of the instantiated module, which are exported without one. So a call below
a substitution refers to a copy of its definition, made for that substitution (`_specialised`).
Where a substituted expression mentions parameters (`I(p) == INSTANCE M WITH v <- p`), the copies
take these as leading parameters of their own.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import MappingProxyType

from conformance.tla.errors import SpecError, UnsupportedError
from conformance.tla.front import syntax as s
from conformance.tla.front.sany import OWN_MODULES, export_xml
from conformance.tla.front.sanyxml import (
    BINDING_KINDS,
    BUILTIN_NAMES,
    TEMPORAL_QUANTIFIERS,
    builtin_name,
    child_of,
    declarations,
    local_operators,
    location_of,
    own_arity,
    string_of,
    text_of,
)
from conformance.tla.front.tools import Tools, find_tools

_FLATTENED = (r"\land", r"\lor")
_CONSTANT, _VARIABLE = "2", "3"


def load_module(
    path: Path | str, *, tools: Tools | None = None, search: Sequence[Path] = ()
) -> s.Module:
    """The module at `path` with all that it extends and instantiates, resolved.

    `search` are further folders with modules. SpecError carries SANY's message and place.
    """
    module = Path(path)
    return read_xml(export_xml(module, tools or find_tools(), search), module, search)


def read_xml(xml: bytes, path: Path, search: Sequence[Path] = ()) -> s.Module:
    """The module whose SANY export is `xml`; `path` and `search` tell where its sources are."""
    return _Reader(ET.fromstring(xml)).module(path, search)


@dataclass(frozen=True, slots=True)
class _UidScope:
    """What names mean at a place, by SANY's uid."""

    substitution: Mapping[str, s.Argument] = field(default_factory=dict)
    bound: Mapping[str, s.Bound] = field(default_factory=dict)
    local: Mapping[str, Callable[[], int]] = field(default_factory=dict)
    at: s.Bound | None = None

    def bind(self, names: Iterable[tuple[str, s.Bound]]) -> _UidScope:
        return replace(self, bound={**self.bound, **dict(names)})


class _Reader:
    def __init__(self, root: ET.Element) -> None:
        self._root_name = text_of(root, "RootModule")
        context = root.find("context")
        if context is None:
            raise SpecError("SANY's XML export has no context: the TLA+ tools are not as expected.")
        self._entries = {text_of(entry, "UID"): entry[1] for entry in context}
        self._of_lets = local_operators(self._entries.values())
        self._uids = count(1)
        self._definitions: dict[int, s.Definition] = {}
        self._made: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._extra_params: dict[int, tuple[s.Bound, ...]] = {}
        self._dependencies: dict[str, frozenset[str]] = {}
        self._mentioned: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    # --- the module -----------------------------------------------------------------------

    def module(self, path: Path, search: Sequence[Path]) -> s.Module:
        node = next(
            entry
            for entry in self._entries.values()
            if entry.tag == "ModuleNode" and text_of(entry, "uniquename") == self._root_name
        )
        refs = [(ref.tag, text_of(ref, "UID")) for ref in node if ref.tag.endswith("Ref")]
        declared = [self._entries[uid] for tag, uid in refs if tag == "OpDeclNodeRef"]
        defined = [uid for tag, uid in refs if tag == "UserDefinedOpKindRef"]
        top = _UidScope()
        operators = {
            text_of(self._entries[uid], "uniquename"): self._specialised(uid, top)
            for uid in defined
            if self._standard(uid) is None
        }
        return s.Module(
            name=self._root_name,
            path=path,
            constants=declarations(declared, _CONSTANT),
            variables=declarations(declared, _VARIABLE),
            assumptions=tuple(self._assumptions(refs, top)),
            definitions=MappingProxyType(self._definitions),
            operators=MappingProxyType(operators),
            sources=MappingProxyType(self._sources(path, search)),
        )

    def _assumptions(self, refs: list[tuple[str, str]], top: _UidScope) -> Iterable[s.Assumption]:
        for tag, uid in refs:
            if tag == "AssumeNodeRef":
                node = self._entries[uid]
                definition = node.find("definition/AssumeDefRef")
                name = None
                if definition is not None:
                    name = text_of(self._entries[text_of(definition, "UID")], "uniquename")
                yield s.Assumption(
                    location_of(node), name, self._expr(child_of(node, "body")[0], top)
                )

    def _sources(self, path: Path, search: Sequence[Path]) -> dict[str, Path]:
        names = {text_of(e, "uniquename") for e in self._entries.values() if e.tag == "ModuleNode"}
        folders = [path.parent, *search, *OWN_MODULES]
        paths = {self._root_name: path}
        for name in sorted(names - {self._root_name} - set(s.STANDARD_MODULES)):
            for folder in folders:
                if (file := folder / f"{name}.tla").is_file():
                    paths[name] = file
                    break
        return paths

    # --- definitions ----------------------------------------------------------------------

    def _standard(self, uid: str) -> str | None:
        """The builtin's name if the operator is a standard module's, perhaps instantiated."""
        node = self._entries[uid]
        body = child_of(node, "body")[0]
        while body.tag == "SubstInNode":
            body = child_of(body, "body")[0]
        name = text_of(node, "uniquename").rsplit("!", 1)[-1] or text_of(node, "uniquename")
        names = s.STANDARD_MODULES.get(text_of(child_of(body, "location"), "filename"), frozenset())
        return name if name in names else None

    def _specialised(self, uid: str, scope: _UidScope) -> int:
        """The uid of a module-level definition under the scope's substitution."""
        needed = self._depends(uid)
        substitution = {key: e for key, e in scope.substitution.items() if key in needed}
        made_for = (uid, tuple(sorted((key, repr(e)) for key, e in substitution.items())))
        if made_for not in self._made:
            new = self._made[made_for] = next(self._uids)
            extra = s.free_names(substitution.values())
            self._extra_params[new] = extra
            self._define(new, self._entries[uid], _UidScope(substitution), extra)
        return self._made[made_for]

    def _define(
        self, new: int, node: ET.Element, scope: _UidScope, extra: tuple[s.Bound, ...] = ()
    ) -> None:
        params = [
            self._entry(ref) for ref in child_of(node, "params").iterfind("leibnizparam/*[UID]")
        ]
        named = [(uid, self._fresh(param)) for uid, param in params]
        self._definitions[new] = s.Definition(
            location=location_of(node),
            uid=new,
            name=text_of(node, "uniquename"),
            params=(*extra, *(bound for _, bound in named)),
            body=self._expr(child_of(node, "body")[0], scope.bind(named)),
            recursive=node.find("recursive") is not None,
            substituted=node.find("body/SubstInNode/substs/Subst") is not None,
        )

    def _depends(self, uid: str) -> frozenset[str]:
        """The declarations (by SANY's uid) on which a definition depends, through its calls.

        A superset, where an inner substitution replaces some: that only makes more copies.
        """
        if uid not in self._dependencies:
            declared, pending, reached = set[str](), [uid], {uid}
            while pending:
                mentioned, called = self._mentions(pending.pop())
                declared |= mentioned
                pending += called - reached
                reached |= called
            self._dependencies[uid] = frozenset(declared)
        return self._dependencies[uid]

    def _mentions(self, uid: str) -> tuple[frozenset[str], frozenset[str]]:
        """The declarations and the module's operators that a definition's own text names."""
        if uid not in self._mentioned:
            body = child_of(self._entries[uid], "body")
            called = {text_of(ref, "UID") for ref in body.iter("UserDefinedOpKindRef")}
            self._mentioned[uid] = (
                frozenset(text_of(ref, "UID") for ref in body.iter("OpDeclNodeRef")),
                frozenset(name for name in called if self._standard(name) is None),
            )
        return self._mentioned[uid]

    def _entry(self, ref: ET.Element) -> tuple[str, ET.Element]:
        uid = text_of(ref, "UID")
        return uid, self._entries[uid]

    def _fresh(self, node: ET.Element) -> s.Bound:
        name = text_of(node, "uniquename")
        return s.Bound(location_of(node), next(self._uids), name, int(text_of(node, "arity")))

    # --- expressions ----------------------------------------------------------------------

    def _expr(self, node: ET.Element, scope: _UidScope) -> s.Expr:
        location = location_of(node)
        match node.tag:
            case "OpApplNode":
                return self._application(node, location, scope)
            case "NumeralNode":
                return s.Number(location, _integer(text_of(node, "IntValue"), location))
            case "StringNode":
                return s.String(location, child_of(node, "StringValue").text or "")
            case "AtNode":
                if scope.at is None:
                    raise SpecError(f"{location}: @ stands outside of an EXCEPT.")
                return replace(scope.at, location=location)
            case "LetInNode":
                return self._let(node, location, scope)
            case "SubstInNode" | "APSubstInNode":
                return self._expr(child_of(node, "body")[0], self._substitute(node, scope))
            case "LabelNode":
                return self._expr(child_of(node, "body")[0], scope)
            case "DecimalNode":
                return s.Opaque(location, "a decimal number")
            case _:
                return s.Opaque(location, node.tag)

    def _argument(self, node: ET.Element, scope: _UidScope) -> s.Argument:
        if node.tag != "OpArgNode":
            return self._expr(node, scope)
        location = location_of(node)
        ref = child_of(node, "argument")[0]
        uid, entry = self._entry(ref)
        match ref.tag:
            case "BuiltInKindRef":
                return s.OperatorArg(location, builtin_name(entry))
            case "FormalParamNodeRef":
                return s.OperatorArg(location, replace(scope.bound[uid], location=location))
            case "OpDeclNodeRef" if uid in scope.substitution:
                return scope.substitution[uid]
            case "OpDeclNodeRef":
                return s.OperatorArg(location, s.Constant(location, text_of(entry, "uniquename")))
            case _:
                standard = self._standard(uid)
                if standard is not None:
                    return s.OperatorArg(location, standard)
                return s.OperatorArg(location, self._operator(uid, scope, location))

    def _operator(self, uid: str, scope: _UidScope, location: s.Location) -> int:
        """An operator passed as an argument; a LAMBDA is a definition in SANY's LET form."""
        if uid in scope.local:
            return scope.local[uid]()
        node = self._entries[uid]
        if text_of(node, "uniquename") == "LAMBDA":
            new = next(self._uids)
            self._define(new, node, scope)
            return new
        made = self._specialised(uid, scope)
        if self._extra_params.get(made):
            raise UnsupportedError(
                f"{location}: {text_of(node, 'uniquename')}, an operator of a parametrised "
                "INSTANCE, is passed as an argument, which the reader cannot resolve. Wrap it in "
                "a LAMBDA."
            )
        return made

    def _substitute(self, node: ET.Element, scope: _UidScope) -> _UidScope:
        substitution = dict(scope.substitution)
        for subst in child_of(node, "substs"):
            declared = text_of(child_of(subst, "OpDeclNodeRef"), "UID")
            substitution[declared] = self._argument(subst[1], scope)
        return replace(scope, substitution=substitution)

    def _let(self, node: ET.Element, location: s.Location, scope: _UidScope) -> s.Expr:
        """Reads the definitions that are used, each when first met: they come out in an order
        in which each stands after those that it needs."""
        order: list[int] = []
        local: dict[str, Callable[[], int]] = dict(scope.local)
        inner = replace(scope, local=local)
        for ref in child_of(node, "opDefs"):
            if ref.tag == "UserDefinedOpKindRef":
                uid, entry = self._entry(ref)
                local[uid] = self._once(entry, inner, order)
        body = self._expr(child_of(node, "body")[0], inner)
        return s.Let(location, tuple(order), body) if order else body

    def _once(self, node: ET.Element, scope: _UidScope, order: list[int]) -> Callable[[], int]:
        made: list[int] = []

        def uid() -> int:
            if not made:
                made.append(next(self._uids))
                self._define(made[0], node, scope)
                order.append(made[0])
            return made[0]

        return uid

    def _application(self, node: ET.Element, location: s.Location, scope: _UidScope) -> s.Expr:
        ref = child_of(node, "operator")[0]
        uid, entry = self._entry(ref)
        match ref.tag:
            case "BuiltInKindRef":
                return self._builtin(text_of(entry, "uniquename"), node, location, scope)
            case "FormalParamNodeRef":
                bound = replace(scope.bound[uid], location=location)
                return self._call(bound, bound.name, node, location, scope)
            case "OpDeclNodeRef":
                return self._declared(uid, entry, node, location, scope)
            case "UserDefinedOpKindRef":
                return self._defined(uid, node, location, scope)
            case "TheoremDefRef" | "AssumeDefRef":  # its name stands for its formula
                return self._named_formula(entry, node, location, scope)
            case _:
                return s.Opaque(location, text_of(entry, "uniquename"))

    def _call(
        self,
        target: int | s.Bound | s.Constant,
        name: str,
        node: ET.Element,
        location: s.Location,
        scope: _UidScope,
    ) -> s.Expr:
        args = self._operands(node, scope)
        if not args and not isinstance(target, int):
            return target
        if isinstance(target, int):
            args = (*map(_as_argument, self._extra_params.get(target, ())), *args)
        return s.Call(location, target, name, args)

    def _declared(
        self, uid: str, entry: ET.Element, node: ET.Element, location: s.Location, scope: _UidScope
    ) -> s.Expr:
        name = text_of(entry, "uniquename")
        if uid not in scope.substitution:
            if text_of(entry, "kind") == _VARIABLE:
                return s.Variable(location, name)
            return self._call(s.Constant(location, name), name, node, location, scope)
        value = scope.substitution[uid]
        if not isinstance(value, s.OperatorArg):
            return value
        if isinstance(value.target, str):
            return s.Builtin(location, value.target, self._operands(node, scope))
        return self._call(value.target, name, node, location, scope)

    def _defined(
        self, uid: str, node: ET.Element, location: s.Location, scope: _UidScope
    ) -> s.Expr:
        standard = self._standard(uid)
        if standard is not None:
            args = self._operands(node, scope)
            own = len(self._entries[uid].findall("params/leibnizparam"))
            extra = own - own_arity(self._entries[uid])
            return s.Builtin(location, standard, args[extra:])
        name = text_of(self._entries[uid], "uniquename")
        if uid in scope.local:
            return self._call(scope.local[uid](), name, node, location, scope)
        if uid in self._of_lets:
            return self._selected(uid, node, location, scope)
        return self._call(self._specialised(uid, scope), name, node, location, scope)

    def _selected(
        self, uid: str, node: ET.Element, location: s.Location, scope: _UidScope
    ) -> s.Expr:
        """A LET's operator outside of its LET, where `Op(1)!label(2)!:!local` leads into it.

        SANY makes an operator of it whose parameters are the names bound on the way.
        """
        order: list[int] = []
        local = dict(scope.local)
        inner = replace(scope, local=local)
        local[uid] = self._once(self._entries[uid], inner, order)
        name = text_of(self._entries[uid], "uniquename")
        call = self._call(local[uid](), name, node, location, inner)
        return s.Let(location, tuple(order), call)

    def _named_formula(
        self, entry: ET.Element, node: ET.Element, location: s.Location, scope: _UidScope
    ) -> s.Expr:
        """A theorem's formula; `P(e)!Lemma` has the operands of the parametrised instance P.

        SANY exports no parameters of a theorem: they are what the substitution mentions.
        """
        operands = self._operands(node, scope)
        if not operands:
            return self._expr(entry[-1], scope)
        name = text_of(entry, "uniquename")
        params = self._instance_params(entry[-1], name, len(operands), location)
        named = [(uid, self._fresh(self._entries[uid])) for uid in params]
        new = next(self._uids)
        self._definitions[new] = s.Definition(
            location=location_of(entry),
            uid=new,
            name=name,
            params=tuple(bound for _, bound in named),
            body=self._expr(entry[-1], scope.bind(named)),
            substituted=True,
        )
        return s.Let(location, (new,), s.Call(location, new, name, operands))

    def _instance_params(
        self, body: ET.Element, name: str, count: int, location: s.Location
    ) -> list[str]:
        """The parameters of the instance, in their order: they begin those of its operators."""
        mentioned = {
            text_of(ref, "UID")
            for substs in body.iter("substs")
            for ref in substs.iter("FormalParamNodeRef")
        }
        prefix = name.rpartition("!")[0] + "!"
        for entry in self._entries.values():
            if entry.tag == "UserDefinedOpKind" and text_of(entry, "uniquename").startswith(prefix):
                refs = entry.findall("params/leibnizparam/FormalParamNodeRef")[:count]
                uids = [text_of(ref, "UID") for ref in refs]
                if len(uids) == count and mentioned <= set(uids):
                    return uids
        if len(mentioned) != count:
            raise UnsupportedError(
                f"{location}: the reader cannot tell the parameters of {name}. Write its formula "
                "in place of its name."
            )
        return sorted(mentioned, key=int)  # SANY numbers them as it meets them

    def _operands(self, node: ET.Element, scope: _UidScope) -> tuple[s.Argument, ...]:
        return tuple(self._argument(operand, scope) for operand in child_of(node, "operands"))

    # --- the language's own operators -----------------------------------------------------

    def _builtin(self, name: str, node: ET.Element, loc: s.Location, scope: _UidScope) -> s.Expr:
        operands = list(child_of(node, "operands"))
        if name in BINDING_KINDS:
            binders, inner = self._binders(node, scope)
            return s.Binding(loc, BINDING_KINDS[name], binders, self._expr(operands[0], inner))
        match name:
            case "$IfThenElse":
                condition, then, otherwise = (self._expr(o, scope) for o in operands)
                return s.If(loc, condition, then, otherwise)
            case "$Case":
                return self._case(operands, loc, scope)
            case "$Nop":  # what `Named!:` is around a definition's body
                return self._expr(operands[0], scope)
            case "$FcnApply":
                return s.Apply(loc, *(self._expr(o, scope) for o in operands))
            case "$RcdSelect":
                return s.Field(loc, self._expr(operands[0], scope), string_of(operands[1]))
            case "$RcdConstructor":
                return s.Record(loc, self._fields(operands, scope))
            case "$SetOfRcds":
                return s.RecordSet(loc, self._fields(operands, scope))
            case "$Except":
                return self._except(operands, loc, scope)
            case "$RecursiveFcnSpec":
                return self._recursive_function(node, operands, loc, scope)
            case _ if name in TEMPORAL_QUANTIFIERS:
                return s.Opaque(loc, TEMPORAL_QUANTIFIERS[name])
            case _:
                return self._plain(BUILTIN_NAMES.get(name, name), operands, loc, scope)

    def _plain(
        self, name: str, operands: list[ET.Element], loc: s.Location, scope: _UidScope
    ) -> s.Expr:
        if name not in s.BUILTINS:
            return s.Opaque(loc, name)
        args = [self._argument(o, scope) for o in operands]
        if name in ("WF", "SF"):
            args.reverse()  # SANY puts the subscript first here, and last in [A]_v
        if name in ("ENABLED", "WF", "SF") and not self._renames(scope):
            return s.Opaque(loc, f"{name} under an INSTANCE that is not a renaming of variables")
        if name in _FLATTENED:
            args = [part for arg in args for part in _flat(name, arg)]
        return s.Builtin(loc, name, tuple(args))

    def _renames(self, scope: _UidScope) -> bool:
        """Whether the substitution maps variables to distinct variables: only then may ENABLED
        be substituted into (Specifying Systems, section 17.8)."""
        kinds = ((self._entries[key], value) for key, value in scope.substitution.items())
        values = [v for entry, v in kinds if text_of(entry, "kind") == _VARIABLE]
        names = {value.name for value in values if isinstance(value, s.Variable)}
        return len(names) == len(values)

    def _fields(self, pairs: list[ET.Element], scope: _UidScope) -> tuple[tuple[str, s.Expr], ...]:
        operands = (list(child_of(pair, "operands")) for pair in pairs)
        return tuple((string_of(name), self._expr(value, scope)) for name, value in operands)

    def _case(self, pairs: list[ET.Element], loc: s.Location, scope: _UidScope) -> s.Expr:
        arms: list[tuple[s.Expr, s.Expr]] = []
        other: s.Expr | None = None
        for pair in pairs:
            guard, value = child_of(pair, "operands")
            if guard.tag == "StringNode" and string_of(guard) == "$Other":
                other = self._expr(value, scope)
            else:
                arms.append((self._expr(guard, scope), self._expr(value, scope)))
        return s.Case(loc, tuple(arms), other)

    def _except(self, operands: list[ET.Element], loc: s.Location, scope: _UidScope) -> s.Expr:
        updates: list[s.Update] = []
        for pair in operands[1:]:
            path, value = child_of(pair, "operands")
            at = s.Bound(location_of(pair), next(self._uids), "@")
            steps = tuple(self._expr(step, scope) for step in child_of(path, "operands"))
            new_value = self._expr(value, replace(scope, at=at))
            updates.append(s.Update(location_of(pair), steps, at, new_value))
        return s.Except(loc, self._expr(operands[0], scope), tuple(updates))

    def _recursive_function(
        self, node: ET.Element, operands: list[ET.Element], loc: s.Location, scope: _UidScope
    ) -> s.Expr:
        uid, entry = self._entry(child_of(child_of(node, "boundSymbols"), "unbound")[0])
        function = self._fresh(entry)
        binders, inner = self._binders(node, scope.bind([(uid, function)]), skip_unbound=True)
        return s.RecursiveFunction(loc, function, binders, self._expr(operands[0], inner))

    def _binders(
        self, node: ET.Element, scope: _UidScope, *, skip_unbound: bool = False
    ) -> tuple[tuple[s.Binder, ...], _UidScope]:
        binders: list[s.Binder] = []
        inner = scope
        for symbol in child_of(node, "boundSymbols"):
            if symbol.tag == "unbound" and skip_unbound:
                continue
            refs = [ref for ref in symbol if ref.tag == "FormalParamNodeRef"]
            named = [(uid, self._fresh(entry)) for uid, entry in map(self._entry, refs)]
            inner = inner.bind(named)
            # Every domain stands outside of the names that this quantifier binds.
            domain = self._expr(symbol[-1], scope) if symbol.tag == "bound" else None
            names = tuple(bound for _, bound in named)
            pattern = symbol.find("tuple") is not None
            binders.append(s.Binder(names[0].location, names, domain, pattern))
        return tuple(binders), inner


def _flat(name: str, arg: s.Argument) -> tuple[s.Argument, ...]:
    return arg.args if isinstance(arg, s.Builtin) and arg.operator == name else (arg,)


def _as_argument(bound: s.Bound) -> s.Argument:
    return s.OperatorArg(bound.location, bound) if bound.arity else bound


def _integer(digits: str, location: s.Location) -> int:
    try:
        return int(digits)
    except ValueError:  # Python reads so many digits and no more
        raise UnsupportedError(
            f"{location}: a number of {len(digits):,} digits. Write a smaller one."
        ) from None
