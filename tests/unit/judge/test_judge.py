"""A newcomer's captures are judged for what they are: none is called wrong that may be right."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping
from conformance.tla import Spec
from conformance.verdict import Verdict
from tests.unit.judge.locks import judged, locks, mapping, recording
from tests.unit.tla.small import spec as small_spec

pytestmark = pytest.mark.tlc

PASS, FAIL, UNCLEAR = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE
HIDDEN = '[silent]\nactions = ["Ask", "Queue"]\nsteps = {}\n'


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return locks(tmp_path_factory.mktemp("locks"))


def act(name: str, *args: object, **state: object) -> dict[str, object]:
    event: dict[str, object] = {"action": {"name": name, "args": list(args)}}
    return event | ({"state": state} if state else {})


GRANTS = (act("Grant", "a", holder="a"), act("Release", "a"), act("Grant", "b", granted=2))


@pytest.mark.parametrize(
    ("steps", "verdict", "explained"),
    [(2, PASS, 3), (4, PASS, 3), (1, FAIL, 0), (0, FAIL, 0)],
)
def test_steps_that_nobody_saw_are_found_up_to_the_bound(
    spec: Spec, tmp_path: Path, steps: int, verdict: Verdict, explained: int
) -> None:
    found = judged(spec, mapping(tmp_path, HIDDEN.format(steps)), *GRANTS)
    assert (found.verdict, found.explained) == (verdict, explained)
    assert f"{steps} unseen steps in a row" in found.reason or not steps


BOTH = [act("Grant", "a"), act("Release", "a"), act("Grant", "b")]
TWO_ASKED = '[silent]\nactions = ["Ask", "Queue"]\nsteps = 4\neach = {}\n'


@pytest.mark.parametrize(
    ("each", "first", "verdict"),
    [(2, {"waiting": {"#set": ["b"]}}, PASS), (1, {}, FAIL), (2, {}, PASS), (4, {}, PASS)],
)
def test_each_process_takes_so_many_unseen_steps_and_no_more(
    spec: Spec, tmp_path: Path, each: int, first: dict[str, object], verdict: Verdict
) -> None:
    """Each client asks and is queued before its grant: two unseen steps of each, four in a row."""
    grant = BOTH[0] | ({"state": first} if first else {})
    found = judged(spec, mapping(tmp_path, TWO_ASKED.format(each)), grant, *BOTH[1:])
    assert found.verdict is verdict
    assert f"4 unseen steps in a row, {each} of each process" in found.reason


def test_steps_of_one_process_are_none_of_another(spec: Spec, tmp_path: Path) -> None:
    """Only the steps of `a` may go unseen."""
    text = "[silent]\nactions = ['Ask(\"a\")', 'Queue(\"a\")']\nsteps = 2\n"
    assert judged(spec, mapping(tmp_path, text), *BOTH[:2]).verdict is PASS
    assert judged(spec, mapping(tmp_path, text), BOTH[2]).verdict is FAIL


def test_the_explanation_is_a_behaviour_with_the_unseen_steps_in_it(
    spec: Spec, tmp_path: Path
) -> None:
    found = judged(spec, mapping(tmp_path, HIDDEN.format(2)), *GRANTS)
    assert found.explanation is not None
    state = found.explanation.initial
    for action, after in zip(found.explanation.actions, found.explanation.states, strict=True):
        assert (action, after) in spec.successors(state)
        state = after
    assert found.explanation.silent == 4
    assert [event for event in found.explanation.events if event is not None] == [0, 1, 2]


NOBODY = {"action": "Grant", "state": {"holder": "nobody"}}
CASES = {
    "one client's view": (
        '[silent]\nactions = ["Ask(_)", "Queue", "Grant"]\nsteps = 3\n',
        [{"state": {'wire["a"]': "granted"}}],
        PASS,
    ),
    "a wrong view": (
        HIDDEN.format(4) + "[limits]\ncandidates = 9000\n",
        [{"state": {'wire["a"]': "idle"}}, NOBODY],
        FAIL,
    ),
    "no arguments": (HIDDEN.format(4), [{"action": "Grant"}, {"action": "Release"}], PASS),
    "an argument": (HIDDEN.format(4), [{"action": {"name": "Grant", "args": [None]}}], PASS),
    "one of two": (HIDDEN.format(4), [{"action": ["Grant", "Release"]}], PASS),
    "snapshots": (
        '[silent]\nactions = ["Ask", "Queue", "Grant", "Release"]\nsteps = 4\n',
        [{"state": {"granted": n}} for n in range(4)],
        PASS,
    ),
    "a snapshot too many": (
        '[silent]\nactions = ["Ask", "Queue", "Grant", "Release"]\nsteps = 2\n',
        [{"state": {"granted": 0}}, {"state": {"granted": 2}}],
        FAIL,
    ),
    "from the middle": (
        '[start]\nat = "any"\n',
        [act("Release", "a", granted=3), act("Grant", "b", granted=4)],
        PASS,
    ),
    "from a middle that is none": (
        '[start]\nat = "any"\n',
        [act("Release", "a", granted=3), act("Release", "b")],
        FAIL,
    ),
    "the state before": (
        HIDDEN.format(4),
        [act("Grant", "a") | {"before": {"granted": 0}}],
        PASS,
    ),
    "another state before": (
        HIDDEN.format(4),
        [act("Grant", "a") | {"before": {"granted": 1}}],
        FAIL,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_evidence_has_its_verdict(spec: Spec, tmp_path: Path, case: str) -> None:
    text, events, verdict = CASES[case]
    found = judged(spec, mapping(tmp_path, text), *events, invariants=())
    assert found.verdict is verdict, found.reason
    assert (found.failure is None) is (verdict is PASS)


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if case[2] is FAIL])
def test_what_nobody_declared_is_never_called_wrong(spec: Spec, case: str) -> None:
    _, events, _ = CASES[case]
    found = judged(spec, Mapping(), *events)
    assert found.verdict is UNCLEAR
    assert any("give a mapping" in hint for hint in found.decide)


def numbered(*events: dict[str, object]) -> list[dict[str, object]]:
    return [event | {"step": number} for number, event in enumerate(events)]


def test_numbered_steps_are_a_declaration(spec: Spec) -> None:
    events = numbered({"state": {"holder": "nobody"}}, act("Ask", "a"), act("Grant", "a"))
    found = judged(spec, Mapping(), *events)
    assert (found.verdict, found.explained) == (FAIL, 2)
    assert found.failure is not None
    assert found.failure.source == "run:3"
    (blocker,) = found.failure.blockers
    assert blocker.action == 'Grant("a")'
    assert any("waiting" in line for line in blocker.lines)


def test_a_difference_is_told_where_the_step_is_enabled(spec: Spec, tmp_path: Path) -> None:
    found = judged(spec, mapping(tmp_path, HIDDEN.format(2)), act("Grant", "a", granted=2))
    assert found.failure is not None
    (difference,) = found.failure.blockers[0].differences
    assert (difference.variable, difference.expected, difference.actual) == ("granted", "1", "2")


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([act("Steal", "a")], "no action Steal"),
        ([act("Grant", "z")], "others called Grant"),
        ([{"state": {"color": 1}}], "no variable color"),
        (numbered({"state": {}}, act("Ask", "a"))[1:], "step 0 is missing"),
        ([*numbered({"state": {}}), {"step": 1}], "step 1 names no action"),
        ([{"step": 0} | act("Ask", "a")], "step 0 is the initial state"),
        ([], "no event"),
    ],
    ids=repr,
)
def test_what_cannot_be_used_is_inconclusive_and_says_why(
    spec: Spec, events: list[dict[str, object]], reason: str
) -> None:
    found = judged(spec, Mapping(), *events)
    assert found.verdict is UNCLEAR
    assert reason in found.reason


def test_parts_of_one_step_may_stand_in_several_lines(spec: Spec) -> None:
    lines = [{"state": {"holder": "nobody"}, "step": 0}, {"state": {"granted": 0}, "step": 0}]
    ask = [act("Ask", "a") | {"step": 1}, {"state": {'wire["b"]': "idle"}, "step": 1}]
    assert judged(spec, Mapping(), *lines, *ask).verdict is PASS
    wrong = {"state": {'wire["b"]': "asked"}, "step": 1}
    assert judged(spec, Mapping(), *lines, *ask, wrong).verdict is FAIL


def test_a_violated_invariant_is_a_failure_where_all_candidates_agree(
    spec: Spec, tmp_path: Path
) -> None:
    hidden = mapping(tmp_path, HIDDEN.format(4))
    three = [act("Grant"), act("Release"), act("Grant"), act("Release"), act("Grant")]
    events = [{"action": event["action"]["name"]} for event in three]  # type: ignore[index]  # an object of JSON
    found = judged(spec, hidden, *events, invariants=["FewGrants"])
    assert found.verdict is FAIL
    assert found.reason.startswith("FewGrants is false in every state that explains the first 5")
    assert judged(spec, hidden, *events[:4], invariants=["FewGrants"]).verdict is PASS


def test_where_candidates_differ_in_a_formula_the_verdict_says_so(
    spec: Spec, tmp_path: Path
) -> None:
    everything = '[silent]\nactions = ["Ask", "Queue", "Grant", "Release"]\nsteps = 4\n'
    snapshot = {"state": {"holder": "nobody"}}
    found = judged(spec, mapping(tmp_path, everything), snapshot, invariants=["FewGrants"])
    assert (found.verdict, found.formulas[0].undecided_at) == (PASS, None)
    many = [snapshot, snapshot, snapshot, snapshot]
    found = judged(spec, mapping(tmp_path, everything), *many, invariants=["FewGrants"])
    assert found.verdict is UNCLEAR
    assert "false in others" in found.reason


def test_candidates_that_differ_from_the_start_on_are_told_too(spec: Spec, tmp_path: Path) -> None:
    anywhere = mapping(tmp_path, '[start]\nat = "any"\n')
    nobody = {"state": {"holder": "nobody"}}
    found = judged(spec, anywhere, nobody, invariants=["FewGrants"])
    assert (found.verdict, found.formulas[0].undecided_at) == (UNCLEAR, 0)
    two = {"state": {"granted": 2}}
    assert judged(spec, anywhere, nobody, two, invariants=["FewGrants"]).verdict is PASS


def test_what_later_events_exclude_does_not_count_for_a_formula(spec: Spec, tmp_path: Path) -> None:
    everything = '[silent]\nactions = ["Ask", "Queue", "Grant", "Release"]\nsteps = 4\n'
    nobody, few = {"state": {"holder": "nobody"}}, ["FewGrants"]
    four = [nobody] * 4
    assert judged(spec, mapping(tmp_path, everything), *four, invariants=few).verdict is UNCLEAR
    none = {"state": {"granted": 0}}
    found = judged(spec, mapping(tmp_path, everything), *four, none, invariants=few)
    assert (found.verdict, found.formulas[0].judged) == (PASS, 6)
    three = {"state": {"granted": 3}}
    found = judged(spec, mapping(tmp_path, everything), *four, three, invariants=few)
    assert (found.verdict, found.formulas[0].violated_at) == (FAIL, 5)


def test_a_formula_that_takes_for_ever_has_no_value(spec: Spec, tmp_path: Path) -> None:
    short = mapping(tmp_path, "[limits]\nevaluation = 0.2\n")
    found = judged(spec, short, act("Ask", "a"), invariants=["Endless", "FewGrants"])
    assert found.verdict is UNCLEAR
    assert "Endless has no value: it had none after 0.2 s of the processor" in found.reason
    assert found.formulas[1].judged == 2


def test_a_trace_may_look_at_so_many_states_and_no_more(spec: Spec, tmp_path: Path) -> None:
    text = '[silent]\nactions = ["Ask", "Queue"]\nsteps = 4\n[limits]\nstates = 5\n'
    found = judged(spec, mapping(tmp_path, text), *GRANTS)
    assert found.verdict is UNCLEAR
    assert "more than 5 states were looked at" in found.decide


EVERYTHING = '[silent]\nactions = ["Ask", "Queue", "Grant", "Release"]\nsteps = {}\n'


def test_a_search_that_was_cut_short_finds_no_failure(spec: Spec, tmp_path: Path) -> None:
    everything = EVERYTHING.format(9)
    impossible = {"state": {"granted": 9}}
    found = judged(spec, mapping(tmp_path, everything + "[limits]\nstates = 9\n"), impossible)
    assert found.verdict is UNCLEAR
    assert any("more than 9 states" in hint for hint in found.decide)
    assert judged(spec, mapping(tmp_path, everything), impossible).verdict is FAIL


@pytest.mark.parametrize("most", [60, 10, 1])
def test_where_candidates_are_too_many_an_explanation_is_looked_for_depth_first(
    spec: Spec, tmp_path: Path, most: int
) -> None:
    limits = f"[limits]\ncandidates = {most}\n"
    grants = [{"state": {"granted": number}} for number in range(4)]
    found = judged(spec, mapping(tmp_path, EVERYTHING.format(4) + limits), *grants)
    assert found.verdict is PASS
    assert ("not every other one was looked at" in found.reason) is (most < 60)


QUEUE = r"""
CONSTANT Clients
VARIABLES at, waiting, owner
Init == at = [c \in Clients |-> "idle"] /\ waiting = <<>> /\ owner = "nobody"
Ask(c) == at[c] = "idle" /\ at' = [at EXCEPT ![c] = "asked"] /\ UNCHANGED <<waiting, owner>>
Queue(c) == /\ at[c] = "asked" /\ at' = [at EXCEPT ![c] = "queued"]
            /\ waiting' = Append(waiting, c) /\ UNCHANGED owner
