"""Random actions: Spark and Python judge every step alike, and the steps they allow are those that
the search finds."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.errors import UnsupportedError
from conformance.tla import infer_schema
from conformance.tla.spark import compile_action_formulas, with_verdicts
from tests.differential.tla.against_tlc import write_workspace
from tests.differential.tla.random_actions import Actions, module

pytestmark = [pytest.mark.spark, pytest.mark.tlc]

SEED, DEPTH, COUNT = 1, 2, 40
VALUES = list(itertools.product(range(3), repeat=3))
"""All values that x, y and z can have; k, the number of the action, is in no formula."""
STEPS = list(itertools.product(VALUES, VALUES))


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    write = Actions(SEED)
    text = module([write.action(DEPTH) for _ in range(COUNT)])
    folder = tmp_path_factory.mktemp("actions")
    return write_workspace(folder, "RandomActions", text, "INIT Init\nNEXT Next\n").spec()


@pytest.fixture(scope="module")
def allowed(spec):
    """By the action's name, the steps that Python's formula allows."""
    formulas = {f"A{i}": spec.action_formula(f"A{i}") for i in range(1, COUNT + 1)}
    return {
        name: {(s, t) for s, t in STEPS if formula((1, *s), (1, *t))}
        for name, formula in formulas.items()
    }


def test_the_search_finds_the_steps_that_the_formula_allows(spec, allowed):
    for number in range(1, COUNT + 1):
        found = {
            (values, following[1:])
            for values in VALUES
            for _, following in spec.successors((number, *values))
        }
        found = {(values, following) for values, following in found if following in VALUES}
        assert found == allowed[f"A{number}"]


def test_spark_judges_every_step_as_python_does(spark, spec, allowed, tmp_path):
    schema = infer_schema(spec.variables, [(1, *values) for values in VALUES])
    compiled, missing = [], []
    for name in allowed:
        try:
            compiled += compile_action_formulas(spec.program, [name], schema)
        except UnsupportedError as error:
            missing.append(str(error))
    assert len(compiled) > COUNT // 2
    assert all("ENABLED" in reason or "the recursion of" in reason for reason in missing)
    assert not [reason for reason in missing if "recursion of Is" in reason]

    pq.write_table(_rows(spec.variables), tmp_path / "rows")
    rows = with_verdicts(spark.read.parquet(str(tmp_path / "rows")), compiled, keep=["row"])
    for row in rows.collect():
        step = STEPS[row["row"]]
        for formula in compiled:
            assert row[formula.name] == (step in allowed[formula.name]), (formula.name, step)


def _rows(variables):
    states = [((1, *s), (1, *t)) for s, t in STEPS]
    columns = {"row": pa.array(range(len(STEPS)), pa.int64())}
    for index, name in enumerate(variables):
        columns[name] = pa.array([now[index] for now, _ in states], pa.int64())
        columns[f"next_{name}"] = pa.array(
            [following[index] for _, following in states], pa.int64()
        )
    return pa.table(columns)
