"""`kconform bugs --clean`: what the oracles said, and what they did not get done, as a verdict."""

from __future__ import annotations

import pytest

from conformance.bugs.worker import Found
from conformance.cli import bugs as command
from conformance.errors import ExitCode


@pytest.mark.parametrize(
    ("found", "code", "told"),
    [
        pytest.param(Found(killed=False, steps=7), ExitCode.PASS, "and 7 steps", id="nothing"),
        pytest.param(
            Found(killed=True, oracle="Hypothesis", title="Fetch"),
            ExitCode.FAIL,
            "by the",
            id="found",
        ),
        pytest.param(
            Found(killed=False, note="gave up after 900 s"),
            ExitCode.INCONCLUSIVE,
            "not all was done: gave up",
            id="not done",
        ),
    ],
)
def test_the_verdict_on_a_clean_copy(
    found: Found,
    code: ExitCode,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "by_oracles", lambda _job, _folder, _timeout: found)
    with pytest.raises(SystemExit) as ended:
        command.bugs(clean=True, system="group")
    assert ended.value.code == code
    assert told in capsys.readouterr().out


def test_the_list_says_what_the_spec_does_not_see(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.bugs(list_faults=True, system="group")
    lines = {line.split()[0]: line.rstrip() for line in capsys.readouterr().out.splitlines()}
    assert lines["E11"].endswith("keeps the join that is over")
    assert lines["E28"].endswith("(by tests of impl)")
    assert lines["D32"].endswith("(not applicable)")
