"""kconform bugs: which of Kafka's historical bugs the gate's oracles find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from conformance.bugs.bench import (
    BugEffort,
    BugResult,
    nearby,
    nearest_job,
    run_bench,
    search,
    touched,
)
from conformance.bugs.fault import (
    Catalogue,
    built_in_catalogues,
    copied,
    load_catalogue,
    patched_by_file,
    select,
)
from conformance.bugs.history import (
    BUG_FATES,
    BugHistoryPlan,
    BugHistoryResult,
    load_history,
    ordinary_tests,
    run_history,
    scores,
)
from conformance.bugs.mutation import (
    EXPLAINED,
    FATES,
    SURVIVED,
    TESTS,
    MutationPlan,
    MutationRun,
    by_cause,
    by_module,
    run_mutants,
)
from conformance.bugs.scope import changed_files
from conformance.bugs.worker import FaultSearchResult, PartStarted
from conformance.cli.completion import catalogue_systems, fault_ids, model_names
from conformance.cli.options import CompareOption, JsonOption, ReportOption, SeedOption
from conformance.cli.session import CommandSession, session
from conformance.errors import UserError
from conformance.events import Finding, JsonValue, Progress
from conformance.printable import counted
from conformance.registry import BUILT_IN
from conformance.resources import implementation_dir
from conformance.stages.context import Context, stage
from conformance.verdict import Verdict

_JUDGE_SECONDS = 8 * 3_600.0
"""By the clock, for all models with all oracles, as nothing may be found."""
_MINUTE = 60.0
"""Of the processor, for one change."""


def bugs(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Faults by id; default: all.", autocompletion=fault_ids),
    ] = None,
    patch: Annotated[
        Path | None, typer.Option(help="Run the oracles against this diff of impl/ instead.")
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="Judge a list of described bugs with patches of impl/ (docs/bugs.md)."),
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Run them against a clean copy: no false alarm.")
    ] = False,
    system: Annotated[
        str, typer.Option(help="The catalogue's system.", autocompletion=catalogue_systems)
    ] = "",
    catalogue: Annotated[
        Path | None, typer.Option(help="A catalogue of faults of your own (docs/bugs.md).")
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="Quick ones that the spec sees; no bulk traces.")
    ] = False,
    traces: Annotated[int, typer.Option(min=0, help="Random traces per fault and model.")] = 5_000,
    examples: Annotated[int, typer.Option(min=1, help="Hypothesis examples per model.")] = 200,
    list_faults: Annotated[bool, typer.Option("--list", help="List the faults, run none.")] = False,
    mutants: Annotated[
        int, typer.Option(min=0, help="Judge that many random mutants of impl/ instead.")
    ] = 0,
    mutant: Annotated[
        list[str] | None,
        typer.Option(help="Judge this mutant instead, by its id in a report of --mutants."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="With --mutants, --patch, --history, --clean: these models; default: all of ci.",
            autocompletion=model_names,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="With --mutants: only files that fit, such as 'controller/*'."),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(min=1, help="With --mutants: of the processor, for the oracles, each mutant."),
    ] = 30.0,
    by_tests: Annotated[
        bool,
        typer.Option(
            "--tests/--no-tests",
            help="With --mutants, --history: let tests judge survivors too.",
        ),
    ] = True,
    jobs: Annotated[
        int,
        typer.Option(
            min=0,
            help="With --mutants: how many mutants run at the same time; 0: one per core.",
        ),
    ] = 0,
    budget: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Stop after this many seconds, of the processor with --patch, --history and "
            "--clean; 0: no limit. [default: 60 with --patch and for each bug of --history]",
            show_default=False,
        ),
    ] = None,
    seed: SeedOption = None,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put each fault into a copy of the implementation and table which oracle kills it."""
    with session("bugs", as_json=as_json, report=report, compare=compare) as work:
        catalogues = _catalogues(catalogue, system)
        chosen_seed = work.settings.seed if seed is None else seed
        effort = BugEffort(chosen_seed, 0 if short else traces, examples, budget=budget or 0.0)
        within_a_minute = replace(effort, budget=_MINUTE if budget is None else budget)
        if list_faults:
            listed = select(catalogues, ids or [], short=short)
            work.listing("bugs", [row for catalogue in listed for row in _rows(catalogue)])
        work.keep_divergences()
        names = tuple(model or ())
        if mutants or mutant:
            systems = tuple(
                catalogue.system for catalogue in catalogues if catalogue.system in BUILT_IN
            )
            output = Path(work.settings.output)
            files = tuple(only or ())
            plan = MutationPlan(
                mutants,
                chosen_seed,
                systems,
                names,
                output,
                seconds=seconds,
                budget=budget or 0.0,
                tests=by_tests,
                only=files,
                named=tuple(mutant or ()),
                jobs=jobs,
            )
            _mutants(work, run_mutants(plan, work.emit))
        elif history is not None:
            tests = ordinary_tests() if by_tests else None
            bug_list = load_history(history)
            described = BugHistoryPlan(history, bug_list, catalogues, within_a_minute, names, tests)
            _history(work, described)
        elif patch is not None:
            with patched_by_file(patch) as folder:
                _judge(
                    work, _touched(catalogues, folder), patch.name, folder, within_a_minute, names
                )
        elif clean:
            with copied() as folder:
                _judge(work, catalogues, "clean copy", folder, effort, names)
        else:
            chosen = select(catalogues, ids or [], short=short)
            if not ids:
                count = counted(sum(len(catalogue.faults) for catalogue in chosen), "fault")
                work.say(f"{count}; name some to run fewer, --list lists them")
            folder = work.settings.divergences
            results = run_bench(chosen, effort, work.emit, folder)
            _table(work, results, explain=bool(ids))
            _not_applicable(work, chosen)


