"""What the JUnit classes of TLC's own test suite run, and what they expect: read from their text.

A class says in its constructor which module TLC is to check, with which arguments, and how TLC
is to end. Nothing of Java is executed: constructors are followed to `ModelCheckerTestCase` with the
few kinds of expressions that they use; a class that does more is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BASE = "ModelCheckerTestCase"
_NAMED_BY_CLASS = frozenset({"SuiteTestCase", "SuiteETestCase"})
"""Base classes whose module is the name of the class, in lower case."""

_WRITTEN_IN_JAVA = ("@Evaluation(", "@TLAPlusOperator", "JAVA_METHOD_OVERRIDE")
_REFUSED_FORMULA = "assertTrue(recorder.recorded(EC.TLC_LIVE_CANNOT_HANDLE_FORMULA))"
_TOO_LARGE = "TLC cannot handle a temporal formula of this size"

EXIT_CODES: Mapping[str, int] = {
    "SUCCESS": 0,
    "VIOLATION_ASSUMPTION": 10,
    "VIOLATION_DEADLOCK": 11,
    "VIOLATION_SAFETY": 12,
    "VIOLATION_LIVENESS": 13,
    "VIOLATION_ASSERT": 14,
    "FAILURE_SPEC_EVAL": 75,
    "FAILURE_SAFETY_EVAL": 76,
    "FAILURE_LIVENESS_EVAL": 77,
    "ERROR_SPEC_PARSE": 150,
    "ERROR_CONFIG_PARSE": 151,
    "ERROR_STATESPACE_TOO_LARGE": 152,
    "ERROR_SYSTEM": 153,
    "ERROR": 255,
}
"""TLC's exit codes by the names that its tests use (tlc2.output.EC.ExitStatus)."""


@dataclass(frozen=True, slots=True)
class TestClass:
    """One run of TLC: `module` and `folder` as the class names them; the exit code it expects.

    `stats` are the numbers of generated and of distinct states that it expects, if it says so.
    `special` says in what it is no run of TLC with files and arguments alone.
    """

    __test__ = False

    name: str
    module: str
    folder: str
    arguments: tuple[str, ...]
    exit_code: int | None
    """None where the class does not look at it."""
    deadlock: bool
    stats: tuple[int, int] | None
    special: str
    bound: str = ""
    """What the class expects TLC to refuse for its size alone."""

    def option(self, name: str) -> str | None:
        """What follows an option of the command line."""
        if name not in self.arguments:
            return None
        return self.arguments[self.arguments.index(name) + 1]

    @property
    def module_name(self) -> str:
        """Without an extension."""
        return self.module.removesuffix(".tla")

    @property
    def config(self) -> str:
        """The file with the configuration: that of the module if none is named."""
        named = self.option("-config") or f"{self.module_name}.cfg"
        return named if named.endswith((".cfg", ".tla")) else f"{named}.cfg"


@dataclass(frozen=True, slots=True)
class _Constructor:
    params: tuple[tuple[str, str], ...]
    """Types and names."""
    calls: str
    """`super` or `this`."""
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Class:
    name: str
    parent: str
    abstract: bool
    body: str
    constructors: tuple[_Constructor, ...]
    fields: Mapping[str, str] = field(default_factory=dict)


class _Unread(Exception):
    """An expression that is beyond this reader."""


def read_classes(folder: Path) -> tuple[list[TestClass], list[str]]:
    """The classes below a folder that run TLC, sorted by name, and the names of those not read."""
    classes: dict[str, _Class] = {}
    for path in sorted(folder.rglob("*.java")):
        parsed = _parse(path.read_text(encoding="utf-8", errors="replace"))
        if parsed is not None:
            classes[parsed.name] = parsed
    reader = _Reader(classes)
    read, unread = [], []
    for name, one in sorted(classes.items()):
        if one.abstract or not reader.runs_tlc(one) or "@Ignore" in one.body:
            continue
        try:
            read.append(reader.test_class(one))
        except _Unread:
            unread.append(name)
    return read, unread


