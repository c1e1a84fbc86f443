"""What TLC says, as recorded from TLC 2.15; where newer TLC differs, in its words."""

from __future__ import annotations

import pytest

from conformance.modelcheck.tlc_output import (
    TlcMessage,
    Transcript,
    Violation,
    ViolationKind,
    messages,
)


def said(*parts: tuple[int, int, str] | str) -> Transcript:
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
        else:
            code, severity, text = part
            lines += [f"@!@!@STARTMSG {code}:{severity} @!@!@", *text.split("\n")]
            lines.append(f"@!@!@ENDMSG {code} @!@!@")
    transcript = Transcript()
    for message in messages(f"{line}\n" for line in lines):
        transcript.add(message)
    return transcript


STATE = '/\\ count = [a |-> 0]\n/\\ log = <<[q |-> "x"]>>\n'
BEHAVIOR = (
    (2121, 1, "The behavior up to this point is:"),
    (2217, 4, "1: <Initial predicate>\n" + STATE),
    (2217, 4, "2: <Add__0 line 4, col 11 to line 4, col 26 of module MC>\n" + STATE),
)


def test_success_with_numbers() -> None:
    transcript = said(
        (2262, 0, "TLC2 Version 2.15 of Day Month 20?? (rev: d5b5a7f)"),
        (2190, 0, "Finished computing initial states: 1 distinct state generated at now."),
        (2193, 0, "Model checking completed. No error has been found.\n"
                  "  calculated (optimistic):  val = 2.1E-16\n"
                  "  based on the actual fingerprints:  val = 1.7E-13"),
        (2200, 0, "Progress(33) at 2026-11-21 00:21:23: 286,840 states generated (11,908 s/min), "
                  "62,353 distinct states found (4,305 ds/min), 7 states left on queue."),
        (2199, 0, "286840 states generated, 62353 distinct states found, 0 states left on queue."),
        (2194, 0, "The depth of the complete state graph search is 33."),
        (2186, 0, "Finished in 660ms at (now)"),
    )  # fmt: skip
    assert transcript.success
    assert transcript.finished
    assert transcript.violation is None
    assert (transcript.generated_states, transcript.distinct_states) == (286840, 62353)
    assert transcript.depth == 33
    assert transcript.collision_probability == pytest.approx(1.7e-13)
    assert transcript.version.startswith("TLC2 Version 2.15")
    assert transcript.errors == []


def test_after_a_kill_the_last_progress_is_the_count() -> None:
    transcript = said(
        (2200, 0, "Progress(9) at now: 1,234 states generated, 567 distinct states found, 8 left")
    )
    assert (transcript.generated_states, transcript.distinct_states) == (1234, 567)
    assert not transcript.finished


@pytest.mark.parametrize(
    ("code", "text", "violation"),
    [
        (2110, "Invariant Bad is violated.", Violation(ViolationKind.INVARIANT, "Bad")),
        (2112, "Action property NeverFalls is violated.",
         Violation(ViolationKind.ACTION_PROPERTY, "NeverFalls")),
        (2112, "Action property line 5, col 3 to line 6, col 9 of module M is violated.",
         Violation(ViolationKind.ACTION_PROPERTY, "line 5, col 3 to line 6, col 9 of module M")),
        (2114, "Deadlock reached.", Violation(ViolationKind.DEADLOCK, "")),
        (2404, "Postcondition Counted at line 7, col 12 to line 7, col 33 of module P is false.",
         Violation(ViolationKind.POSTCONDITION, "Counted")),
        (2116, "Temporal properties were violated.\n",
         Violation(ViolationKind.TEMPORAL_PROPERTY, "")),
    ],
)  # fmt: skip
def test_a_violation_with_its_behavior(code: int, text: str, violation: Violation) -> None:
    transcript = said((code, 1, text), *BEHAVIOR)
    assert transcript.violation == violation
    assert [state.label for state in transcript.trace] == ["", "Add__0"]
    assert transcript.trace[1].text == STATE.strip()
    assert transcript.errors == []


def test_only_the_first_violation_counts() -> None:
    transcript = said((2110, 1, "Invariant A is violated."), (2110, 1, "Invariant B is violated."))
    assert transcript.violation == Violation(ViolationKind.INVARIANT, "A")


def test_a_violation_in_an_initial_state_is_a_behavior_of_one_state() -> None:
    transcript = said((2107, 1, "Invariant Bad is violated by the initial state:\n" + STATE))
    assert transcript.violation == Violation(ViolationKind.INVARIANT, "Bad")
    assert [state.text for state in transcript.trace] == [STATE.strip()]


def test_a_lasso_and_a_stuttering_end() -> None:
    lasso = said((2116, 1, "Temporal properties were violated."), *BEHAVIOR,
                 (2122, 4, "1: Back to state <Add__0 line 4, col 1 of module M>"))  # fmt: skip
    assert (lasso.back_to, lasso.stuttering) == (1, False)
    stuttering = said((2116, 1, "Temporal properties were violated."), *BEHAVIOR,
                      (2218, 4, "3: Stuttering"))  # fmt: skip
    assert (stuttering.back_to, stuttering.stuttering) == (None, True)


def test_an_action_with_arguments_in_its_label_as_newer_tlc_prints_it() -> None:
    transcript = said(
        (2217, 4, '2: <Add("a") line 4, col 11 to line 4, col 26 of module M>\nx = 1')
    )
    assert (transcript.trace[0].label, transcript.trace[0].text) == ("Add", "x = 1")


def test_errors_and_what_stands_outside_are_kept() -> None:
    transcript = said(
        "Parsing file Spec.tla",
        (1000, 1, "TLC threw an unexpected exception."),
        (2284, 3, "Declaring constraints during liveness checking is dangerous"),
        '<<"kconform", 1>>',
    )
    assert transcript.errors == ["TLC threw an unexpected exception."]
    assert transcript.outside == ["Parsing file Spec.tla", '<<"kconform", 1>>']


def test_a_message_inside_a_message_belongs_to_it() -> None:
    transcript = said(
        (1000, 1, "@!@!@STARTMSG 2184:0 @!@!@\nAttempted to apply Head to the empty sequence.\n"
                  "@!@!@ENDMSG 2184 @!@!@"),
        (1000, 1, "The exception was\n: @!@!@STARTMSG 5001:0 @!@!@\nFile not found.\n"
                  "@!@!@ENDMSG 5001 @!@!@"),
        (2194, 0, "The depth of the complete state graph search is 2."),
    )  # fmt: skip
    assert transcript.errors == [
        "Attempted to apply Head to the empty sequence.",
        "The exception was\n: \nFile not found.",
    ]
    assert transcript.depth == 2


def test_a_message_that_is_cut_off_is_dropped() -> None:
    assert list(messages(["@!@!@STARTMSG 2193:0 @!@!@\n", "Model checking comp"])) == []
    assert list(messages(["loose\n"])) == [TlcMessage(0, 0, "loose")]
