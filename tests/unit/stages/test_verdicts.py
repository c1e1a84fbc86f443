"""What stages make of their engines' results: the verdicts that decide a gate."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from conformance.compared import ComparedStates
from conformance.config import Settings, Thresholds
from conformance.events import Event, StageFinished, StageStarted
from conformance.replay.engine import Divergence
from conformance.replay.explore import ExploreResult
from conformance.replay.profile import Profile
from conformance.replay.weights import Frequencies
from conformance.stages.context import Context, Workbench, stage
from conformance.stages.coverage import coverage
from conformance.stages.explore import _summary, _verdict
from conformance.story.kind import BehaviourKind
from conformance.tla import Action
from conformance.verdict import Verdict


def bench(factory: str, *actions: Action, elsewhere: Mapping[str, str] | None = None) -> Workbench:
    """What the stage asks of a bench: its system and its spec's actions."""
    kinds = tuple(dict.fromkeys(one.name for one in actions))
    prepared = SimpleNamespace(spec=SimpleNamespace(all_kinds=kinds))
    return cast(
        "Workbench",
        SimpleNamespace(factory=factory, prepared=prepared, taken_elsewhere=elsewhere or {}),
    )


TAKE_A, TAKE_B, DROP = Action("Take", ("a",)), Action("Take", ("b",)), Action("Drop")
FULL = {"states": (10, 10), "transitions": (20, 20)}


def held(
    benches: list[Workbench],
    replayed: list[Mapping[str, int]],
    covered: Mapping[str, tuple[int, int]],
    thresholds: Thresholds,
) -> dict[str, StageFinished]:
    events: list[Event] = []
    context = Context(settings=Settings(thresholds=thresholds), emit=events.append)
    by_system = {one.factory: covered for one in benches}
    coverage(context, benches, replayed, by_system)
    finished = [event for event in events if isinstance(event, StageFinished)]
    assert [e.subject for e in events if isinstance(e, StageStarted)] == [
        e.subject for e in finished
    ]
    assert {event.stage for event in finished} == {"coverage"}
    return {event.subject: event for event in finished}


@pytest.mark.parametrize(
    ("steps", "verdict", "told", "not_told"),
    [
        ({"Take": 1}, Verdict.PASS, "Drop is left to the suites of Base", "never taken"),
        ({"Take": 1, "Drop": 1}, Verdict.PASS, "2 of 2 actions", "left to"),
        ({"Drop": 1}, Verdict.INCONCLUSIVE, "never taken in a replay: Take", "left to"),
    ],
)
def test_only_a_step_that_another_specification_takes_may_be_missing(
    steps: dict[str, int], verdict: Verdict, told: str, not_told: str
) -> None:
    borrowed = bench("m:f", TAKE_A, DROP, elsewhere={"Drop": "Base"})
    found = held([borrowed], [steps], FULL, Thresholds())["m:f"]
    assert found.verdict is verdict
    assert told in found.summary
    assert not_told not in found.summary


def test_what_a_stopped_replay_left_out_is_told_as_its_consequence() -> None:
    events: list[Event] = []
    coverage(Context(emit=events.append), [bench("m:f", TAKE_A, DROP)], [{}], {}, stopped=[True])
    (told,) = [event for event in events if isinstance(event, StageFinished)]
    assert "a replay stopped at a divergence" in told.summary
    assert "never taken" not in told.summary
    assert (told.verdict, told.consequence) == (Verdict.INCONCLUSIVE, True)


@pytest.mark.parametrize(
    ("covered", "stopped"),
    [
        pytest.param({}, False, id="nothing stopped"),
        pytest.param({"states": (1, 10)}, True, id="the traces fell short too"),
    ],
)
def test_what_no_stopped_replay_explains_is_no_consequence(
    covered: Mapping[str, tuple[int, int]], stopped: bool
) -> None:
    events: list[Event] = []
    context = Context(Settings(thresholds=Thresholds(states=0.5)), events.append)
    coverage(context, [bench("m:f", TAKE_A, DROP)], [{}], {"m:f": covered}, stopped=[stopped])
    (told,) = [event for event in events if isinstance(event, StageFinished)]
    assert (told.verdict, told.consequence) == (Verdict.INCONCLUSIVE, False)