Take(c) == /\ owner = "nobody" /\ waiting # <<>> /\ c = Head(waiting)
           /\ waiting' = Tail(waiting) /\ owner' = c /\ at' = [at EXCEPT ![c] = "holds"]
Release(c) == /\ at[c] = "holds" /\ owner' = "nobody" /\ at' = [at EXCEPT ![c] = "idle"]
              /\ UNCHANGED waiting
Next == \E c \in Clients : Ask(c) \/ Queue(c) \/ Take(c) \/ Release(c)
"""


def test_unseen_steps_of_the_processes_that_an_event_waits_for_come_first(tmp_path: Path) -> None:
    """Ten clients, a queue that nobody sees, a third of the steps unseen: few states are tried."""
    clients = ", ".join(f'"c{number}"' for number in range(10))
    queue = small_spec(tmp_path, QUEUE, f"CONSTANT Clients = {{{clients}}}")
    rng = random.Random(1)
    state, events = queue.initial_states()[0], list[dict[str, object]]()
    while len(events) < 125:
        action, state = rng.choice(queue.successors(state))
        if rng.random() > 1 / 3:
            events.append(act(action.name, *action.args))
    actions = 'actions = ["Ask", "Queue", "Take", "Release"]'
    text = f"[silent]\n{actions}\nsteps = 9\n[limits]\nstates = 20_000"
    judgement = judged(queue, mapping(tmp_path, text), *events, invariants=(), properties=())
    assert judgement.verdict is PASS, judgement.reason
    assert judgement.silent > 20


def test_no_explanation_is_proved_depth_first_where_candidates_are_too_many(
    spec: Spec, tmp_path: Path
) -> None:
    """Then one that explains as many events as any is found, and told like any other failure."""
    limits = "[limits]\ncandidates = 1\n"
    found = judged(
        spec,
        mapping(tmp_path, EVERYTHING.format(4) + limits),
        {"state": {"granted": 1}},
        {"state": {"granted": 3, "holder": "a"}},
    )
    assert (found.verdict, found.explained) == (FAIL, 1)
    assert found.failure is not None
    assert found.failure.candidates > 1


def test_absence_is_proved_by_the_unseen_steps_that_matter(tmp_path: Path) -> None:
    """Nine clients may have asked in any order, which says nothing of the one who releases."""
    clients = ", ".join(f'"c{number}"' for number in range(10))
    queue = small_spec(tmp_path, QUEUE, f"CONSTANT Clients = {{{clients}}}")
    text = '[silent]\nactions = ["Ask"]\nsteps = 9\n[limits]\nstates = 300'
    events = [act("Ask", "c1"), act("Release", "c0")]
    judgement = judged(queue, mapping(tmp_path, text), *events, invariants=(), properties=())
    assert (judgement.verdict, judgement.explained) == (FAIL, 1), judgement.reason
    assert judgement.failure is not None
    assert judgement.failure.event.startswith("Release")


def test_an_explanation_that_violates_a_formula_is_not_enough(spec: Spec, tmp_path: Path) -> None:
    """All behaviours have three grants: only all of them together show that."""
    limits = "[limits]\ncandidates = 1\n"
    three = [{"state": {"granted": number}} for number in (1, 2, 3)]
    few = ["FewGrants"]
    one = mapping(tmp_path, EVERYTHING.format(4) + limits)
    assert judged(spec, one, *three, invariants=few).verdict is UNCLEAR
    all_ = mapping(tmp_path, EVERYTHING.format(4))
    assert judged(spec, all_, *three, invariants=few).verdict is FAIL


@pytest.mark.parametrize(("steps", "verdict"), [(2, PASS), (5, PASS), (9, PASS), (1, FAIL)])
def test_a_larger_bound_loses_nothing(
    spec: Spec, tmp_path: Path, steps: int, verdict: Verdict
) -> None:
    """The purse is as small as the smallest bound needs it; each bound has its own."""
    limits = "[limits]\nstates = 150\ncandidates = 1\n"
    text = EVERYTHING.format(steps) + limits
    found = judged(spec, mapping(tmp_path, text), *GRANTS, invariants=())
    assert found.verdict is verdict, found.reason


def test_what_happens_directly_before_an_event_happens_nowhere_else(
    spec: Spec, tmp_path: Path
) -> None:
    """`a` asks before the event of `b`, or before its own."""
    text = '[silent]\n{} = ["Ask"]\nsteps = 2\n'
    queued = [act("Queue", "b") | {"state": {'wire["a"]': "asked"}}, act("Queue", "a")]
    anywhere = mapping(tmp_path, text.format("actions"))
    assert judged(spec, anywhere, *queued, invariants=()).verdict is PASS
    directly = mapping(tmp_path, text.format("directly"))
    assert judged(spec, directly, *queued, invariants=()).verdict is FAIL
    queued[0]["state"] = {'wire["a"]': "idle"}
    assert judged(spec, directly, *queued, invariants=()).verdict is PASS
    of_nobody = [{"state": {'wire["a"]': "asked"}}]
    assert judged(spec, directly, *of_nobody, invariants=()).verdict is PASS


def test_a_busy_machine_changes_no_verdict(
    spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock on the wall leaps; the processor's does not."""
    ticks = iter(range(10**9))
    monkeypatch.setattr("time.monotonic", lambda: 1e6 * next(ticks))
    found = judged(spec, mapping(tmp_path, HIDDEN.format(2)), *GRANTS)
    assert found.verdict is PASS


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("seconds = 3", "3 seconds of the processor"), ("memory = 9", "9 megabytes of memory")],
)
def test_time_and_memory_end_a_search_without_a_verdict(
    spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, reason: str
) -> None:
    ticks, held = iter(range(10**9)), iter(range(10**9))
    monkeypatch.setattr("time.process_time", lambda: next(ticks) / 10)
    monkeypatch.setattr("conformance.judge.budget.resident", lambda: 1_000_000 * next(held))
    monkeypatch.setattr("conformance.judge.search.resident", lambda: 0)
    monkeypatch.setattr("conformance.judge.budget._ASKED", 1)
    text = EVERYTHING.format(9) + f"[limits]\n{limit}\n"
    found = judged(spec, mapping(tmp_path, text), {"state": {"granted": 9}})
    assert found.verdict is UNCLEAR
    assert any(reason in hint for hint in found.decide)