def _catalogues(path: Path | None, system: str) -> list[Catalogue]:
    catalogues = [
        load_catalogue(catalogue) for catalogue in ([path] if path else built_in_catalogues())
    ]
    fitting = [catalogue for catalogue in catalogues if system in ("", catalogue.system)]
    if not fitting:
        known = ", ".join(catalogue.system for catalogue in catalogues)
        raise UserError(f"There is no catalogue of faults for {system!r}. Known: {known}.")
    return fitting


def _rows(catalogue: Catalogue) -> Iterator[tuple[str, JsonValue]]:
    for fault in catalogue.faults:
        seen = "" if fault.unseen is None else "  (by tests of impl)"
        yield (
            f"{fault.id:<4} {fault.jira:<12} {','.join(fault.tags):<6} {fault.title}{seen}",
            {
                "bug": fault.id,
                "jira": fault.jira,
                "title": fault.title,
                "tags": list(fault.tags),
                "reason": "" if fault.unseen is None else fault.unseen.reason,
            },
        )
    for bug in catalogue.not_applicable:
        yield (
            f"{bug.id:<4} {bug.jira:<12} {'':<6} {bug.title}  (not applicable)",
            {"bug": bug.id, "jira": bug.jira, "title": bug.title, "reason": bug.reason},
        )


def _not_applicable(work: CommandSession, catalogues: Sequence[Catalogue]) -> None:
    for bug in (bug for catalogue in catalogues for bug in catalogue.not_applicable):
        work.say(f"{bug.id:<4} {bug.jira:<12} not applicable")
        work.say(f"{'':>4} {bug.reason}")


def _fate(result: FaultSearchResult) -> str:
    if not result.judged:
        return "open"
    return "killed" if result.killed else "SURVIVED"


