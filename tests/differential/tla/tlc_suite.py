"""TLC's own test suite through TLC and through our engine: `python -m ...tlc_suite CHECKOUT`.

CHECKOUT is a checkout of github.com/tlaplus/tlaplus (nothing of it is in this repository). Each of
its JUnit classes that model-checks a module breadth first is run twice: by the TLC of the default
jar and by our Python engine, module and configuration as they are. Reference is what the class
expects (how TLC ends, and, where it says so, how many states TLC generates and finds), and the
numbers of the default jar where that ends as the class expects; an older TLC than the suite does
not know all of the suite's language. The table says for each class

* agree: the same verdict, and of a finished search the same numbers of generated and of distinct
  states;
* liveness: TLC finds a temporal property violated, which our engine reports as not judged;
* refused: an error of ours that says what we lack;
* slow: not finished within `--seconds` of processor time;
* differ: another verdict or another number, which is a fault of ours;
* crashed: the same, with a traceback;
* other: not comparable (simulation, a bounded depth, a module that a test writes first ...).

Answers are kept in `--answers` line by line, so a run that was stopped goes on where it was;
`--again WORD` asks our engine again about the classes whose name or last outcome has the word.
Exit code 3 if anything differs or crashed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from conformance.errors import SpecError
from conformance.modelcheck.tlc import Processes, TlcJob, TlcOptions, run_tlc
from conformance.tla import find_tools
from conformance.tla.front.monolith import config_text, write_further_modules
from tests.differential.searched import Answer, Outcome, searched
from tests.differential.tla.junit import TestClass, read_classes

DIFFER = 3
"""The exit code where the table names a fault of ours; one of this program gives Python's 1."""
_ROOT = "tlatools/org.lamport.tlatools"
_OTHER_MODES = ("-simulate", "-dfid", "-continue", "-inv", "-invlevel", "-maxSetSize", "-modelcheck")
_LIVENESS = (13, 77)
_ERRORS = (75, 76, 77, 152, 153, 255)
_UNREADABLE = (150, 151)


@dataclass(frozen=True, slots=True)
class Reference:
    """How TLC ends; its numbers of generated and distinct states, if they are known."""

    exit_code: int
    numbers: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    kind: str
    said: str


class Suite:
    """The checkout: which file belongs to a class, and what TLC and our engine say of it."""

    def __init__(self, checkout: Path, seconds: int) -> None:
        root = checkout / _ROOT
        self._models = root / "test-model"
        self._seconds = seconds
        self.classes, self.unread = read_classes(root / "test")

    def module(self, one: TestClass) -> Path:
        """The module's file."""
        return self._models / one.folder / f"{one.module_name}.tla"

    def config(self, one: TestClass) -> Path:
        """The file with the configuration, also one in a module's file."""
        return self._models / one.folder / one.config

    def incomparable(self, one: TestClass) -> str | None:
        """Why a class is no exhaustive search of files that are here; None if it is one."""
        for option in _OTHER_MODES:
            if option in one.arguments:
                return f"{option} is another mode than an exhaustive search"
        if not one.folder.strip("/") and "simul" in one.name.lower():
            return "a simulation"
        for path in (self.module(one), self.config(one)):
            if not path.is_file():
                return f"{path.name} is not in the checkout"
        return None

    def tlc(self, one: TestClass) -> Answer:
        """The answer of the default jar; `said` is its exit code."""
        with tempfile.TemporaryDirectory() as folder, Processes() as processes:
            scratch = Path(folder)
            write_further_modules(self.module(one), scratch)
            config = scratch / f"{one.module_name}_suite.cfg"
            try:
                config.write_text(config_text(self.config(one)))
            except SpecError as error:
                return Answer(Outcome.UNREADABLE, f"150 {error}")
            job = TlcJob(self.module(one), config, (scratch,), one.deadlock, short=True)
            options = TlcOptions(timeout=3.0 * self._seconds, heap="3g")
            result = run_tlc(job, find_tools(), options, processes, lambda _g, _d: None)
        if result.timed_out:
            return Answer(Outcome.SLOW)
        said = " ".join(" ".join(result.transcript.errors).split())[:300]
        return Answer(
            Outcome.SUCCESS,
            f"{result.exit_code} {said}",
            result.transcript.generated_states or 0,
            result.transcript.distinct_states or 0,
        )

    def ours(self, one: TestClass) -> Answer:
        """The answer of our engine."""
        return searched(
            self.module(one), self.config(one), seconds=self._seconds, deadlock=one.deadlock
        )