def _parse(text: str) -> _Class | None:
    text = re.sub(r"/\*.*?\*/|(?m:^[ \t]*//[^\n]*$)", "", text, flags=re.DOTALL)
    head = re.search(r"(abstract\s+)?class\s+(\w+)\s+extends\s+(\w+)[^{]*\{", text)
    if head is None:
        return None
    body, name = text[head.end() :], head[2]
    constructors = tuple(
        _Constructor(_params(found[1]), found[2], tuple(_split(_balanced(body, found.end()))))
        for found in re.finditer(
            rf"(?:public|protected|private)\s+{name}\s*\(([^)]*)\)[^{{;]*\{{\s*(super|this)\s*\(",
            body,
        )
    )
    strings = re.findall(r"\bfinal\s+String\s+(\w+)\s*=\s*([^;]+);", body)
    prefix = text[: head.start()]
    ignored = "@Ignore" if re.search(r"@Ignore[^\n]*\s*(public\s+)?$", prefix) else ""
    return _Class(name, head[3], head[1] is not None, ignored + body, constructors, dict(strings))


def _params(text: str) -> tuple[tuple[str, str], ...]:
    words = [part.replace("final ", "").split() for part in text.split(",") if part.strip()]
    return tuple((" ".join(part[:-1]), part[-1]) for part in words)


def _balanced(text: str, start: int) -> str:
    """From after an opening parenthesis to before its closing one."""
    depth, position = 1, start
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[(){}]', text[start:]):
        position = start + token.start()
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token[0], 0)
        if depth == 0:
            break
    return text[start:position]


def _split(text: str, sign: str = ",") -> Iterator[str]:
    """The parts between the signs that stand outermost."""
    depth, begun = 0, 0
    for token in re.finditer(rf'"(?:[^"\\]|\\.)*"|[(){{}}]|\{sign}', text):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token[0], 0)
        if token[0] == sign and depth == 0:
            yield text[begun : token.start()].strip()
            begun = token.end()
    if text[begun:].strip():
        yield text[begun:].strip()


_Value = str | int | tuple[str, ...]


