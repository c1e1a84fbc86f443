"""Constants of the user's own: which models take them, and how they are written."""

from __future__ import annotations

import pytest

from conformance.cli.options import constants_of
from conformance.errors import UserError
from conformance.stages.context import one_model, with_constants

MODEL = one_model("replication/bench/kip320-fine-2b")


def test_a_constant_replaces_the_models() -> None:
    larger = with_constants(MODEL, constants_of("--constant", ["Epochs=1..9", " Offsets = 0..5 "]))

    assert (larger.constants["Epochs"], larger.constants["Offsets"]) == ("1..9", "0..5")
    assert larger.constants["Brokers"] == MODEL.constants["Brokers"]
    assert not larger.feeds_suite
    assert MODEL.constants["Epochs"] != "1..9"


@pytest.mark.parametrize("same", [{}, dict(MODEL.constants)], ids=["none", "its own"])
def test_a_model_with_its_own_constants_stays_what_it_is(same: dict[str, str]) -> None:
    assert with_constants(MODEL, same) is MODEL


def test_a_constant_that_the_model_does_not_have_is_told() -> None:
    with pytest.raises(UserError, match=r"gives no value to a constant Epoch: .*Epochs"):
        with_constants(MODEL, {"Epoch": "1..9"})


@pytest.mark.parametrize("text", ["Epochs", "Epochs=", "Epochs= "])
def test_a_constant_without_a_value_is_told(text: str) -> None:
    with pytest.raises(UserError, match="give NAME=EXPRESSION"):
        constants_of("--constant", [text])


def test_an_expression_may_hold_an_equals_sign() -> None:
    assert constants_of("--constant", ["Epochs={e \\in 1..9: e /= 3}"]) == {
        "Epochs": "{e \\in 1..9: e /= 3}"
    }