class Answers:
    """What is known of each class, by engine; appended to a file as it comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, str], Answer] = {}
        if path.is_file():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self._known[entry["engine"], entry["name"]] = Answer.read(entry["answer"])

    def get(self, engine: str, name: str) -> Answer | None:
        return self._known.get((engine, name))

    def put(self, engine: str, name: str, answer: Answer) -> Answer:
        self._known[engine, name] = answer
        with self._path.open("a") as file:
            entry = {"engine": engine, "name": name, "answer": asdict(answer)}
            file.write(json.dumps(entry) + "\n")
        return answer


def reference(one: TestClass, tlc: Answer) -> Reference:
    """What is to come out: the class's word, and the jar's numbers if it ends as expected."""
    code = int(tlc.said.split()[0]) if tlc.outcome is not Outcome.SLOW else None
    if code == one.exit_code and code == 0:
        return Reference(one.exit_code, (tlc.generated, tlc.distinct))
    return Reference(one.exit_code, one.stats if one.exit_code == 0 else None)


def compare(expected: Reference, ours: Answer) -> Row:
    """Whether our answer is the reference."""
    code = expected.exit_code
    if ours.outcome is Outcome.CRASH:
        return Row("crashed", ours.said)
    if ours.outcome is Outcome.SLOW:
        return Row("slow", ours.said)
    if _agrees(code, ours):
        return _numbers(expected, ours) if code == 0 else Row("agree", f"{ours.outcome} {ours.said}")
    if code in _LIVENESS and ours.outcome is Outcome.SUCCESS and ours.unchecked:
        return Row("liveness", f"not judged here: {', '.join(ours.unchecked)}")
    if ours.outcome in (Outcome.UNSUPPORTED, Outcome.UNREADABLE):
        return Row("refused", ours.said)
    return Row("differ", f"{ours.outcome} {ours.said}, TLC ends with {code}")


def _agrees(code: int, ours: Answer) -> bool:
    match ours.outcome:
        case Outcome.SUCCESS:
            return code == 0
        case Outcome.SAFETY:
            return code == 12
        case Outcome.DEADLOCK:
            return code == 11
        case Outcome.ASSUMPTION:
            return code == 10
        case Outcome.ERROR:
            return code in (*_ERRORS, 14)
        case Outcome.UNREADABLE | Outcome.UNSUPPORTED:
            return code in (*_ERRORS, *_UNREADABLE)
        case _:
            return False


def _numbers(expected: Reference, ours: Answer) -> Row:
    found = (ours.generated, ours.distinct)
    if expected.numbers is not None and found != expected.numbers:
        return Row("differ", f"generated and distinct states {found}, TLC {expected.numbers}")
    note = f"; not judged here: {', '.join(ours.unchecked)}" if ours.unchecked else ""
    known = "" if expected.numbers is not None else " (TLC's number is not known)"
    return Row("agree", f"{ours.distinct} states{known}{note}")


def rows(suite: Suite, answers: Answers, only: str, again: str | None) -> Iterator[tuple[str, Row]]:
    """The lines of the table as they come."""
    for one in suite.classes:
        if only not in one.name:
            continue
        if (why := suite.incomparable(one)) is not None:
            yield one.name, Row("other", why)
            continue
        tlc = answers.get("tlc", one.name) or answers.put("tlc", one.name, suite.tlc(one))
        expected = reference(one, tlc)
        ours = answers.get("python", one.name)
        if ours is None or _asked_again(again, one, compare(expected, ours)):
            ours = answers.put("python", one.name, suite.ours(one))
        yield one.name, compare(expected, ours)


def _asked_again(word: str | None, one: TestClass, row: Row) -> bool:
    return word is not None and (word in one.name or word == row.kind)


def summary(kinds: Mapping[str, int]) -> str:
    """The last line."""
    comparable = sum(count for kind, count in kinds.items() if kind != "other")
    parts = [f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda p: -p[1])]
    return f"{comparable} comparable classes: {', '.join(parts)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; DIFFER if anything differs or crashed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--answers", type=Path, default=Path("tlc-suite.ndjson"))
    parser.add_argument("--only", default="", help="classes whose name contains this")
    parser.add_argument("--again", help="ask our engine again: part of a name, or an outcome")
    parser.add_argument("--seconds", type=int, default=60, help="processor time for each class")
    parser.add_argument("--kinds", default="", help="print these outcomes only, as differ,crashed")
    options = parser.parse_args(arguments)
    suite = Suite(options.checkout, options.seconds)
    if not suite.classes:
        parser.error(f"{options.checkout} holds no test classes; is it a checkout of tlaplus?")
    wanted = set(filter(None, options.kinds.split(",")))
    total: Counter[str] = Counter()
    width = max(len(one.name) for one in suite.classes)
    for name, row in rows(suite, Answers(options.answers), options.only, options.again):
        total[row.kind] += 1
        if not wanted or row.kind in wanted:
            print(f"{name:<{width}}  {row.kind:<8} {row.said[:160]}", flush=True)
    total["other"] += len(suite.unread)
    print(summary(total))
    return DIFFER if total["differ"] or total["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
