"""A newcomer's captures are judged for what they are: none is called wrong that may be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.judge.mapping import Mapping
from conformance.tla import Spec
from conformance.verdict import Verdict
from tests.unit.judge.locks import judged, locks, mapping

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


def test_a_search_that_was_cut_short_finds_no_failure(spec: Spec, tmp_path: Path) -> None:
    everything = '[silent]\nactions = ["Ask", "Queue", "Grant", "Release"]\nsteps = 9\n'
    limits = "[limits]\ncandidates = 3\n"
    impossible = {"state": {"granted": 9}}
    found = judged(spec, mapping(tmp_path, everything + limits), impossible)
    assert found.verdict is UNCLEAR
    assert any("more than 3" in hint for hint in found.decide)
    assert judged(spec, mapping(tmp_path, everything), impossible).verdict is FAIL


@pytest.mark.parametrize(("most", "verdict"), [(60, PASS), (10, PASS), (8, UNCLEAR)])
def test_where_candidates_are_too_many_an_explanation_is_looked_for_with_few(
    spec: Spec, tmp_path: Path, most: int, verdict: Verdict
) -> None:
    """With ten at most, the closure of all of them ends before the third grant is reached."""
    everything = '[silent]\nactions = ["Ask", "Queue", "Grant", "Release"]\nsteps = 4\n'
    limits = f"[limits]\ncandidates = {most}\n"
    grants = [{"state": {"granted": number}} for number in range(4)]
    found = judged(spec, mapping(tmp_path, everything + limits), *grants)
    assert found.verdict is verdict
    assert ("not every other one was looked at" in found.reason) is (most == 10)


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
