"""Reads TLC's configuration files (.cfg) into an immutable `ModelConfig`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from conformance.tla.errors import DataError, SpecError
from conformance.tla.values import ModelValue, Value, make_set
from conformance.tla.values.strict_json import DEEPEST
from conformance.tla.values.text import whole_number


@dataclass(frozen=True, slots=True)
class Override:
    """`name <- operator`, in the definitions of `module` only if one is named."""

    name: str
    operator: str
    module: str | None = None


@dataclass(frozen=True, slots=True)
class ScopedValue:
    """`name = [module] value`: the value of an operator in the definitions of that module."""

    name: str
    value: Value
    module: str


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What a .cfg says. `constants` are values, `overrides` replace operators by operators.

    `postconditions` are for TLC alone. `ignored` are entries that nobody here follows (`ALIAS`,
    `_POSSIBLE` and other names with an underscore), as they are written.
    """

    constants: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    overrides: tuple[Override, ...] = ()
    scoped_values: tuple[ScopedValue, ...] = ()
    specification: str | None = None
    init: str | None = None
    next: str | None = None
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    action_constraints: tuple[str, ...] = ()
    symmetry: str | None = None
    view: str | None = None
    check_deadlock: bool = True
    postconditions: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    source: str = ""


class _ConfigToken(NamedTuple):
    text: str
    line: int


_SECTIONS = {
    "CONSTANT": "constants",
    "CONSTANTS": "constants",
    "SPECIFICATION": "specification",
    "INIT": "init",
    "NEXT": "next",
    "INVARIANT": "invariants",
    "INVARIANTS": "invariants",
    "PROPERTY": "properties",
    "PROPERTIES": "properties",
    "CONSTRAINT": "constraints",
    "CONSTRAINTS": "constraints",
    "ACTION_CONSTRAINT": "action_constraints",
    "ACTION_CONSTRAINTS": "action_constraints",
    "SYMMETRY": "symmetry",
    "VIEW": "view",
    "CHECK_DEADLOCK": "check_deadlock",
    "ALIAS": "alias",
    "_PERIODIC": "_periodic",
    "_RL_REWARD": "_rl_reward",
    "_POSSIBLE": "possible",
    "POSTCONDITION": "postconditions",
    "POSTCONDITIONS": "postconditions",
}
_IGNORED = ("alias", "_periodic", "_rl_reward")
_SINGLE = ("specification", "init", "next", "symmetry", "view", "check_deadlock", *_IGNORED)
_LISTS = (
    "invariants", "properties", "constraints", "action_constraints", "postconditions", "possible",
)  # fmt: skip
_NOT_OURS = {"TYPE", "TYPE_CONSTRAINT"}

_OPERATORS = (
    "- -. + ++ -- * ** / // /= % %% ^ ^^ ^+ ^* ^# < > <= =< >= => <=> .. ... :> @@ # ## $ $$ & && "
    r"| || |- -| |= =| ?? ! !! := ::= <: ~ ~> (+) (-) (.) (/) (\X)"
)
"""The operators of TLA+ that are written with signs; the others begin with a backslash."""
_SIGNS = "|".join(map(re.escape, sorted(_OPERATORS.split(), key=len, reverse=True)))

_TOKEN = re.compile(
    r'(?P<space>\s+)|(?P<line>\\\*[^\n]*)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>-?\w+(?:!\w+)*)'
    rf"|(?P<symbol><-|[{{}},\[\]])|(?P<operator>{_SIGNS}|\\\w+|\\)|="
)
_OPERATOR = re.compile(rf"(?:{_SIGNS}|\\\w+|\\)")
_ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n", "\\t": "\t", "\\r": "\r", "\\f": "\f"}


def parse_config(text: str, *, source: str = "configuration") -> ModelConfig:
    """The configuration in `text`; `source` names it in messages. Raises SpecError."""
    return _Parser(list(_tokens(text, source)), source).config()


def _tokens(text: str, source: str) -> Iterator[_ConfigToken]:
    if len(text) > _LONGEST:
        raise SpecError(f"{source} has {len(text):,} characters, more than {_LONGEST:,}.")
    text = _without_block_comments(text)
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SpecError(
                f"{source}:{line}: {text[position]!r} means nothing in a configuration."
            )
        if match.lastgroup not in ("space", "line"):
            yield _ConfigToken(match.group(), line)
        line += match.group().count("\n")
        position = match.end()


_LONGEST = 1_000_000
"""Characters of a configuration: SANY would need minutes for the names in a much longer one."""


def _without_block_comments(text: str) -> str:
    """Comments (* ... *) nest; their line ends stay, so that lines keep their numbers."""
    kept: list[str] = []
    depth = 0
    for part in re.split(r"(\(\*|\*\))", text):
        if part == "(*":
            depth += 1
        elif part == "*)" and depth:
            depth -= 1
        else:
            kept.append(part if depth == 0 else "\n" * part.count("\n"))
    return "".join(kept)


