"""What TLC 2.15 and the TLC of 2026 print of one violated model is read alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.modelcheck.tlc_output import Transcript, ViolationKind, messages

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = {"2.15": "TLC2 Version 2.15", "2026": "TLC2 Version 2026."}


def transcript_of(version: str) -> Transcript:
    text = (RECORDED / f"tlc-{version}.txt").read_text(encoding="utf-8")
    transcript = Transcript()
    for message in messages(text.splitlines(keepends=True)):
        transcript.add(message)
    return transcript


@pytest.mark.parametrize("version", VERSIONS)
def test_a_violation_is_read_from_what_each_prints(version: str) -> None:
    transcript = transcript_of(version)

    assert transcript.version.startswith(VERSIONS[version])
    assert transcript.finished
    assert not transcript.success
    assert transcript.errors == []
    assert (transcript.generated_states, transcript.distinct_states) == (3, 3)
    assert transcript.depth == 3
    assert transcript.violation is not None
    assert transcript.violation.kind is ViolationKind.INVARIANT
    assert transcript.violation.name == "Small"


def test_both_give_the_same_behaviour() -> None:
    old, new = map(transcript_of, VERSIONS)

    assert old.violation == new.violation
    assert old.trace == new.trace
