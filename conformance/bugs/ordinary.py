"""The ordinary tests of the implementation: which come by a mutant, and whether one fails."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from conformance.bugs.bench import running
from conformance.bugs.fault import copied
from conformance.bugs.mutants import Mutant
from conformance.bugs.noting import FILE, PACKAGE, STATEMENTS, Notes
from conformance.bugs.reach import Reach, Statement, note_reached, statements_of
from conformance.modelcheck.cache import Cache, cache_dir, cache_key

FOLDERS = ("tests/unit/impl", "tests/property/impl")
_SECONDS = 600.0
"""For the tests of one mutant; who does not end by then is taken for endless."""
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
        return {one: number for number, one in enumerate(statements_of(package, files))}

    @cached_property
    def _notes(self) -> Notes:
        """Noted now, unless they are known for these tests and this implementation."""
        package = self.root / self.package
        key = cache_key(["tests", self.digest], sorted(package.rglob("*.py")))
        cache = Cache(cache_dir())
        content = cache.load("reach", key)
        if content is None:
            content = self._note()
            cache.store("reach", key, content)
        return msgspec.msgpack.decode(content, type=Notes)

    def _note(self) -> bytes:
        with copied(self.package) as folder, tempfile.TemporaryDirectory() as scratch:
            note_reached(folder / self.package, tuple(self._statements))
            notes = Path(scratch) / "notes"
            told = {FILE: notes, PACKAGE: self.package, STATEMENTS: len(self._statements)}
            extra = {name: str(value) for name, value in told.items()}
            with running(
                self._command(folder, ["-p", "conformance.bugs.noting", *self._folders]),
                folder,
                cwd=self.root,
                extra=extra,
            ) as process:
                out, _ = process.communicate(timeout=_NOTING_SECONDS)
            if not notes.is_file():
                last = out.decode(errors="replace").strip()[-2000:]
                raise RuntimeError(f"the tests of the implementation cannot be run:\n{last}")
            return notes.read_bytes()

    @property
    def _folders(self) -> list[str]:
        return [folder for folder in FOLDERS if (self.root / folder).is_dir()]

    def reaching(self, mutant: Mutant) -> list[str]:
        """The ids of the tests that run the mutant's statement, quick ones first."""
        number = self._statements.get(Statement(mutant.file, mutant.statement))
        if number is None or not self._folders:
            return []
        reach = Reach.from_bytes(self._notes.bits, len(self._statements))
        tests = [self._notes.tests[test] for test in reach.tests(number)]
        return [test.id for test in sorted(tests, key=lambda one: (one.seconds, one.id))]

    def kill(self, mutant: Mutant) -> tuple[bool, int]:
        """Whether a test fails, or does not end; and how many there are that could."""
        tests = self.reaching(mutant)
        with copied(self.package) as folder:
            path = folder / self.package / mutant.file
            path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
            parts = [part for part in (tests[:_FIRST], tests[_FIRST:]) if part]
            return any(self._fail(part, folder) for part in parts), len(tests)

    def _fail(self, tests: Sequence[str], folder: Path) -> bool:
        with running(self._command(folder, ["-x", *tests]), folder, cwd=self.root) as process:
            try:
                process.communicate(timeout=_SECONDS)
            except subprocess.TimeoutExpired:
                return True
        return process.returncode != 0

    def _command(self, folder: Path, options: Sequence[str]) -> list[str]:
        # pytest's own `pythonpath` comes before PYTHONPATH.
        first = f"pythonpath={shlex.quote(str(folder))} {shlex.quote(str(self.root))}"
        fixed = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=1", "-o", first]
        return [sys.executable, "-m", "pytest", *fixed, *options]
