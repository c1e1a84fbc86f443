"""Each model of the tier `ci` can be gated alone: thresholds are of what was named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from conformance.config import DEFAULT_TIERS
from conformance.events import Event, StageFinished
from conformance.gate import plan
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.registry import BUILT_IN
from conformance.stages.context import Context, Workbench
from conformance.stages.coverage import coverage
from conformance.tla import Action, find_tools
from conformance.verdict import Verdict
from tests.breadth import every
from tests.bundled import OF_CI

pytestmark = pytest.mark.tlc

CI = DEFAULT_TIERS["ci"]
MODELS = [model for model in OF_CI if model.feeds_suite and model.system]


@pytest.fixture(scope="module")
def context() -> Context:
    """Its parser reads the models of one specification together."""
    context = Context()
    context.check.parser.announce(MODELS)
    return context


def taken(prepared: PreparedModel) -> Iterator[Action]:
    """What the first steps from the initial states take: some of the model's actions."""
    spec = prepared.spec
    for state in islice(spec.initial_states(), 1):
        yield from (action for action, _ in spec.successors(state))


@pytest.mark.parametrize("model", every(3, MODELS), ids=lambda model: model.name)
def test_a_model_that_was_named_is_held_to_its_own_actions(context: Context, model: Model) -> None:
    prepared = prepare(model, find_tools(), context.check.parser)
    actions = tuple(taken(prepared))
    bench = SimpleNamespace(
        factory=BUILT_IN[model.system],
        prepared=prepared,
        graph=SimpleNamespace(actions=actions),
        taken_elsewhere={},
    )
    events: list[Event] = []
    gate = plan(context, CI, [model.name], Path("out"))

    coverage(
        replace(context, emit=events.append),
        [cast("Workbench", bench)],
        [{action.name: 1 for action in actions}],
        {},
        chosen=gate.chosen,
    )

    (told,) = [event for event in events if isinstance(event, StageFinished)]
    assert told.verdict is Verdict.PASS, told.summary
    assert told.figures["in_no_suite"], "what the model lacks is told"


def test_a_whole_tier_is_held_to_all_actions_and_a_choice_by_time_is_not() -> None:
    whole = plan(Context(), CI, (), Path("out"))
    assert not whole.chosen
    assert replace(whole, minutes=5.0).chosen
