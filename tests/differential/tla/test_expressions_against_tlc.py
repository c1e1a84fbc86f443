"""Random expressions: TLC's value and ours are the same."""

from __future__ import annotations

import pytest

from conformance.tla import equal, format_value
from tests.differential.tla.against_tlc import write_workspace
from tests.differential.tla.random_expressions import Expressions, module

pytestmark = pytest.mark.tlc


@pytest.mark.parametrize(("seed", "depth", "count"), [(1, 2, 400), (2, 3, 300), (3, 4, 150)])
def test_random_expressions_have_tlcs_value(seed, depth, count, tmp_path):
    write = Expressions(seed)
    texts = [write.any(depth) for _ in range(count)]
    workspace = write_workspace(
        tmp_path, "Random", module("Random", texts), "INIT Init\nNEXT Next\n"
    )
    assert workspace.run_tlc().exit_code == 0
    tlc = dict(value for (value,) in workspace.graph(("v",)).states)
    ours = dict(value for (value,) in workspace.spec().initial_states())
    assert len(tlc) == count
    assert set(ours) == set(tlc)
    for number, text in enumerate(texts, 1):
        assert equal(ours[number], tlc[number]), (
            f"{text}: TLC {format_value(tlc[number])}, ours {format_value(ours[number])}"
        )
