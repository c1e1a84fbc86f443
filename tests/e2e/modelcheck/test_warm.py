"""Runs of TLC in one JVM say what runs in a JVM of their own say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.modelcheck.tlc import (
    Cancelled,
    Processes,
    TlcJob,
    TlcOptions,
    TlcResult,
    run_tlc,
)
from conformance.modelcheck.warm import WarmJvms
from conformance.tla import find_tools

pytestmark = pytest.mark.tlc

HOLDS = r"""
VARIABLE x
Init == x = 0
Next == x' = (x + 1) % 7 \/ x' = (x * 2) % 7
"""
BREAKS = r"""
VARIABLES x, log
Init == x = 0 /\ log = <<>>
Add == x < 9 /\ x' = x + 2 /\ log' = Append(log, x)
Next == Add \/ UNCHANGED <<x, log>>
Small == x < 5
"""
STUCK = r"""
VARIABLE x
Init == x = 0
Next == x < 3 /\ x' = x + 1
"""
LIVE = r"""
VARIABLE x
Init == x = 0
Next == x' = 1 - x
Spec == Init /\ [][Next]_x
Reached == <>(x = 1)
"""
BAD = r"""
VARIABLE x
Init == x = 0
Next == x' = <<1>>[x]
"""
MALFORMED = r"""
VARIABLE x
Init == x = 0 /\
"""
LONG = r"""
VARIABLE x
Init == x = 0
Next == x' \in 0..9000
"""

CASES = {
    "Holds": (HOLDS, "INIT Init\nNEXT Next\n", 0),
    "Breaks": (BREAKS, "INIT Init\nNEXT Next\nINVARIANT Small\n", 12),
    "Stuck": (STUCK, "INIT Init\nNEXT Next\n", 11),
    "Live": (LIVE, "SPECIFICATION Spec\nPROPERTY Reached\n", 13),
    "Bad": (BAD, "INIT Init\nNEXT Next\n", 75),
    "Malformed": (MALFORMED, "INIT Init\nNEXT Next\n", 150),
    # The first again: nothing is left of the runs before.
    "HoldsAgain": (HOLDS, "INIT Init\nNEXT Next\n", 0),
}


def job(folder: Path, name: str, body: str, config: str) -> TlcJob:
    place = folder / name
    place.mkdir()
    module = place / f"{name}.tla"
    module.write_text(f"---- MODULE {name} ----\nEXTENDS Integers, Sequences\n{body}\n====\n")
    (place / f"{name}.cfg").write_text(config)
    return TlcJob(module, place / f"{name}.cfg", check_deadlock=True, short=True)


@pytest.fixture
def processes() -> Iterator[Processes]:
    with Processes() as running:
        yield running


def told(result: TlcResult, dump: Path) -> object:
    """All that a run says but for its time, and the places of standard modules."""
    transcript = replace(result.transcript, outside=[])
    return result.exit_code, result.timed_out, transcript, dump.exists() and dump.read_text()


def test_one_after_the_other_as_each_alone(tmp_path: Path, processes: Processes) -> None:
    tools, options = find_tools(), TlcOptions()
    with closing(WarmJvms(tools, options, processes)) as warm:
        for name, (body, config, code) in CASES.items():
            given = job(tmp_path, name, body, config)
            own, shared = given.module.with_suffix(".own"), given.module.with_suffix(".shared")
            alone = run_tlc(
                replace(given, dump=own), tools, options, processes, lambda _g, _d: None
            )
            here = warm.run(replace(given, dump=shared), lambda _g, _d: None)
            assert told(here, shared.with_suffix(".shared.dot")) == told(
                alone, own.with_suffix(".own.dot")
            )
            assert here.exit_code == code, name
        assert len(processes) == 1


def test_closing_ends_a_run(tmp_path: Path, processes: Processes) -> None:
    endless = job(tmp_path, "Long", LONG, "INIT Init\nNEXT Next\n")
    with closing(WarmJvms(find_tools(), TlcOptions(), processes)) as warm:
        threading.Timer(4, processes.close).start()
        with pytest.raises(Cancelled):
            warm.run(endless, lambda _g, _d: None)
    assert len(processes) == 0


def test_a_time_limit_ends_the_run_and_the_next_gets_another_jvm(
    tmp_path: Path, processes: Processes
) -> None:
    endless = job(tmp_path, "Long", LONG, "INIT Init\nNEXT Next\n")
    with closing(WarmJvms(find_tools(), TlcOptions(timeout=3), processes)) as warm:
        ended = warm.run(endless, lambda _g, _d: None)
        assert ended.timed_out
        assert ended.exit_code != 0
        quick = warm.run(job(tmp_path, "Holds", *CASES["Holds"][:2]), lambda _g, _d: None)
        assert quick.timed_out or quick.exit_code == 0


def test_another_jar_and_several_workers_get_a_jvm_of_their_own(
    tmp_path: Path, processes: Processes
) -> None:
    given = job(tmp_path, "Holds", *CASES["Holds"][:2])
    others = [
        (replace(find_tools(), jar_sha256="of another version"), TlcOptions()),
        (find_tools(), TlcOptions(workers=2)),
    ]
    for tools, options in others:
        with closing(WarmJvms(tools, options, processes)) as warm:
            assert warm.run(given, lambda _g, _d: None).exit_code == 0
            assert len(processes) == 0


def test_a_jvm_that_does_not_take_the_rewritten_classes_is_left_alone(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that verifies classes allows no interface a field that is not final."""
    monkeypatch.setattr("conformance.modelcheck.warm._UNVERIFIED", ())
    given = job(tmp_path, "Breaks", *CASES["Breaks"][:2])
    with closing(WarmJvms(find_tools(), TlcOptions(), processes)) as warm:
        for _ in range(2):
            assert warm.run(given, lambda _g, _d: None).exit_code == CASES["Breaks"][2]
            assert len(processes) == 0
