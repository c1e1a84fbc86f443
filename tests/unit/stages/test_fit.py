"""Every shipped specification against every kind of system: driven, or refused in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.registry import BUILT_IN, SPECIFICATIONS, make_system
from conformance.stages.context import Context, reason_against, workbench
from conformance.tla import Action, Value, find_tools
from tests.bundled import MODELS
from tests.kafka_needed import DRIVEN

pytestmark = pytest.mark.tlc
SHIPPED = sorted({model.spec for model in MODELS})
CONTEXT = Context()
"""Shared, so that a specification is parsed once."""


def model_of(specification: str) -> Model:
    """One model of it; which one makes no difference to whether a system fits."""
    return next(model for model in MODELS if model.spec == specification)


def test_the_table_of_specifications_is_that_of_the_models() -> None:
    driven: dict[str, set[str]] = {}
    for model in MODELS:
        if model.system:
            driven.setdefault(model.system, set()).add(model.spec)
    assert {name: set(specs) for name, specs in SPECIFICATIONS.items()} == driven
    assert set(SPECIFICATIONS) == set(BUILT_IN)


@cache
def prepared(specification: str) -> PreparedModel:
    """Bound once for all systems: there are hundreds of pairs."""
    return prepare(model_of(specification), find_tools(), CONTEXT.check.parser)


@pytest.mark.parametrize("system", sorted(BUILT_IN))
@pytest.mark.parametrize("specification", SHIPPED)
def test_a_model_and_a_system_fit_or_the_reason_is_said(specification: str, system: str) -> None:
    reason = reason_against(BUILT_IN[system], prepared(specification))
    if specification in SPECIFICATIONS[system]:
        assert not reason
    else:
        assert f"the model is one of {specification}" in reason


def test_what_does_not_fit_is_refused_in_a_sentence_that_says_what_to_do() -> None:
    with pytest.raises(UserError) as raised:
        workbench(CONTEXT, model_of("Replication"), "group", with_graph=False)
    assert "the model is one of Replication. Name another system" in str(raised.value)


@pytest.mark.parametrize("specification", sorted({*SHIPPED} - DRIVEN))
def test_kafkas_classes_refuse_in_a_sentence_what_they_are_not_driven_by(
    specification: str,
) -> None:
    reason = reason_against("kafka-4.4.0", prepared(specification))
    assert f"not by {specification}" in reason


ADAPTERS = """
import os

class Adapter:
    variables = ("position",)
    def reset(self, initial): pass
    def apply(self, action): pass
    def observe(self): return {}

def missing(constants):
    constants["Brokers"]
    constants["NoSuchConstant"]

def asks(constants):
    assert "NoSuchConstant" not in constants
    assert constants.get("NoSuchConstant") is None
    return Adapter()

def raises(constants):
    raise ZeroDivisionError("boom")

def nothing(constants):
    return None

class Half:
    variables = ()
    def reset(self, initial): pass
"""

FACTORIES = [
    ("missing", r"needs a constant NoSuchConstant.*constants are Brokers"),
    ("raises", r"raised ZeroDivisionError: boom \(.*adapters_of_fit.py:\d+\)"),
    ("nothing", r"returned None, which lacks variables, reset, apply, observe"),
    ("Half", r"raised TypeError"),
]


@pytest.fixture
def adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "adapters_of_fit.py").write_text(ADAPTERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "adapters_of_fit", raising=False)
    return "adapters_of_fit"


CONSTANTS: Mapping[str, Value] = {"Brokers": frozenset({"b1"})}


@pytest.mark.parametrize(("name", "says"), FACTORIES)
def test_what_a_users_factory_does_wrong_is_said_in_a_sentence(
    adapters: str, name: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        make_system(f"{adapters}:{name}", CONSTANTS)


def test_a_factory_may_ask_for_a_constant_that_is_not_there(adapters: str) -> None:
    system = make_system(f"{adapters}:asks", CONSTANTS)
    system.apply(Action("Any", ()))


OFFERING = """
class Adapter:
    variables = {variables}
    offerable = {offerable}
    def __init__(self, constants): pass
    def reset(self, initial): pass
    def apply(self, action): pass
    def observe(self): return {{}}
    def offers(self): return frozenset()
"""
OFFERABLE = [
    ('frozenset({"NoSuchAction"})', "names NoSuchAction, which is no action of Replication"),
    (
        'frozenset({"ElectUncleanLeader", "TypeOK"})',
        "names TypeOK, which is no action of Replication",
    ),
    ('"ElectUncleanLeader"', "is 'ElectUncleanLeader': make it a frozenset of names"),
    ("property(lambda self: 1 / 0)", "raised ZeroDivisionError"),
    ('frozenset({"ElectUncleanLeader"})', ""),
]


@pytest.mark.parametrize(("offerable", "says"), OFFERABLE)
def test_an_offer_that_nothing_would_compare_is_refused(
    offerable: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = prepared("Replication")
    text = OFFERING.format(variables=model.spec.variables, offerable=offerable)
    (tmp_path / "adapter_that_offers.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "adapter_that_offers", raising=False)
    reason = reason_against("adapter_that_offers:Adapter", model)
    assert (says in reason) if says else not reason