class _Reader:
    def __init__(self, classes: Mapping[str, _Class]) -> None:
        self._classes = classes

    def runs_tlc(self, one: _Class) -> bool:
        return BASE in self._ancestors(one)

    def _ancestors(self, one: _Class) -> list[str]:
        names = [one.name]
        while (parent := self._classes.get(names[-1])) is not None and parent.name != BASE:
            names.append(parent.parent)
        return names

    def test_class(self, one: _Class) -> TestClass:
        ancestors = self._ancestors(one)
        values = self._construct(one, [])
        strings = [value for value in values if isinstance(value, str)]
        lists = [value for value in values if isinstance(value, tuple)]
        codes = [value for value in values if isinstance(value, int)]
        if not strings or len(strings) > 2:
            raise _Unread
        named = _NAMED_BY_CLASS & set(ancestors)
        return TestClass(
            name=one.name,
            module=one.name.lower() if named else strings[0],
            folder=strings[1] if len(strings) == 2 else "",
            arguments=lists[0] if lists else (),
            exit_code=self._exit_code(ancestors, codes[0] if codes else 0),
            deadlock=self._says(ancestors, "checkDeadLock") == "true",
            stats=self._stats(one, named),
            special=self._special(ancestors),
            bound=_TOO_LARGE if _REFUSED_FORMULA in one.body else "",
        )

    def _exit_code(self, ancestors: Sequence[str], expected: int) -> int | None:
        known = (self._classes[name].body for name in ancestors if name != BASE)
        return None if any("void assertExitStatus()" in body for body in known) else expected

    def _special(self, ancestors: Sequence[str]) -> str:
        bodies = [self._classes[name].body for name in ancestors if name != BASE]
        if any("distributed" in body.lower() for body in (*ancestors, *bodies)):
            return "TLC is distributed over processes"
        if any(word in body for body in bodies for word in _WRITTEN_IN_JAVA):
            return "an operator is written in Java"
        found = (
            re.search(r"System\.setProperty\((?!FPSet|.*FPSet)([^;]*)\)", body) for body in bodies
        )
        name = next((match[1] for match in found if match), None)
        return "" if name is None else f"a system property of Java is set: {name[:60]}"

    def _says(self, ancestors: Sequence[str], method: str) -> str | None:
        for name in ancestors:
            known = self._classes.get(name)
            found = known and re.search(rf"\b{method}\(\)\s*\{{\s*return\s+(\w+)", known.body)
            if found:
                return found[1]
        return None

    def _stats(self, one: _Class, named: frozenset[str]) -> tuple[int, int] | None:
        text = one.body
        found = re.search(r'TLC_STATS,\s*"([\d,]+)",\s*"([\d,]+)"', text)
        if found is None and "SuiteTestCase" in named:
            found = re.search(r'super\(\s*"(\d+)",\s*"(\d+)"', text)
            if found is None:
                return 2, 1  # what SuiteTestCase expects if it is told nothing
        if found is None:
            return None
        return int(found[1].replace(",", "")), int(found[2].replace(",", ""))

    def _construct(self, one: _Class, given: Sequence[_Value]) -> list[_Value]:
        """What the base class is constructed with."""
        if one.name == BASE or (one.name in _NAMED_BY_CLASS and not one.constructors):
            return list(given)
        if one.name in _NAMED_BY_CLASS:
            rest = [value for value in given if not isinstance(value, str)]
            return ["by class", "suite", *rest]
        if not one.constructors and not given:
            return self._construct(self._parent(one), [])
        chosen = next(filter(lambda made: _fits(made, given), one.constructors), None)
        if chosen is None:
            raise _Unread
        names = {name: value for (_, name), value in zip(chosen.params, given, strict=True)}
        passed = [self._value(arg, names, one) for arg in chosen.args]
        target = one if chosen.calls == "this" else self._parent(one)
        return self._construct(target, passed)

    def _parent(self, one: _Class) -> _Class:
        if one.parent not in self._classes:
            raise _Unread
        return self._classes[one.parent]

    def _value(self, text: str, names: Mapping[str, _Value], one: _Class) -> _Value:
        text = text.strip()
        array = re.match(r"new\s+String\s*\[\s*\]\s*\{(.*)\}$", text, re.DOTALL)
        if array is not None:
            return tuple(str(self._value(part, names, one)) for part in _split(array[1]))
        parts = list(_split(text, "+"))
        if len(parts) > 1:
            return "".join(str(self._value(part, names, one)) for part in parts)
        return self._atom(text, names, one)

    def _atom(self, text: str, names: Mapping[str, _Value], one: _Class) -> _Value:
        if text in names:
            return names[text]
        if re.fullmatch(r'"(?:[^"\\]|\\.)*"', text):
            return text[1:-1].replace('\\"', '"')
        if re.fullmatch(r"(\w+\.)*separator(Char)?", text):
            return "/"
        if re.fullmatch(r"(Long|Integer)\.toString\((-?\d+)L?\)", text):
            return text.partition("(")[2].rstrip("L)")
        if text.endswith("MODEL_CHECK_FILE_BASENAME"):
            return "MC"
        if re.fullmatch(r"(\w+\.)*EC\.ExitStatus\.\w+|ExitStatus\.\w+", text):
            return EXIT_CODES[text.rpartition(".")[2]]
        field_of = self._classes.get(text.partition(".")[0], one)
        name = text.rpartition(".")[2]
        if name in field_of.fields:
            return self._value(field_of.fields[name], names, field_of)
        if text in ("true", "false"):
            return text
        raise _Unread


def _fits(made: _Constructor, given: Sequence[_Value]) -> bool:
    kinds = {"String": str, "int": int, "String[]": tuple, "boolean": str}
    return len(made.params) == len(given) and all(
        isinstance(value, kinds.get(kind, object))
        for (kind, _), value in zip(made.params, given, strict=True)
    )
