"""Our search against published results: `python benchmarks/public_examples.py CHECKOUT`.

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
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UserError
from conformance.tla import bind, load_module, parse_config
from conformance.tla.search import FormulaKind, SearchResult, problem_of, search

DIFFER = 3
"""The exit code where the table names a difference; a fault of this program gives Python's 1."""
_COUNTS = ("distinctStates", "totalStates")
_KINDS = {
    FormulaKind.INVARIANT: "safety failure",
    FormulaKind.INITIAL_PROPERTY: "safety failure",
    FormulaKind.ACTION_PROPERTY: "safety failure",
    FormulaKind.DEADLOCK: "deadlock failure",
}


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


def run_one(module: Path, config: Path) -> dict[str, object]:
    """Search one model; the answer as the collection's manifests write it."""
    try:
        spec = bind(
            load_module(module),
            parse_config(config.read_text(encoding="utf-8"), source=config.name),
        )
        problem = problem_of(spec)
        return _published(search(problem)) | {"unchecked": list(problem.unchecked)}
    except UserError as error:
        said = " ".join(str(error).split()).replace(f"{Path.cwd()}/", "")
        return {"result": "refused", "said": said[:200]}


def _published(found: SearchResult) -> dict[str, object]:
    violated = found.violated
    return {
        "result": "success" if violated is None else _KINDS[violated.kind],
        "said": "" if violated is None else violated.name,
        "distinctStates": len(found.states),
        "totalStates": found.generated,
    }


def judge(example: Example, seconds: int) -> Row:
    """Search the model in a process of its own and compare."""
    command = [sys.executable, __file__, "--one", str(example.module), str(example.config)]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))

    run = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limited)
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Row("slow", f"not finished after {seconds:.0f} s")
    if run.returncode != 0:
        return Row("differ", f"crashed: {run.stderr.strip().splitlines()[-1]}")
    return compare(example, json.loads(run.stdout.splitlines()[-1]))


def compare(example: Example, found: Mapping[str, object]) -> Row:
    """Whether the answer is the published one."""
    if found["result"] == "refused":
        return Row("refused", str(found["said"]))
    unchecked = found["unchecked"]
    assert isinstance(unchecked, list)
    if example.result == "liveness failure" and found["result"] == "success" and unchecked:
        return Row("refused", f"temporal formulas are not checked: {', '.join(unchecked)}")
    if found["result"] != example.result:
        return Row("differ", f"{found['result']} {found['said']}, published {example.result}")
    if found["result"] != "success":
        return Row("agree", f"{found['result']} {found['said']}")
    differing = [
        f"{name} {found[name]}, published {count}"
        for name, count in example.counts.items()
        if found[name] != count
    ]
    if differing:
        return Row("differ", "; ".join(differing))
    note = f"; not checked here: {', '.join(unchecked)}" if unchecked else ""
    return Row("agree", f"{found['distinctStates']} states{note}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; DIFFER if anything differs."""
    if arguments is None and len(sys.argv) == 4 and sys.argv[1] == "--one":
        print(json.dumps(run_one(Path(sys.argv[2]), Path(sys.argv[3]))))
        return 0
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
