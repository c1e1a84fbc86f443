"""States whose values have no type in common are stored all the same."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.tla import Fn, ModelValue, Value
from conformance.tla.values.types import is_mixed
from conformance.traces.states import infer_columns

SHAPES = frozenset({Fn({"kind": "a", "n": 1}), Fn({"kind": "b", "to": ModelValue("m")})})


@pytest.mark.parametrize(
    "values",
    [
        [SHAPES, frozenset()],
        [ModelValue("none"), "b1"],
        [(1, "a"), ()],
        [Fn({"a": 1}), Fn({"a": "x"})],
        ["1", 1, True],
    ],
    ids=["records of two shapes", "model value and string", "sequence", "field", "scalars"],
)
def test_a_column_holds_values_of_several_kinds(values: list[Value]) -> None:
    states = [(value,) for value in values]
    columns = infer_columns(["x"], states)
    assert is_mixed(columns.schema.variables[0][1])
    assert columns.from_json(columns.to_json()) == columns
    table = columns.table(np.arange(len(states), dtype=np.int64), states)
    read = columns.states(table)
    assert [repr(state) for state in read] == [repr(state) for state in states]
