"""A pytest plugin: notes for each test which statements of a copy of the implementation it runs.

Used by `conformance.bugs.ordinary` alone, with `-p`; where the notes go is in the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Sequence
from pathlib import Path

import msgspec
import pytest

from conformance.bugs.reach import ReachOfEachTest

FILE, PACKAGE, STATEMENTS = "KCONFORM_NOTES", "KCONFORM_NOTED_PACKAGE", "KCONFORM_STATEMENTS"


class NotedTest(msgspec.Struct, frozen=True):
    """A test that passes against the clean implementation."""

    id: str
    seconds: float


class TestNotes(msgspec.Struct, frozen=True):
    """The tests, in the order of the rows of `bits`."""

    tests: tuple[NotedTest, ...]
    bits: bytes

    def by_file(self, files: Sequence[str]) -> dict[str, TestNotes]:
        """The tests of each of these files."""
        width = len(self.bits) // len(self.tests) if self.tests else 0
        rows: dict[str, list[int]] = {file: [] for file in files}
        for number, test in enumerate(self.tests):
            rows[test.id.partition("::")[0]].append(number)
        return {
            file: TestNotes(
                tuple(self.tests[number] for number in numbers),
                b"".join(self.bits[number * width : (number + 1) * width] for number in numbers),
            )
            for file, numbers in rows.items()
        }


class _Plugin:
    def __init__(self) -> None:
        self._noting: ReachOfEachTest | None = None
        self._tests: list[tuple[str, float]] = []
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """One test, its fixtures included."""
        if self._noting is None:  # all is imported now
            self._noting = ReachOfEachTest(os.environ[PACKAGE], int(os.environ[STATEMENTS]))
        started = time.monotonic()
        self._noting.begin()
        result = yield
        self._noting.end()
        self._tests.append((item.nodeid, round(time.monotonic() - started, 4)))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that does not pass by itself can kill nothing."""
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the notes."""
        if self._noting is None:
            return
        reach = self._noting.reach()
        kept = [number for number, (id_, _) in enumerate(self._tests) if id_ not in self._failed]
        notes = TestNotes(
            tuple(NotedTest(*self._tests[number]) for number in kept), reach.bits[kept].tobytes()
        )
        Path(os.environ[FILE]).write_bytes(msgspec.msgpack.encode(notes))


def pytest_configure(config: pytest.Config) -> None:
    """Take part, if somebody wants notes."""
    if FILE in os.environ:
        config.pluginmanager.register(_Plugin(), "kconform-noting")
