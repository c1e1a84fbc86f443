"""`gate --minutes`: which suites fit, and in which order they add most."""

from __future__ import annotations

from conformance.events import Event, StageFinished
from conformance.modelcheck.manifest import find_models
from conformance.stages.budget import (
    Offer,
    SuitePart,
    chosen_of,
    combinations,
    kinds_of,
    within_budget,
)
from conformance.stages.context import Context
from conformance.stages.selection import ExcludedModel, by_reason
from conformance.systems.kafka.factory import KafkaFactory
from conformance.systems.protocol import Paced
from conformance.tla import Fn, Value
from conformance.verdict import Verdict


def offer(name: str, seconds: float, *parts: str) -> Offer:
    return Offer(name, seconds, frozenset(SuitePart("action", one) for one in parts))


def names(offers: list[Offer], seconds: float) -> list[str]:
    return [one.offer.name for one in chosen_of(offers, seconds)]


def test_what_adds_most_for_its_time_comes_first() -> None:
    offers = [offer("slow", 9, "A", "B", "C"), offer("quick", 1, "A"), offer("more", 2, "A", "B")]

    assert names(offers, 100) == ["quick", "more", "slow"]
    assert [one.adds for one in chosen_of(offers, 100)] == [{"action": 1}] * 3


def test_a_suite_that_adds_nothing_comes_after_one_that_does() -> None:
    offers = [offer("same", 1, "A"), offer("again", 2, "A"), offer("other", 50, "B")]

    assert names(offers, 100) == ["same", "other", "again"]
    assert chosen_of(offers, 100)[2].adds == {}


def test_no_more_is_taken_than_there_is_time_for() -> None:
    offers = [offer("long", 8, "A", "B", "C", "D"), offer("short", 3, "A"), offer("tiny", 1)]

    assert names(offers, 9) == ["long", "tiny"]
    assert names(offers, 5) == ["short", "tiny"]
    assert names(offers, 0.5) == []


def test_an_action_with_a_larger_bound_is_something_new() -> None:
    def parts(epochs: int, *actions: str, **more: Value) -> set[SuitePart]:
        constants = {"Epochs": frozenset(range(epochs)), **more}
        return {*combinations("R", actions or ("A",), constants)}

    assert parts(3) - parts(2) == {SuitePart("combination", "R.A with Epochs of 3")}
    assert parts(2) < parts(3)
    assert parts(1, On=True) - parts(1, On=False)
    assert parts(1, Max=3) - parts(1, Max=2) == {SuitePart("combination", "R.A with Max >= 3")}
    assert parts(1, Of=Fn({"p": "a"})) - parts(1, Of=Fn({"p": "b"}))


def test_actions_and_bounds_of_two_models_are_not_those_of_one_that_has_both() -> None:
    commits = {*combinations("R", ["Commit"], {"Members": frozenset({1})})}
    members = {*combinations("R", ["Join"], {"Members": frozenset({1, 2})})}
    both = {*combinations("R", ["Commit", "Join"], {"Members": frozenset({1, 2})})}

    assert both - (commits | members) == {SuitePart("combination", "R.Commit with Members of 2")}


def test_kafka_says_how_fast_it_is() -> None:
    made_by: object = KafkaFactory("4.4.0")

    assert isinstance(made_by, Paced)
    assert made_by.steps_a_second("GroupMembership") > made_by.steps_a_second("Replication") > 0


def test_models_that_are_left_out_for_one_reason_stand_in_one_line() -> None:
    left_out = [ExcludedModel("a", "old"), ExcludedModel("b", "other"), ExcludedModel("c", "old")]

    assert by_reason(left_out) == {"old": ("a", "c"), "other": ("b",)}


def test_parts_are_counted_by_kind() -> None:
    assert kinds_of(
        [SuitePart("action", "A"), SuitePart("disjunct", "1"), SuitePart("action", "B")]
    ) == ("2 actions, 1 disjunct")
    assert kinds_of([]) == "nothing"


def test_the_suites_that_fit_are_chosen_and_the_summary_counts_what_the_others_would_add() -> None:
    events: list[Event] = []
    context = Context(emit=events.append)
    names = ("group/maximum-size-2m", "group/protocols-2m", "group/dynamic-2m")
    models = find_models(names)

    chosen = within_budget(context, models, "kafka-4.4.0", 0.2)

    assert [model.name for model in chosen] == list(names[:2])
    finished = [event for event in events if isinstance(event, StageFinished)]
    assert finished[-1].verdict is Verdict.PASS
    summary = finished[-1].summary
    assert summary.startswith("2 of 3 suites, about "), summary
    assert "no time for group/dynamic-2m, which would add " in summary
    assert len(summary) < 400
    suites = finished[-1].figures["suites"]
    assert isinstance(suites, list)
    assert len(suites) == 2
