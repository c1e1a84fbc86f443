"""The coordinator's lock, seen from the threads that it keeps apart."""

from __future__ import annotations

import pytest

from conformance.replay.interruptions import InterruptionResult, interrupt_steps
from conformance.stages.context import Context, one_model, workbench
from conformance.systems.shared.group.settings import GROUP_ID
from conformance.systems.threads import InterruptibleThreads
from conformance.verdict import Verdict
from impl.concurrency import Lock, NoConcurrency

pytestmark = pytest.mark.tlc


class OpenLock:
    """A thread can be stopped at it, and keeps nobody out."""

    def __init__(self, threads: InterruptibleThreads, name: str) -> None:
        self._threads, self._name = threads, name
        self.new_condition = NoConcurrency().lock(name).new_condition

    def acquire(self) -> None:
        self._threads.checkpoint(self._name)

    def release(self) -> None:
        pass

    def __enter__(self) -> object:
        self.acquire()
        return self

    def __exit__(self, _type: object, _value: object, _traceback: object) -> None:
        pass


class WithoutTheGroupsLock(InterruptibleThreads):
    def lock(self, name: str, /) -> Lock:
        return OpenLock(self, name) if name == f"group-{GROUP_ID}" else super().lock(name)


def interleaved() -> InterruptionResult:
    bench = workbench(Context(), one_model("group/pending-2m"))
    return interrupt_steps(bench.graph, bench.make_system, samples=3, seed=1)


def test_the_group_s_lock_is_what_makes_requests_come_out_as_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert interleaved().verdict is Verdict.PASS
    monkeypatch.setattr(
        "conformance.systems.group.system.InterruptibleThreads", WithoutTheGroupsLock
    )
    without = interleaved()
    assert without.verdict is Verdict.FAIL
    assert {found.actions[-1].name for found in without.divergences} >= {
        "HandleJoinGroup_interrupted_by_HandleJoinGroup",
    }
