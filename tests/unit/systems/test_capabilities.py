"""What a system can do is asked in one place; the size of adapters has a limit."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.deviations import table
from conformance.systems import protocol
from conformance.systems.capabilities import Capabilities, FactoryCapabilities

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted((ROOT / "conformance").rglob("*.py"))
OPTIONAL = frozenset(
    name
    for module in (protocol, table)
    for name, kind in vars(module).items()
    if inspect.isclass(kind) and (kind.__doc__ or "").startswith("Optional")
)
METHODS, FIELDS = 30, 15
"""Of every class in systems/ that has methods of its own."""


def test_every_capability_is_known_here() -> None:
    assert {"Offers", "Patient", "Snapshots", "Distant", "Deviating", "Tolerant"} <= OPTIONAL
    assert len(OPTIONAL) == 23


@pytest.mark.parametrize("path", SOURCES, ids=lambda one: str(one.relative_to(ROOT)))
def test_only_one_module_asks_what_a_system_can_do(path: Path) -> None:
    if path.name == "capabilities.py":
        return
    asked = {
        name.id
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if call.func.id == "isinstance"
        for name in ast.walk(call.args[1])
        if isinstance(name, ast.Name)
    }
    assert not asked & OPTIONAL, "ask conformance.systems.capabilities"


class Plain:
    """A system without anything that is optional."""

    def __init__(self) -> None:
        self.closed = False


class Able(Plain):
    """One that can do several things."""

    sometimes = ("x",)
    repeatable = True
    longest_call = 3.0
    in_entries = frozenset({"x"})

    def snapshot(self) -> object:
        return self

    def restore(self, snapshot: object) -> None:
        """It has no state."""

    def close(self) -> None:
        self.closed = True


def test_what_a_plain_system_lacks_has_a_value_that_changes_nothing() -> None:
    plain = Capabilities(Plain())
    assert (plain.offers, plain.patient, plain.snapshots) == (None, None, None)
    assert (plain.interruptible, plain.looping, plain.tolerant) == (None, None, None)
    assert plain.dies_midway is None
    assert (plain.repeats, plain.longest_call) == (False, 0.0)
    assert plain.may_lack == plain.in_entries == frozenset()
    assert plain.innermost is plain.system
    plain.close()
    factory = FactoryCapabilities(Plain())
    assert (factory.distant, factory.paced, factory.preparing) == (None, None, None)
    assert (factory.selective, factory.deviating) == (None, None)
    assert dict(factory.beyond_reach) == dict(factory.taken_elsewhere) == {}


def test_what_a_system_can_do_is_found() -> None:
    system = Able()
    able = Capabilities(system)
    assert able.snapshots is system
    assert (able.repeats, able.longest_call) == (True, 3.0)
    assert able.may_lack == able.in_entries == frozenset({"x"})
    able.close()
    assert system.closed


# ---- sizes -----------------------------------------------------------------------------------


def adapters() -> Iterator[ast.ClassDef]:
    """Classes of systems/ that have methods; records are as wide as what they describe."""
    for path in sorted((ROOT / "conformance/systems").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and methods(node) > 2:
                yield node


def methods(node: ast.ClassDef) -> int:
    return sum(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) for one in node.body)


def fields_of(node: ast.ClassDef) -> int:
    declared = {
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    assigned = {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
        if isinstance(one.value, ast.Name) and one.value.id == "self"
    }
    return len(declared | assigned)


CLASSES = {node.name: node for node in adapters()}


def with_bases(name: str) -> list[ast.ClassDef]:
    bases = [base.id for base in CLASSES[name].bases if isinstance(base, ast.Name)]
    inherited = [node for base in bases if base in CLASSES for node in with_bases(base)]
    return [CLASSES[name], *inherited]


@pytest.mark.parametrize("name", CLASSES)
def test_no_class_is_over_the_limits(name: str) -> None:
    """With its base classes: inheritance hides no size."""
    nodes = with_bases(name)
    assert sum(map(methods, nodes)) <= METHODS, "cut a part out of it"
    assert sum(map(fields_of, nodes)) <= FIELDS, "cut a part out of it"