def test_it_is_told_how_far_a_long_search_is(spec: Spec, tmp_path: Path) -> None:
    judge = Judge(spec, mapping(tmp_path, HIDDEN.format(2) + "[limits]\ncandidates = 1\n"))
    explained: list[int] = []
    judge.tell = explained.append
    judge.judge(recording(*GRANTS))
    assert explained[-3:] == [1, 2, 3]


SEEN = {
    "a length": ({"Cardinality(waiting)": 1}, {"Cardinality(waiting)": 2}),
    "a member": ({'"a" \\in waiting': True}, {'"b" \\in waiting': True}),
    "none of the members": ({'"b" \\in waiting': False}, {'"a" \\in waiting': False}),
    "in the domain": ({'"a" \\in DOMAIN wire': True}, {'"z" \\in DOMAIN wire': True}),
    "of another kind": ({'wire["a"]': "queued"}, {"Len(waiting)": 1}),
}


@pytest.mark.parametrize("case", SEEN)
def test_a_next_state_is_bound_by_a_length_or_a_member(
    spec: Spec, tmp_path: Path, case: str
) -> None:
    right, wrong = SEEN[case]
    declared = mapping(tmp_path, "")
    for seen, verdict in ((right, PASS), (wrong, FAIL)):
        found = judged(spec, declared, act("Ask", "a"), act("Queue", "a", **seen), invariants=())
        assert found.verdict is verdict, found.reason
    (difference,) = found.failure.blockers[0].differences if found.failure else ()
    assert difference.variable == next(iter(wrong))


