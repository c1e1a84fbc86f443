"""TLC's own test suite through TLC and through our engine: `python -m ...tlc_suite CHECKOUT`.

CHECKOUT is a checkout of github.com/tlaplus/tlaplus (nothing of it is in this repository). Each of
its JUnit classes that model-checks a module breadth first is run twice: by the TLC of the default
jar and by our Python engine, module and configuration as they are. Reference is what the class
expects (how TLC ends, and, where it says so, how many states TLC generates and finds), and the
numbers of the default jar where that ends as the class expects; an older TLC than the suite does
not know all of the suite's language. The table says for each class

* agree: the same verdict, and of a finished search the same numbers of generated and of distinct
  states;
* unjudged: TLC finds violated what our engine names as not judged, so that its verdict is
  inconclusive: `_POSSIBLE`, a postcondition, a temporal property under SYMMETRY;
* refused: an error of ours that says what we lack, exit code 2;
* bounds: TLC ends at a bound of its own, such as integers of 32 bits, that our engine lacks;
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
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
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
_OTHER_MODES = (
    "-simulate",
    "-dfid",
    "-continue",
    "-inv",
    "-invlevel",
    "-maxSetSize",
    "-modelcheck",
)
_BOUNDS = re.compile("overflow|too many elements|too large|cannot be represented", re.IGNORECASE)
_INFINITE = "elements of the infinite set"
"""Of the error that asks for a bound, where TLC keeps an infinite set or function as a value."""
_RANDOM = re.compile(r"\bRandom(Element|Subset|SetOfSubsets)\b")
_ERRORS = (75, 76, 77, 152, 153, 255)
_CONFIGURATION = 151
_UNREADABLE = (150, _CONFIGURATION)


@dataclass(frozen=True, slots=True)
class Reference:
    """How TLC ends; its numbers of generated and distinct states, if they are known."""

    exit_code: int | None
    """None where the class does not say, and the jar was not asked."""
    numbers: frozenset[tuple[int, int]]
    """The default jar's and the class's: a defect of the one may be mended in the other's TLC."""
    bounds: str = ""
    """What TLC says where it ends at a bound of its own, such as integers of 32 bits."""
    jar: int | None = None
    """How the default jar ends."""


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
        if one.special:
            return one.special
        if self.module(one).with_suffix(".java").is_file():
            return "an operator is written in Java"
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
            return Answer(Outcome.SLOW, "not finished")
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
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Answer] = {}
        if path.is_file():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self._known[entry["engine"], entry["name"]] = Answer.read(entry["answer"])

    def get(self, engine: str, name: str) -> Answer | None:
        return self._known.get((engine, name))

    def put(self, engine: str, name: str, answer: Answer) -> Answer:
        self._known[engine, name] = answer
        entry = {"engine": engine, "name": name, "answer": asdict(answer)}
        with self._lock, self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return answer


def reference(one: TestClass, tlc: Answer | None) -> Reference:
    """What is to come out: the class's word, and the jar's numbers if it ends as expected."""
    code = _exit_code_of(tlc)
    expected = code if one.exit_code is None else one.exit_code
    numbers = {one.stats} - {None} if expected == 0 else set()
    if tlc is not None and code == 0 and expected == 0:
        numbers |= {(tlc.generated, tlc.distinct)}
    bounds = one.bound
    if tlc is not None and code != 0 and _BOUNDS.search(tlc.said):
        bounds = tlc.said
    return Reference(expected, frozenset(filter(None, numbers)), bounds, code)


def _exit_code_of(tlc: Answer | None) -> int | None:
    return None if tlc is None or tlc.outcome is not Outcome.SUCCESS else int(tlc.said.split()[0])