def _table(work: CommandSession, results: Sequence[BugResult], *, explain: bool) -> None:
    head = f"{'traces':>7} {'steps':>8} {'seconds':>7} {'length':>6}"
    work.say(f"\n{'bug':<4} {'JIRA':<12} {'':<8} {'oracle':<22} {head}")
    for result in results:
        fault, fault_search_result = result.fault, result.search
        length = (
            ""
            if fault_search_result.counterexample_length is None
            else str(fault_search_result.counterexample_length)
        )
        work.say(
            f"{fault.id:<4} {fault.jira:<12} {_fate(fault_search_result):<8} "
            f"{fault_search_result.oracle:<22} {fault_search_result.traces:>7,} "
            f"{fault_search_result.steps:>8,} {fault_search_result.seconds:>7.1f} "
            f"{length:>6}"
        )
        if result.reason:
            work.say(f"{'':>4} {result.reason}")
        if explain:
            work.say(f"\n  {fault.title}")
            _explain(work, fault_search_result)


def _explain(work: CommandSession, result: FaultSearchResult) -> None:
    if result.title:
        work.say(f"  {result.title}" + (f"  (model {result.model})" if result.model else ""))
    for line in result.story:
        work.say(f"  {line}")


def _mutants(work: CommandSession, run: MutationRun) -> None:
    """The table by module, causes, and whoever the specification did not kill."""
    heads = ("spec", "limit", "tests", "explained", "survived", "open")
    layout = "{:<40} {:>5} {:>5} {:>5} {:>9} {:>8} {:>5}"
    work.say("\n" + layout.format("module", *heads))
    for file, fates in by_module(run.results).items():
        work.say(layout.format(file, *(fates[fate] for fate in FATES)))
    work.say("")
    for cause, number in by_cause(run.results).most_common():
        work.say(f"{number:>5}  {cause}")
    work.say(f"\n{run.population:>5}  mutants to draw from; set aside:")
    for reason, number in sorted(run.aside.items(), key=lambda pair: -pair[1]):
        work.say(f"{number:>5}  {reason}")
    for result in run.results:
        if result.fate in (TESTS, EXPLAINED, SURVIVED):
            work.say(f"{result.fate:<9} {result.mutant}")
            work.say(f"{'':<9} {result.cause}")


def _touched(catalogues: Sequence[Catalogue], folder: Path) -> list[Catalogue]:
    """Those whose system runs a file that differs from the clean one; UserError if none does."""
    result = touched(catalogues, folder)
    if not result:
        changed = changed_files(folder / "impl", implementation_dir())
        raise UserError(
            f"No system runs {', '.join(changed)}: the gate cannot say anything of this change. "
            "Cover it by ordinary tests."
        )
    return result


def _history(work: CommandSession, plan: BugHistoryPlan) -> None:
    """Killed by what, survived, why, as soon as it is known; then a score for each component."""
    layout = "{:<6} {:<12} {:<22} {:<9} {:>7}  {}"

    def say(result: BugHistoryResult) -> None:
        bug, seconds = result.bug, f"{result.search.seconds:.1f}"
        shown = result.by or result.why
        work.say(layout.format(bug.name, bug.jira, bug.component, result.fate, seconds, shown))

    work.say("\n" + layout.format("bug", "JIRA", "component", "fate", "seconds", "by what, or why"))
    results = run_history(plan, work.emit, say)
    layout_of_scores = "{:<36}" + " {:>9}" * len(BUG_FATES)
    work.say("\n" + layout_of_scores.format("component", *BUG_FATES))
    for component, fates in scores(results).items():
        work.say(layout_of_scores.format(component, *(fates[fate] for fate in BUG_FATES)))


def _judge(
    work: CommandSession,
    catalogues: Sequence[Catalogue],
    subject: str,
    folder: Path,
    effort: BugEffort,
    names: tuple[str, ...],
) -> None:
    """What the gate's oracles say of the implementation in this folder, until one finds fault."""
    context = Context(work.settings, work.emit, seed=effort.seed)
    systems = [catalogue.system for catalogue in catalogues]
    with stage(context, "bugs", subject) as outcome:
        kept = work.settings.divergences / f"bugs-{Path(subject).stem.replace(' ', '-')}.itf.json"
        job = nearest_job(catalogues, effort, names)
        job = msgspec.structs.replace(job, save_to=str(kept.absolute()))
        result = search(job, folder, _JUDGE_SECONDS + effort.budget, _telling(work))
        result = nearby(result, kept)
        if result.comparison is not None:
            shown = f"{result.comparison.system}, {subject}"
            work.emit(replace(result.comparison, system=shown))
        if result.killed:
            work.emit(_finding(result, subject))
        for failure in result.clean_failures:
            work.emit(_failure(failure))
        outcome.verdict, outcome.summary = _judged(result)
        outcome.figures = _figures(result, systems)
    if result.killed:
        _explain(work, result)