@pytest.mark.parametrize("shown_by", ["a step", "a snapshot"])
def test_a_model_value_that_was_written_as_a_string_gets_a_hint(
    tmp_path_factory: pytest.TempPathFactory, shown_by: str
) -> None:
    config = "CONSTANT Clients = {a, b}\nCONSTANT Grants = 5\nCONSTANT a = a\nCONSTANT b = b"
    with_values = locks(tmp_path_factory.mktemp("values"), config)
    value = {"#unserializable": "a"}
    steps = [act("Ask", value), act("Queue", value), act("Grant", value, holder="a")]
    if shown_by == "a snapshot":
        steps[2:] = [act("Grant", value), {"state": {"holder": "a"}}]
    found = judged(with_values, Mapping(), {"state": {"granted": 0}}, *steps)
    assert found.failure is not None
    assert '{"#unserializable": "a"}' in found.failure.blockers[0].lines[-1]


def test_a_number_that_was_written_as_a_string_is_no_model_value(spec: Spec) -> None:
    found = judged(spec, Mapping(), *numbered({"state": {"granted": "0"}}))
    assert found.failure is not None
    assert found.failure.blockers[0].lines == ("the state differs",)


def test_events_that_say_nothing_are_no_evidence(spec: Spec, tmp_path: Path) -> None:
    silent = [{"process": "a"}, {"process": "b"}]
    judgement = judged(spec, mapping(tmp_path, HIDDEN.format(2)), *silent, invariants=())
    assert judgement.verdict is UNCLEAR
    assert "no event names an action or shows a variable" in judgement.reason


def test_an_expression_that_takes_for_ever_is_one_traces_matter(spec: Spec, tmp_path: Path) -> None:
    rule = "[[names]]\nmatch = '(a+)+b'\nto = 'x'\n[limits]\nevaluation = 0.5\n"
    judgement = judged(spec, mapping(tmp_path, rule), act("Ask", "a" * 40), invariants=())
    assert judgement.verdict is UNCLEAR
    assert "time" in judgement.reason or "seconds" in judgement.reason