def compare(expected: Reference, ours: Answer) -> Row:
    """Whether our answer is the reference."""
    code = expected.exit_code
    if ours.outcome is Outcome.CRASH:
        return Row("crashed", ours.said)
    if ours.outcome is Outcome.SLOW:
        return Row("slow", ours.said)
    if _agrees(code, ours):
        return (
            _numbers(expected, ours) if code == 0 else Row("agree", f"{ours.outcome} {ours.said}")
        )
    if expected.jar is not None and _agrees(expected.jar, ours):
        return Row("agree", f"{ours.outcome} {ours.said}, as the default jar")
    if code != 0 and ours.outcome is Outcome.SUCCESS and ours.unchecked:
        return Row("unjudged", f"not judged here: {', '.join(ours.unchecked)}")
    if expected.bounds and ours.outcome not in (Outcome.UNSUPPORTED, Outcome.UNREADABLE):
        return Row("bounds", expected.bounds)
    if code is None:
        return Row("other", "the class does not say how TLC is to end, and the jar was not asked")
    if ours.outcome in (Outcome.UNSUPPORTED, Outcome.UNREADABLE) or _INFINITE in ours.said:
        return Row("refused", ours.said)
    return Row("differ", f"{ours.outcome} {ours.said}, TLC ends with {code}")


def _agrees(code: int | None, ours: Answer) -> bool:
    match ours.outcome:
        case Outcome.SUCCESS:
            # Without a state nothing was checked, which `kconform check` says and TLC may refuse.
            return code == 0 or (code == _CONFIGURATION and not ours.distinct)
        case Outcome.SAFETY:
            return code == 12
        case Outcome.PROPERTY:
            return code in (12, 13)
        case Outcome.DEADLOCK:
            return code == 11
        case Outcome.ASSUMPTION:
            return code == 10
        case Outcome.ERROR:
            # TLC has the code of a false assumption for one without a value, too.
            return code in (*_ERRORS, *_UNREADABLE, 10, 14)
        case Outcome.UNREADABLE | Outcome.UNSUPPORTED:
            return code in (*_ERRORS, *_UNREADABLE)
        case _:
            return False


def _numbers(expected: Reference, ours: Answer) -> Row:
    found = (ours.generated, ours.distinct)
    if expected.numbers and found not in expected.numbers:
        numbers = " or ".join(map(str, sorted(expected.numbers)))
        return Row("differ", f"generated and distinct states {found}, TLC {numbers}")
    note = f"; not judged here: {', '.join(ours.unchecked)}" if ours.unchecked else ""
    known = "" if expected.numbers else " (TLC's number is not known)"
    return Row("agree", f"{ours.distinct} states{known}{note}")


def row(suite: Suite, answers: Answers, again: str | None, one: TestClass, *, jar: bool) -> Row:
    """The line of a class; without the `jar`, as the class expects it."""
    if (why := suite.incomparable(one)) is not None:
        return Row("other", why)
    tlc = answers.get("tlc", one.name)
    if tlc is None and jar:
        tlc = answers.put("tlc", one.name, suite.tlc(one))
    expected = reference(one, tlc)
    if _RANDOM.search(suite.module(one).read_text(errors="replace")):
        expected = replace(expected, numbers=frozenset())  # TLC draws other elements than we do
    ours = answers.get("python", one.name)
    if ours is None or _asked_again(again, one, compare(expected, ours)):
        ours = answers.put("python", one.name, suite.ours(one))
    return compare(expected, ours)


def _asked_again(word: str | None, one: TestClass, known: Row) -> bool:
    return word is not None and (word in one.name or word == known.kind)


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
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--without-jar", action="store_true", help="only what the classes expect")
    parser.add_argument("--kinds", default="", help="print these outcomes only, as differ,crashed")
    options = parser.parse_args(arguments)
    suite = Suite(options.checkout, options.seconds)
    if not suite.classes:
        parser.error(f"{options.checkout} holds no test classes; is it a checkout of tlaplus?")
    wanted = set(filter(None, options.kinds.split(",")))
    total: Counter[str] = Counter()
    width = max(len(one.name) for one in suite.classes)
    answers = Answers(options.answers)
    jar = not options.without_jar
    chosen = [one for one in suite.classes if options.only in one.name]
    with ThreadPoolExecutor(options.jobs) as pool:
        lines = pool.map(lambda one: row(suite, answers, options.again, one, jar=jar), chosen)
        for one, line in zip(chosen, lines, strict=True):
            total[line.kind] += 1
            if not wanted or line.kind in wanted:
                print(f"{one.name:<{width}}  {line.kind:<8} {line.said[:160]}", flush=True)
    total["other"] += len(suite.unread)
    print(summary(total))
    return DIFFER if total["differ"] or total["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
