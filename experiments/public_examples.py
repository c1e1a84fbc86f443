"""Our search against published results: `python -m experiments.public_examples CHECKOUT`.

CHECKOUT is a folder with the public collection of TLA+ examples (github.com/tlaplus/Examples).
Its manifests say of each model how TLC searched it and what came out. Each small model (at most
`--published-seconds`) that TLC searches exhaustively is searched here as it is published: module
and configuration as they are, nothing rewritten. The table says for each one

* agree: the same verdict, and where the collection publishes them, the same numbers of distinct
  and of generated states (of a search that ended early they are not compared; nor is the depth,
  which TLC with several workers tells only about);
* differ: another verdict or another number, which is a fault of ours;
* refused: an error that says what we lack;
* slow: not finished within `--seconds` of processor time.

Exit code 3 if any differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.differential.searched import Answer, Outcome, searched

DIFFER = 3
"""The exit code where the table names a difference; a fault of this program gives Python's 1."""
_COUNTS = ("distinctStates", "totalStates")
_PUBLISHED = {
    Outcome.SUCCESS: "success",
    Outcome.SAFETY: "safety failure",
    Outcome.PROPERTY: "safety failure",
    Outcome.DEADLOCK: "deadlock failure",
}
"""What the collection calls them."""


@dataclass(frozen=True, slots=True)
class Example:
    """A model of the collection and what it publishes about it."""

    module: Path
    config: Path
    result: str
    counts: Mapping[str, int]

    def name(self, root: Path) -> str:
        return str(self.config.relative_to(root / "specifications"))


@dataclass(frozen=True, slots=True)
class Row:
    """What came out."""

    outcome: str
    said: str


def examples(root: Path, seconds: int) -> Iterator[Example]:
    """The models that are searched exhaustively in at most so many seconds, sorted by path."""
    for manifest in sorted(root.glob("specifications/*/manifest.json")):
        for module in json.loads(manifest.read_text())["modules"]:
            for model in module["models"]:
                if model["mode"] == "exhaustive search" and _seconds(model) <= seconds:
                    yield Example(
                        root / module["path"],
                        root / model["path"],
                        model["result"],
                        {name: model[name] for name in _COUNTS if name in model},
                    )


def _seconds(model: Mapping[str, str]) -> float:
    if model["runtime"] == "unknown":
        return float("inf")
    hours, minutes, seconds = map(int, model["runtime"].split(":"))
    return 3600 * hours + 60 * minutes + seconds


def judge(example: Example, seconds: int) -> Row:
    """Search the model in a process of its own and compare."""
    return compare(example, searched(example.module, example.config, seconds=seconds))


def compare(example: Example, answer: Answer) -> Row:
    """Whether the answer is the published one."""
    match answer.outcome:
        case Outcome.SLOW:
            return Row("slow", answer.said)
        case Outcome.CRASH:
            return Row("differ", f"crashed: {answer.said}")
        case Outcome.UNSUPPORTED | Outcome.UNREADABLE | Outcome.ERROR | Outcome.ASSUMPTION:
            return Row("refused", answer.said)
    result = _PUBLISHED[answer.outcome]
    if example.result == "liveness failure" and result == "success" and answer.unchecked:
        return Row("refused", f"temporal formulas are not checked: {', '.join(answer.unchecked)}")
    if result != example.result:
        return Row("differ", f"{result} {answer.said}, published {example.result}")
    if result != "success":
        return Row("agree", f"{result} {answer.said}")
    numbers = {"distinctStates": answer.distinct, "totalStates": answer.generated}
    differing = [
        f"{name} {numbers[name]}, published {count}"
        for name, count in example.counts.items()
        if numbers[name] != count
    ]
    if differing:
        return Row("differ", "; ".join(differing))
    note = f"; not checked here: {', '.join(answer.unchecked)}" if answer.unchecked else ""
    return Row("agree", f"{answer.distinct} states{note}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; DIFFER if anything differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="models whose path contains this")
    parser.add_argument("--seconds", type=int, default=60, help="processor time for each model")
    parser.add_argument("--published-seconds", type=int, default=30, help="what counts as small")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    chosen = [
        example
        for example in examples(options.checkout, options.published_seconds)
        if options.only in example.name(options.checkout)
    ]
    if not chosen:
        parser.error(f"{options.checkout} holds no such model; is it a checkout of the examples?")
    width = max(len(example.name(options.checkout)) for example in chosen)
    total: Counter[str] = Counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = pool.map(lambda example: judge(example, options.seconds), chosen)
        for example, row in zip(chosen, rows, strict=True):
            total[row.outcome] += 1
            print(
                f"{example.name(options.checkout):<{width}}  {row.outcome:<8} {row.said}",
                flush=True,
            )
    print(f"{len(chosen)} models: " + ", ".join(f"{n} {what}" for what, n in total.most_common()))
    return DIFFER if total["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