class _Parser:
    def __init__(self, tokens: list[_ConfigToken], source: str) -> None:
        self._tokens = tokens
        self._source = source
        self._next = 0
        self._depth = 0
        self._constants: dict[str, Value] = {}
        self._overrides: list[Override] = []
        self._scoped_values: list[ScopedValue] = []
        self._single: dict[str, str] = {}
        self._lists: dict[str, list[str]] = {name: [] for name in _LISTS}

    def config(self) -> ModelConfig:
        while self._peek() is not None:
            self._section(self._take())
        single = self._single
        if "specification" in single and ("init" in single or "next" in single):
            raise SpecError(
                f"{self._source} gives both SPECIFICATION and INIT or NEXT. Keep one of the two."
            )
        return ModelConfig(
            constants=MappingProxyType(self._constants),
            overrides=tuple(self._overrides),
            scoped_values=tuple(self._scoped_values),
            specification=single.get("specification"),
            init=single.get("init"),
            next=single.get("next"),
            invariants=tuple(self._lists["invariants"]),
            properties=tuple(self._lists["properties"]),
            constraints=tuple(self._lists["constraints"]),
            action_constraints=tuple(self._lists["action_constraints"]),
            symmetry=single.get("symmetry"),
            view=single.get("view"),
            check_deadlock=single.get("check_deadlock", "TRUE") == "TRUE",
            postconditions=tuple(self._lists["postconditions"]),
            ignored=(
                *(f"{key.upper()} {single[key]}" for key in _IGNORED if key in single),
                *(f"_POSSIBLE {name}" for name in self._lists["possible"]),
            ),
            source=self._source,
        )

    def _section(self, keyword: _ConfigToken) -> None:
        if keyword.text in _NOT_OURS:
            raise self._error(keyword, f"{keyword.text} is not supported")
        section = _SECTIONS.get(keyword.text)
        if section is None:
            raise self._error(
                keyword, f"a keyword such as CONSTANT or INVARIANT is expected, not {keyword.text}"
            )
        if section == "constants":
            while not self._at_section():
                self._constant()
        elif section in _SINGLE:
            if section in self._single:
                raise self._error(keyword, f"{keyword.text} is given twice")
            self._single[section] = self._name()
        else:
            while not self._at_section():
                self._lists[section].append(self._name())

    def _constant(self) -> None:
        name = self._name_or_operator()
        sign = self._take("= or <-")
        module = self._scope()
        if sign.text == "=":
            value = self._value()
            if module is None and self._constants.get(name) == value:
                return
            self._once(sign, name, module)
            if module is None:
                self._constants[name] = value
            else:
                self._scoped_values.append(ScopedValue(name, value, module))
        elif sign.text == "<-":
            self._once(sign, name, module)
            self._overrides.append(Override(name, self._name_or_operator(), module))
        else:
            raise self._error(sign, f"= or <- is expected after {name}, not {sign.text}")

    def _scope(self) -> str | None:
        """The module of `[Module]`, if that comes next."""
        if self._peek() != "[":
            return None
        self._take()
        module = self._name()
        self._expect("]")
        return module

    def _once(self, sign: _ConfigToken, name: str, module: str | None) -> None:
        """A name has one meaning; TLC has no objection to what says the same twice."""
        given = {(override.name, override.module) for override in self._overrides}
        given |= {(value.name, value.module) for value in self._scoped_values}
        if (name, module) in given or (module is None and name in self._constants):
            raise self._error(sign, f"{name} is given twice")

    def _value(self) -> Value:
        token = self._take("a value")
        text = token.text
        if text == "{":
            return self._set(token)
        if text in ("TRUE", "FALSE"):
            return text == "TRUE"
        if text.startswith('"'):
            return re.sub(r"\\.", lambda m: _ESCAPES.get(m.group(), m.group()), text[1:-1])
        if re.fullmatch(r"-?\d+", text):
            try:
                return whole_number(text)
            except DataError as error:
                raise self._error(token, str(error).rstrip(".")) from None
        if re.fullmatch(r"\w+", text):
            return ModelValue(text)
        raise self._error(token, f"a value is expected, not {text}")

    def _set(self, opening: _ConfigToken) -> Value:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(opening, f"sets nest more than {DEEPEST} deep")
        items: list[Value] = []
        while self._peek() != "}":
            if items:
                self._expect(",")
            items.append(self._value())
        self._take()
        self._depth -= 1
        try:
            return make_set(items)
        except TypeError as error:
            raise self._error(opening, str(error)) from None

    def _name(self) -> str:
        token = self._take("a name")
        if not re.match(r"\w", token.text):
            raise self._error(token, f"a name is expected, not {token.text}")
        return token.text

    def _name_or_operator(self) -> str:
        """What a CONSTANT line can name: also an infix, prefix or postfix operator, as `+`."""
        if _OPERATOR.fullmatch(self._peek() or ""):
            return self._take().text
        return self._name()

    def _expect(self, text: str) -> None:
        token = self._take(text)
        if token.text != text:
            raise self._error(token, f"{text} is expected, not {token.text}")

    def _peek(self) -> str | None:
        return self._tokens[self._next].text if self._next < len(self._tokens) else None

    def _at_section(self) -> bool:
        text = self._peek()
        if text is None:
            return True
        following = self._tokens[self._next + 1].text if self._next + 1 < len(self._tokens) else ""
        return (text in _SECTIONS or text in _NOT_OURS) and following not in ("=", "<-")

    def _take(self, expected: str = "more") -> _ConfigToken:
        if self._next >= len(self._tokens):
            raise SpecError(f"{self._source} ends where {expected} is expected.")
        self._next += 1
        return self._tokens[self._next - 1]

    def _error(self, token: _ConfigToken, message: str) -> SpecError:
        return SpecError(f"{self._source}:{token.line}: {message}.")