@pytest.mark.parametrize(
    ("taken", "covered", "thresholds", "short"),
    [
        ({"Take": 1, "Drop": 2}, FULL, Thresholds(states=1.0, transitions=1.0), ""),
        ({"Take": 1}, FULL, Thresholds(), "actions"),
        ({"Take": 1, "Drop": 0}, FULL, Thresholds(), "actions"),
        ({"Take": 1}, FULL, Thresholds(actions=0.5), ""),
        ({"Take": 1}, FULL, Thresholds(actions=0.51), "actions"),
        ({"Take": 1, "Drop": 1}, {"states": (4, 10)}, Thresholds(states=0.4), ""),
        ({"Take": 1, "Drop": 1}, {"states": (4, 10)}, Thresholds(states=0.41), "states"),
        (
            {"Drop": 1},
            {"states": (4, 10), "transitions": (0, 5)},
            Thresholds(states=0.5, transitions=0.1),
            "actions, states, transitions",
        ),
        # A model without transitions cannot be covered badly.
        ({"Take": 1, "Drop": 1}, {"transitions": (0, 0)}, Thresholds(transitions=1.0), ""),
    ],
)
def test_less_than_was_promised_is_no_pass(
    taken: Mapping[str, int],
    covered: Mapping[str, tuple[int, int]],
    thresholds: Thresholds,
    short: str,
) -> None:
    told = held([bench("m:f", TAKE_A, TAKE_B, DROP)], [taken], covered, thresholds)["m:f"]
    assert told.verdict is (Verdict.INCONCLUSIVE if short else Verdict.PASS)
    _, _, below = told.summary.partition("below the threshold: ")
    assert below.partition(";")[0] == short


def test_the_summary_and_the_figures_have_every_share() -> None:
    told = held([bench("m:f", TAKE_A, DROP)], [{"Take": 3}], {"states": (1500, 3000)}, Thresholds())
    assert told["m:f"].summary == (
        "1 of 2 actions, 1,500 of 3,000 states; below the threshold: actions; "
        "never taken in a replay: Drop"
    )
    assert told["m:f"].figures == {
        "actions": {"Take": 3},
        "never_taken": ["Drop"],
        "covered_actions": 1,
        "all_actions": 2,
        "covered_states": 1500,
        "all_states": 3000,
    }


def test_where_nothing_is_short_the_summary_has_the_shares_alone() -> None:
    told = held([bench("m:f", TAKE_A, DROP)], [{"Take": 3, "Drop": 1}], FULL, Thresholds())["m:f"]
    assert told.verdict is Verdict.PASS
    assert told.summary == "2 of 2 actions, 10 of 10 states, 20 of 20 transitions"


def test_a_system_without_traces_is_held_by_its_replays() -> None:
    events: list[Event] = []
    benches = [bench("m:f", TAKE_A, DROP)]
    coverage(Context(emit=events.append), benches, [{}], {})
    told = events[-1]
    assert isinstance(told, StageFinished)
    assert told.summary == (
        "0 of 2 actions; below the threshold: actions; never taken in a replay: Take, Drop"
    )


def test_a_system_that_chose_its_models_promises_the_actions_of_their_graphs() -> None:
    prepared = SimpleNamespace(spec=SimpleNamespace(all_kinds=("Take", "Drop")))
    graph = SimpleNamespace(actions=(TAKE_A,))
    chosen = SimpleNamespace(
        factory="kafka-3.8.1", prepared=prepared, graph=graph, taken_elsewhere={}
    )
    events: list[Event] = []
    benches = [cast("Workbench", chosen)]
    for steps in ({"Take": 1}, {}):
        coverage(Context(emit=events.append), benches, [steps], {}, chosen=True)
    told = [event for event in events if isinstance(event, StageFinished)]
    assert [event.verdict for event in told] == [Verdict.PASS, Verdict.INCONCLUSIVE]
    assert told[0].summary == "1 of 1 actions; in no suite of this run: Drop"
    assert told[0].figures["in_no_suite"] == ["Drop"]


def test_the_models_of_one_system_cover_together() -> None:
    benches = [bench("m:f", TAKE_A), bench("m:g", TAKE_A, DROP), bench("m:f", TAKE_A, DROP)]
    told = held(benches, [{"Take": 1}, {"Take": 1}, {"Take": 1, "Drop": 1}], FULL, Thresholds())
    assert {name: event.verdict for name, event in told.items()} == {
        "m:f": Verdict.PASS,
        "m:g": Verdict.INCONCLUSIVE,
    }
    assert told["m:f"].figures["actions"] == {"Take": 2, "Drop": 1}


