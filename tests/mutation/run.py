"""Mutates the code that decides, with mutmut, and says which mutants no test noticed.

    python tests/mutation/run.py [GROUP ...] [--only PATTERN] [--jobs N] [--output FILE]

A copy of the sources is mutated, never the checkout. The score goes to kconform-out, where the
nightly gate finds it; it has the chosen groups, and of the others what is known of their present
text. Exit code 1 if a mutant survived for which `accepted.toml` gives no reason,
or if a reason there is of no mutant any more. docs/mutation.md says more.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

from conformance.stages.mutation import FILE, digest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COPIED = ("conformance", "impl", "spec", "models", "tests")
NOTICED = ("killed", "timeout", "segfault")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Group:
    """Modules, and the tests that have to notice what is done to them."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function. `change` are the lines taken out and put in."""

    function: str
    status: str
    change: str
    only_text: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Why mutants of the functions `where`, with a `change` that matches, may survive."""

    reason: str
    where: str
    change: str
    only_text: bool = False

    def explains(self, mutant: Mutant) -> bool:
        """Whether this is the reason for which it survived."""
        in_place = fnmatch.fnmatchcase(mutant.function, self.where)
        of_kind = mutant.only_text or not self.only_text
        return in_place and of_kind and re.search(self.change, mutant.change) is not None


def groups() -> list[Group]:
    """Those of groups.toml."""
    listed = tomllib.loads((HERE / "groups.toml").read_text(encoding="utf-8"))
    return [Group(n, tuple(g["modules"]), tuple(g["tests"])) for n, g in listed.items()]


def accepted() -> list[Accepted]:
    """Those of accepted.toml."""
    listed = tomllib.loads((HERE / "accepted.toml").read_text(encoding="utf-8"))
    return [Accepted(**one) for one in listed["accepted"]]


def prepare(group: Group, work: Path) -> None:
    """Bring the copy up to date; files that did not change keep their time and their results."""
    work.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        present = {path.relative_to(ROOT) for path in _sources(ROOT / name)}
        for old in list(_sources(work / name)):
            if old.relative_to(work) not in present:
                old.unlink()
        for path in sorted(present):
            source, target = ROOT / path, work / path
            if not target.exists() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    settings = {
        "source_paths": ["conformance"],
        "only_mutate": list(group.modules),
        "also_copy": ["impl", "spec", "models"],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "no:conformance.plugin"],
        "pytest_add_cli_args_test_selection": list(group.tests),
        "timeout_multiplier": 5.0,
        "timeout_constant": 4.0,
    }
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    (work / "pyproject.toml").write_text(f"{project}\n[tool.mutmut]\n{section}", encoding="utf-8")


def _sources(folder: Path) -> Iterator[Path]:
    return (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def forget_survivors(group: Group, work: Path) -> None:
    """Make mutmut ask again what no test noticed: it does not see that tests have changed.

    And what ran out of time, as a busy machine may have been the reason.
    """
    for module in group.modules:
        path = work / "mutants" / f"{module}.meta"
        if path.exists():
            meta = json.loads(path.read_text(encoding="utf-8"))
            codes = meta["exit_code_by_key"]
            kept = {k: v if status_by_exit_code[v] == "killed" else None for k, v in codes.items()}
            meta["exit_code_by_key"] = kept
            path.write_text(json.dumps(meta, indent=4), encoding="utf-8")


def run(work: Path, only: Sequence[str], jobs: int) -> None:
    """Run mutmut there. CalledProcessError if the tests fail without any mutation."""
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(jobs), *only]
    surroundings = {**os.environ, "PYTHONHASHSEED": "0"}
    subprocess.run(command, cwd=work, env=surroundings, check=True)


def mutants(group: Group, work: Path) -> Iterator[Mutant]:
    """All mutants of the group's modules, with what became of them."""
    with contextlib.chdir(work):
        for module in group.modules:
            meta = json.loads(Path("mutants", f"{module}.meta").read_text(encoding="utf-8"))
            for name, code in meta["exit_code_by_key"].items():
                status = status_by_exit_code[code]
                lines: list[str] = []
                if status not in (*NOTICED, "not checked"):
                    diff = get_diff_for_mutant(name, path=module).splitlines()[3:]
                    lines = [line for line in diff if line[:1] in "+-"]
                yield Mutant(_function(name), status, "\n".join(lines), _only_text(lines))


