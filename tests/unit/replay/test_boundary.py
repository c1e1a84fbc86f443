"""What an adapter declares and answers is checked once, and the message says how to mend it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformance.errors import UserError
from conformance.replay.boundary import Boundary
from conformance.replay.engine import Driver
from conformance.replay.interleave import InterruptedSystem
from conformance.systems.protocol import Observation
from conformance.tla import Action, Fn, ModelValue, State, Value, make_function, make_record

SPECIFIED = ("log", "leader", "ghost")
HERE = Path(__file__).name


class Answering:
    """An adapter that answers what it is told to."""

    variables: object = ("log", "leader")
    sometimes: frozenset[str] = frozenset()
    offerable = frozenset({"Fetch"})

    def __init__(self, answer: object = None, offered: object = frozenset()) -> None:
        self.answer, self.offered = answer, offered

    def reset(self, initial: Mapping[str, Value]) -> None:
        pass

    def apply(self, action: Action) -> None:
        pass

    def observe(self) -> object:
        return self.answer

    def offers(self) -> object:
        return self.offered


class Lacking(Answering):
    sometimes = frozenset({"leader"})


def boundary(system: object) -> Boundary:
    return Boundary(system, SPECIFIED)  # type: ignore[arg-type]  # adapters of users are untyped


class Thing:
    pass


RIGHT: list[object] = [
    1,
    True,
    "b1",
    ModelValue("b1"),
    (),
    ("a", (1, 2)),
    frozenset({1, 2}),
    make_function({"b1": (1,), "b2": ()}),
    make_record(epoch=1, offset=2),
]


@pytest.mark.parametrize("value", RIGHT, ids=repr)
def test_every_kind_of_value_is_taken(value: object) -> None:
    shown = {"log": value, "leader": "b1"}
    assert boundary(Answering()).admit(shown) is shown


WRONG: list[tuple[object, str]] = [
    ([1, 2], "Write a sequence or tuple of TLA+ as a Python tuple."),
    ({1, 2}, "Write a set of TLA+ as a frozenset."),
    ({"b1": 1}, "Write a function or record of TLA+ with conformance.tla.make_function"),
    (b"x", "TLA+ has no bytes"),
    (1.0, "write a Python int"),
    (1j, "Write a bool, int, str"),
    (Thing(), "Write a bool, int, str"),
    (Fn({1: "a", 2: "b"}), "a function on 1..2, which is written as a tuple"),
]
NESTED = [
    lambda value: value,
    lambda value: (1, value),
    lambda value: ((1, (value,)),),
    lambda value: Fn({"b1": 0, "b2": value}),
    lambda value: Fn({"b1": Fn({"epoch": value})}),
]


@pytest.mark.parametrize("nest", NESTED, ids=["alone", "entry", "deep", "function", "record"])
@pytest.mark.parametrize(("value", "remedy"), WRONG, ids=lambda part: repr(part)[:20])
def test_what_is_no_value_is_named_at_any_depth(nest: object, value: object, remedy: str) -> None:
    assert callable(nest)
    with pytest.raises(UserError, match="The adapter's observe") as raised:
        boundary(Answering()).admit({"log": nest(value), "leader": "b1"})
    text = str(raised.value)
    assert "log" in text
    assert remedy in text


def test_an_element_of_a_set_and_an_argument_of_a_function_are_looked_at_too() -> None:
    for value in (frozenset({1.5}), Fn({1.5: 1})):  # type: ignore[dict-item]
        with pytest.raises(UserError, match=r"of log is 1\.5"):
            boundary(Answering()).admit({"log": value, "leader": "b1"})


SHOWN: list[tuple[object, str]] = [
    (None, "returns None, which is no mapping"),
    ([("log", 1)], "which is no mapping"),
    ({}, "does not show `log`, `leader`"),
    ({"log": ()}, "does not show `leader`"),
    ({"log": (), "leader": None}, "shows None in `leader`"),
    ({"log": (), "leader": (None,)}, "leader[1] is None, which is no TLA+ value"),
    ({"log": (), "leader": "b1", "ghost": 1}, "shows `ghost`, which `variables` does not name"),
]


@pytest.mark.parametrize(("answer", "says"), SHOWN, ids=lambda part: str(part)[:30])
def test_what_was_declared_must_be_shown(answer: object, says: str) -> None:
    line = inspect.getsourcelines(Answering.observe)[1]
    for shown in (answer, Observation(answer) if isinstance(answer, dict) else answer):
        with pytest.raises(UserError) as raised:
            boundary(Answering()).admit(shown)
        assert says in str(raised.value)
        assert f"{HERE}:{line})" in str(raised.value), "the adapter's own line"


def test_only_what_sometimes_names_may_be_left_out() -> None:
    lacking = boundary(Lacking())
    assert (lacking.always, lacking.sometimes) == (("log",), ("leader",))
    for shown in ({"log": ()}, {"log": (), "leader": None}, {"log": (), "leader": "b1"}):
        assert lacking.admit(shown) is shown
    with pytest.raises(UserError, match="does not show `log`"):
        lacking.admit({"leader": "b1"})


def test_an_observation_is_looked_at_once_and_any_other_mapping_each_time() -> None:
    checked = boundary(Answering())
    same = Observation({"log": (1,), "leader": "b1"})
    assert checked.admit(same) is checked.admit(same)
    changing: dict[str, Value] = {"log": (1,), "leader": "b1"}
    checked.admit(changing)
    del changing["leader"]
    with pytest.raises(UserError):
        checked.admit(changing)


DECLARED: list[tuple[object, str]] = [
    ((), "names no variable, so nothing would be compared"),
    ([], "names no variable"),
    ("log", "is no tuple"),
    (frozenset({"log"}), "is no tuple"),
    (None, "names no variable"),
    (("log", "lag"), "observes lag, which the spec does not declare"),
]


@pytest.mark.parametrize(("declared", "says"), DECLARED, ids=lambda part: str(part)[:20])
def test_what_is_declared_must_fit_the_specification(declared: object, says: str) -> None:
    system = Answering()
    system.variables = declared
    with pytest.raises(UserError, match=says):
        boundary(system)


def test_sometimes_names_declared_variables() -> None:
    system = Answering()
    system.sometimes = frozenset({"ghost"})
    with pytest.raises(UserError, match="names ghost, which `variables`"):
        boundary(system)


OFFERED: list[tuple[object, str]] = [
    (None, "returns None"),
    ([Action("Fetch", ())], "Return a frozenset of actions"),
    (frozenset({"Fetch"}), "Offer conformance.tla.Action"),
    (frozenset({Action("Elect", ())}), "offers Elect, which `offerable` does not name"),
    (frozenset({Action("Fetch", (1.5,))}), "the arguments of Fetch[1] is 1.5"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("offered", "says"), OFFERED, ids=lambda part: str(part)[:30])
def test_what_is_offered_must_be_actions(offered: object, says: str) -> None:
    with pytest.raises(UserError, match="The adapter's offers") as raised:
        boundary(Answering()).admit_offers(offered)
    assert says in str(raised.value)


def test_offers_that_fit_are_taken() -> None:
    offered = frozenset({Action("Fetch", ("b1",))})
    assert boundary(Answering()).admit_offers(offered) == offered


class Stopping(Answering):
    """As interruptions want it."""

    voluntary = unconditional = frozenset[str]()

    def make_interruptible(self) -> bool:
        return True

    def concurrent(self, running: Action, between: Action) -> bool:
        return True

    def in_parts(self, running: Action, between: Action) -> bool:
        return False

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        return ""


def test_the_line_is_that_of_the_adapter_inside_of_ours() -> None:
    wrapped = InterruptedSystem(Stopping())  # type: ignore[arg-type]
    with pytest.raises(UserError, match=f"{HERE}:"):
        boundary(wrapped).admit(None)


class Anything:
    """Equals whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # as of each class with its own __eq__


@pytest.mark.parametrize("shown", [{1}, Anything()], ids=["a set", "what equals everything"])
def test_what_equals_the_expected_value_is_looked_at_too(shown: object) -> None:
    state: State = (frozenset({1}), "b1", 0)
    oracle = SimpleNamespace(variables=SPECIFIED, successors=lambda at, _action: [at])
    system = Answering({"log": state[0], "leader": "b1"})
    driver = Driver(system, oracle, nullcontext())  # type: ignore[arg-type]  # stands for both
    driver.candidates = (state,)
    system.answer = {"log": shown, "leader": "b1"}
    with pytest.raises(UserError, match="no TLA"):
        driver.step(Action("Fetch"))