def test_a_system_is_not_held_against_the_traces_of_another() -> None:
    events: list[Event] = []
    thresholds = Thresholds(states=0.5)
    coverage(
        Context(settings=Settings(thresholds=thresholds), emit=events.append),
        [bench("m:f", TAKE_A), bench("m:g", TAKE_A)],
        [{"Take": 1}, {"Take": 1}],
        {"m:f": {"states": (9, 10)}, "m:g": {"states": (1, 10)}},
    )
    verdicts = {e.subject: e.verdict for e in events if isinstance(e, StageFinished)}
    assert verdicts == {"m:f": Verdict.PASS, "m:g": Verdict.INCONCLUSIVE}


BAD = Divergence(BehaviourKind.NOT_ALLOWED, (0,), (TAKE_A,), ((0,),), ((1,),), {"x": 2})


def explored(
    *,
    steps: int = 100,
    enabled: Mapping[str, int] | None = None,
    never: tuple[str, ...] = (),
    disabled: tuple[str, ...] = (),
    divergence: Divergence | None = None,
    note: str = "",
    guided: Mapping[str, int] | None = None,
) -> ExploreResult:
    return ExploreResult(
        examples=1500,
        steps=steps,
        distinct_transitions=2000,
        frequencies=Frequencies(enabled or {"Take": 5}, {"Take": 3}),
        seconds=1.0,
        divergence=divergence,
        note=note,
        guided=guided or {},
        disabled=disabled,
        never_taken=never,
        compared=ComparedStates({"taken": steps}, ("taken",)),
    )


@pytest.mark.parametrize(
    ("result", "dev", "ci"),
    [
        (explored(), Verdict.PASS, Verdict.PASS),
        (explored(divergence=BAD, note="flaky"), Verdict.FAIL, Verdict.FAIL),
        (explored(divergence=BAD, never=("Drop",)), Verdict.FAIL, Verdict.FAIL),
        (explored(note="flaky"), Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        (explored(note="flaky", never=("Take",)), Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        (explored(steps=0), Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        (explored(disabled=("Drop",)), Verdict.PASS, Verdict.PASS),
        # Nowhere met: nobody knows. Met, and never chosen: the search is at fault.
        (explored(never=("Drop",)), Verdict.PASS, Verdict.INCONCLUSIVE),
        (explored(never=("Drop", "Take")), Verdict.PASS, Verdict.FAIL),
        (explored(never=("Drop",), enabled={"Drop": 0}), Verdict.PASS, Verdict.INCONCLUSIVE),
    ],
)
def test_an_exploration_that_looked_nowhere_does_not_pass(
    result: ExploreResult, dev: Verdict, ci: Verdict
) -> None:
    assert _verdict(result, Profile.DEV) is dev
    for profile in (Profile.CI, Profile.NIGHTLY, None):
        assert _verdict(result, profile) is ci


@pytest.mark.parametrize(
    ("result", "rest"),
    [
        (explored(), ""),
        (explored(guided={"Drop": 4, "Take": 9}), "; led to Drop, Take"),
        (
            explored(disabled=("A", "B", "C"), never=("D", "E"), note="flaky"),
            "; nowhere enabled in this model: A, B, C; never taken: D, E; flaky",
        ),
        (explored(disabled=tuple("ABCD")), "; nowhere enabled in this model: 4 actions"),
        (explored(never=("D",), divergence=BAD), ""),
    ],
)
def test_an_exploration_is_summed_up(result: ExploreResult, rest: str) -> None:
    text = "1,500 examples, 100 steps, 2,000 distinct transitions"
    assert _summary(result) == text + rest


def test_a_stage_that_says_nothing_is_no_pass() -> None:
    events: list[Event] = []
    with stage(Context(emit=events.append), "replay", "m", 7):
        pass
    started, finished = events
    assert started == StageStarted("replay", "m", 7)
    assert isinstance(finished, StageFinished)
    assert (finished.stage, finished.subject) == ("replay", "m")
    assert (finished.verdict, finished.fault) == (Verdict.INCONCLUSIVE, False)


def test_a_stage_that_raises_has_no_end() -> None:
    events: list[Event] = []
    with pytest.raises(ZeroDivisionError), stage(Context(emit=events.append), "replay"):
        raise ZeroDivisionError
    assert events == [StageStarted("replay")]


def test_what_a_stage_fills_in_is_told() -> None:
    events: list[Event] = []
    with stage(Context(emit=events.append), "audit") as outcome:
        outcome.verdict, outcome.summary, outcome.fault = Verdict.ERROR, "no", True
        outcome.figures = {"steps": 3}
    finished = events[-1]
    assert isinstance(finished, StageFinished)
    assert finished.seconds >= 0
    assert (finished.verdict, finished.summary, finished.figures, finished.fault) == (
        Verdict.ERROR,
        "no",
        {"steps": 3},
        True,
    )