def _function(mutant: str) -> str:
    """`package.module.Class.method` of mutmut's name for a mutant."""
    module, _, rest = mutant.rpartition(".")
    name = rest.rpartition("__mutmut_")[0]
    return f"{module}.{name.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}"


def _only_text(lines: Sequence[str]) -> bool:
    """Whether old and new differ only inside of string literals."""
    old, new = (
        [TEXT.sub('""', line[1:]) for line in lines if line.startswith(sign)] for sign in "-+"
    )
    return bool(old) and old == new


def explained(found: Sequence[Mutant], reasons: Sequence[Accepted]) -> list[Mutant]:
    """The mutants that nothing noticed, with the reason for those that have one."""
    return [
        Mutant(
            one.function,
            one.status,
            one.change,
            one.only_text,
            next((r.reason for r in reasons if r.explains(one)), ""),
        )
        for one in found
        if one.status not in NOTICED
    ]


def changed(group: Group, work: Path) -> list[str]:
    """The modules that were not measured there, or whose text is another by now."""
    return [module for module in group.modules if not _measured(module, work)]


def _measured(module: str, work: Path) -> bool:
    copy, mutated = work / module, work / "mutants" / module
    return (
        copy.exists()
        and mutated.with_name(f"{mutated.name}.meta").exists()
        and mutated.stat().st_mtime > copy.stat().st_mtime
        and copy.read_bytes() == (ROOT / module).read_bytes()
    )


def report(results: Mapping[str, tuple[Group, list[Mutant]]]) -> dict[str, object]:
    """The score as JSON: by group, and all that was not noticed."""
    reasons = accepted()
    everything = [one for _, found in results.values() for one in found]
    survivors = explained(everything, reasons)
    modules = [module for group, _ in results.values() for module in group.modules]
    return {
        "schema_version": 1,
        "tool": f"mutmut {version('mutmut')}",
        "modules": sorted(modules),
        "digest": digest(modules),
        "mutants": len(everything),
        "noticed": len(everything) - len(survivors),
        "explained": sum(bool(one.reason) for one in survivors),
        "unexplained": sum(not one.reason for one in survivors),
        "groups": {
            name: dict(Counter(one.status for one in found)) for name, (_, found) in results.items()
        },
        "survivors": [
            {"function": one.function, "change": one.change, "reason": one.reason}
            for one in survivors
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen groups, write the score, say what is left."""
    parser = argparse.ArgumentParser(description="Run the groups of groups.toml.")
    parser.add_argument("group", nargs="*", help="the groups to run; all of groups.toml if none")
    parser.add_argument("--only", action="append", default=[], help="mutants of these names only")
    parser.add_argument("--jobs", type=int, default=1, help="mutants judged side by side")
    parser.add_argument("--work", type=Path, default=ROOT / ".tox" / "mutants")
    parser.add_argument("--output", type=Path, default=ROOT / "kconform-out" / FILE)
    chosen = parser.parse_args(arguments)
    results: dict[str, tuple[Group, list[Mutant]]] = {}
    for group in groups():
        work = chosen.work / group.name
        asked = not chosen.group or group.name in chosen.group
        if asked:
            prepare(group, work)
            if not chosen.only:
                forget_survivors(group, work)
            run(work, chosen.only, chosen.jobs)
        moved = changed(group, work)
        if not moved:
            results[group.name] = (group, list(mutants(group, work)))
        elif asked:
            print(f"\nNo score: {', '.join(moved)} changed meanwhile. Run it again.")
            return 1
    body = report(results)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    unused = _unused(results) if len(results) == len(groups()) and not chosen.only else []
    for one in unused:
        print(f"\naccepted.toml explains no survivor with: {one.where} {one.change}")
    return tell(body) or bool(unused)


def _unused(results: Mapping[str, tuple[Group, list[Mutant]]]) -> list[Accepted]:
    survivors = [m for _, found in results.values() for m in found if m.status not in NOTICED]
    return [one for one in accepted() if not any(map(one.explains, survivors))]


def tell(body: Mapping[str, object]) -> int:
    """Print the score and what is not explained."""
    survivors = body["survivors"]
    assert isinstance(survivors, list)
    for one in survivors:
        if not one["reason"]:
            print(f"\n{one['function']}\n{one['change']}")
    print(
        f"\n{body['mutants']} mutants: {body['noticed']} noticed by tests, {body['explained']} "
        f"survived for a reason that is given, {body['unexplained']} without one"
    )
    return 1 if body["unexplained"] else 0


if __name__ == "__main__":
    sys.exit(main())
