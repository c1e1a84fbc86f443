"""The clean tree at the bench's effort: steps over several requests, interrupted between two."""

from __future__ import annotations

import pytest

from conformance.bugs.worker import MEETINGS
from conformance.modelcheck.manifest import Model
from conformance.replay.interruptions import interrupt_steps
from conformance.stages.context import Context, workbench
from conformance.verdict import Verdict
from tests.breadth import every
from tests.bundled import OF_CI

pytestmark = pytest.mark.tlc

MODELS = [model for model in OF_CI if model.system == "acknowledgement" and model.feeds_suite]
"""All that let requests wait; `min-insync-two-produces-2b` lets two of a kind wait."""


@pytest.mark.parametrize("model", every(3, MODELS), ids=lambda model: model.name.rpartition("/")[2])
def test_the_clean_tree_has_no_false_alarm_with_the_samples_of_the_bench(model: Model) -> None:
    bench = workbench(Context(), model)

    result = interrupt_steps(bench.graph, bench.make_system, samples=MEETINGS, seed=1)

    assert result.verdict is Verdict.PASS
    assert sum(result.interruptions.values()) > 2_000
