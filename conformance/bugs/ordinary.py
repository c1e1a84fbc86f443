"""The ordinary tests of the implementation: which come by a mutant, and whether one fails."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from conformance.bugs.bench import running
from conformance.bugs.covered import CoveredModule
from conformance.bugs.fault import copied
from conformance.bugs.mutants import Mutant
from conformance.bugs.noting import FILE, PACKAGE, STATEMENTS, TestNotes
from conformance.bugs.reach import Statement, StatementReach, note_reached, statements_of
from conformance.modelcheck.cache import Cache, cache_dir, cache_key

FOLDERS = ("tests/unit/impl", "tests/property/impl")
_SECONDS = 3_600.0
"""For the tests of one mutant, by the clock, however busy the machine; who does not end by then is
taken for endless."""
_NOTING_SECONDS = 3_600.0
_FIRST = 40
"""So many of the quickest tests are run before all others."""


@dataclass(frozen=True)
class OrdinaryTests:
    """The tests below `root`, which is a checkout; in an installation there are none."""

    root: Path
    package: str = "impl"

    @cached_property
    def _files(self) -> tuple[Path, ...]:
        folders = [self.root / folder for folder in FOLDERS]
        return tuple(sorted(path for folder in folders for path in folder.rglob("*.py")))

    @cached_property
    def digest(self) -> str:
        """Changes when a test does."""
        return cache_key(["ordinary"], self._files)[:16]

    @cached_property
    def _statements(self) -> Mapping[Statement, int]:
        package = self.root / self.package
        files = [str(path.relative_to(package)) for path in package.rglob("*.py")]
        return {statement: number for number, statement in enumerate(statements_of(package, files))}

    @cached_property
    def _notes(self) -> TestNotes:
        """Noted now, but of the files whose tests are known for this implementation."""
        cache = Cache(cache_dir())
        helpers = [path for path in self._files if not path.name.startswith("test_")]
        known = [*helpers, *sorted((self.root / self.package).rglob("*.py"))]
        files = {
            str(path.relative_to(self.root)): cache_key(["tests"], [path, *known])
            for path in self._files
            if path.name.startswith("test_")
        }
        result = {file: cache.load("reach", key) for file, key in files.items()}
        unknown = [file for file, content in result.items() if content is None]
        if unknown:
            for file, notes in self._note(unknown).by_file(unknown).items():
                result[file] = msgspec.msgpack.encode(notes)
                cache.store("reach", files[file], result[file] or b"")
        every = [msgspec.msgpack.decode(data, type=TestNotes) for data in result.values() if data]
        tests = tuple(test for notes in every for test in notes.tests)
        return TestNotes(tests, b"".join(notes.bits for notes in every))

    def _note(self, files: Sequence[str]) -> TestNotes:
        with copied(self.package) as folder, tempfile.TemporaryDirectory() as scratch:
            note_reached(folder / self.package, tuple(self._statements))
            notes = Path(scratch) / "notes"
            record = {FILE: notes, PACKAGE: self.package, STATEMENTS: len(self._statements)}
            extra = {name: str(value) for name, value in record.items()}
            command = self._command(folder, ["-p", "conformance.bugs.noting", *files])
            with running(command, folder, cwd=self.root, extra=extra) as process:
                out, _ = process.communicate(timeout=_NOTING_SECONDS)
            if not notes.is_file():
                last = out.decode(errors="replace").strip()[-2000:]
                raise RuntimeError(f"the tests of the implementation cannot be run:\n{last}")
            return msgspec.msgpack.decode(notes.read_bytes(), type=TestNotes)

    def reaching(self, statements: Iterable[Statement]) -> list[str]:
        """The ids of the tests that run one of these statements, quick ones first.

        A statement of which nothing is noted counts as run by who enters its function.
        """
        numbers = {number for statement in statements for number in self._numbers(statement)}
        if not numbers or not self._files:
            return []
        reach = StatementReach.from_bytes(self._notes.bits, len(self._statements))
        tests = {self._notes.tests[test] for number in numbers for test in reach.tests(number)}
        return [test.id for test in sorted(tests, key=lambda test: (test.seconds, test.id))]

    def _numbers(self, statement: Statement) -> list[int]:
        if statement in self._statements:
            return [self._statements[statement]]
        text = (self.root / self.package / statement.file).read_text(encoding="utf-8")
        function = CoveredModule(text).function(statement.start)
        first, last = function or (0, len(text))
        return [
            number
            for noted, number in self._statements.items()
            if noted.file == statement.file and first <= noted.start < last
        ]

    def kill(self, mutant: Mutant) -> tuple[bool, int]:
        """Whether a test fails, or does not end; and how many there are that could."""
        with copied(self.package) as folder:
            path = folder / self.package / mutant.file
            path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
            return self.kill_copy(folder, [Statement(mutant.file, mutant.statement)])

    def kill_copy(self, folder: Path, statements: Iterable[Statement]) -> tuple[bool, int]:
        """As `kill`, for a copy in `folder`. `statements`: of the clean text, those changed."""
        tests = self.reaching(statements)
        parts = [part for part in (tests[:_FIRST], tests[_FIRST:]) if part]
        return any(self._fail(part, folder) for part in parts), len(tests)

    def _fail(self, tests: Sequence[str], folder: Path) -> bool:
        command = self._command(folder, ["-x", "-p", "conformance.bugs.time_limit", *tests])
        with running(command, folder, cwd=self.root) as process:
            try:
                process.communicate(timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                return True
        return process.returncode != 0

    def _command(self, folder: Path, options: Sequence[str]) -> list[str]:
        # pytest's own `pythonpath` comes before PYTHONPATH.
        first = f"pythonpath={shlex.quote(str(folder))} {shlex.quote(str(self.root))}"
        # Of an editable installation pytest rewrites the assertions of `impl` too, and so reads its
        # text in place of the compiled modules that note what they come by.
        fixed = [
            "-q",
            "-p",
            "no:cacheprovider",
            "--assert=plain",
            "--hypothesis-seed=1",
            "-o",
            first,
        ]
        return [sys.executable, "-m", "pytest", *fixed, *options]