def _telling(work: CommandSession) -> Callable[[PartStarted], None]:
    """Shows what begins; where no progress bar is seen, a line on standard error."""
    shown = Console(stderr=True, highlight=False, soft_wrap=True)

    def tell(begun: PartStarted) -> None:
        work.emit(Progress("bugs", begun.done, begun.total, begun.part))
        if not shown.is_terminal:
            shown.print(f"{begun.part} ({begun.done} of {begun.total} done)", markup=False)

    return tell


def _judged(result: FaultSearchResult) -> tuple[Verdict, str]:
    driven = f"{counted(result.traces, 'trace')} and {counted(result.steps, 'step')}"
    if result.killed:
        return Verdict.FAIL, f"found by the {result.oracle}: {result.title}{_of_adapter(result)}"
    if result.clean_failures:
        return Verdict.FAIL, f"the clean tree fails too: {'; '.join(result.clean_failures)}"
    if not result.judged:
        return Verdict.INCONCLUSIVE, f"nothing found in {driven}, but {result.note}"
    undone = result.parts - len(result.covered)
    if undone:
        reached = (
            f"; {counted(len(result.reached), 'model')} came by the change" if result.noted else ""
        )
        return Verdict.INCONCLUSIVE, (
            f"nothing found in {driven}, but there was no time for {undone} of {result.parts} "
            f"parts{reached}"
        )
    if result.noted and not result.reached:
        return Verdict.INCONCLUSIVE, f"nothing that was driven came by the change, in {driven}"
    return Verdict.PASS, f"nothing found in {driven}"


def _of_adapter(result: FaultSearchResult) -> str:
    return "; the adapter raised, not the implementation" if result.by_adapter else ""


def _figures(result: FaultSearchResult, systems: Sequence[str]) -> dict[str, JsonValue]:
    return {
        "killed": result.killed,
        "systems": list(systems),
        "oracle": result.oracle or None,
        "model": result.model or None,
        "by_adapter": result.by_adapter,
        "reached": list(result.reached),
        "clean_failures": list(result.clean_failures),
        "traces": result.traces,
        "steps": result.steps,
        "seconds": result.seconds,
        "counterexample_length": result.counterexample_length,
        "covered": list(result.covered),
        "not_covered": result.note,
        "story": list(result.story),
    }


def _failure(failure: str) -> Finding:
    """What the clean tree fails, which is no kill of anything."""
    return Finding(
        f"bugs:clean:{failure}",
        f"the clean tree fails: {failure}",
        "bugs",
        "The same oracle with the same seed and samples finds this without the change, too. It is "
        "no kill: look at the implementation or at the oracle.",
        reproduce="kconform bugs --clean",
    )


def _finding(result: FaultSearchResult, subject: str) -> Finding:
    """The finding that killed the mutant, with the key that it has in every stage."""
    shown = result.shown or Finding(f"bugs:{result.title}", result.title, "bugs", "")
    adapter = (
        " The adapter raised, not the implementation: if the change renames or retypes what the "
        "adapter uses, change the adapter with it."
        if result.by_adapter
        else ""
    )
    return replace(
        shown,
        stage="bugs",
        message=(
            f"The {result.oracle} of {result.model} finds a fault in {subject}. "
            f"{shown.message}{adapter}"
        ),
        reproduce=f"kconform bugs --patch {subject} --model {result.model}",
    )
