"""The terminal: live progress for a person, one line per stage in CI."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column

from conformance.events import Event, Finding, PrintedLine, StageFinished, StageStarted
from conformance.events import Progress as ProgressEvent
from conformance.report.text import finding_lines, printable
from conformance.verdict import Verdict

_STYLE = {
    Verdict.PASS: "bold green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.ERROR: "bold red",
}


def _belongs(finding: Finding, stage: StageFinished) -> bool:
    """Whether it is of this stage; of several models that are checked side by side, of this one."""
    return finding.stage == stage.stage and finding.about in ("", stage.subject)


class Terminal:
    """An event consumer. Use as a context manager: leaving it restores the terminal."""

    def __init__(self, console: Console, *, live: bool | None = None) -> None:
        self._console = console
        self._live = console.is_terminal if live is None else live
        self._tasks: dict[str, TaskID] = {}
        self._findings: list[Finding] = []
        self._progress = Progress(
            SpinnerColumn(),
            # In a narrow window the text gives way, not the numbers.
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True)),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            expand=True,
            # With --json the console is standard error; the object must not end up there.
            redirect_stdout=False,
            disable=not self._live,
        )

    def __enter__(self) -> Terminal:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()
        self._print_findings(lambda _: True)

    def __call__(self, event: Event) -> None:
        match event:
            case StageStarted():
                self._started(event)
            case ProgressEvent():
                self._advanced(event)
            case PrintedLine():
                self.line(event.line)
            case Finding():
                self._findings.append(event)  # below the line of its stage, which ends later
            case StageFinished():
                self._finished(event)

    def finding(self, finding: Finding) -> None:
        """Print one finding in full."""
        first, *rest = finding_lines(finding)
        self._console.print(f"  [red]✗ {escape(first)}[/red]", soft_wrap=True)
        for line in rest:
            # Not broken at the terminal's width: commands and paths are there to be copied.
            self._console.print(f"    {line}", markup=False, highlight=False, soft_wrap=True)

    def verdict(self, verdict: Verdict, summary: str) -> None:
        """The closing line of a command."""
        style = _STYLE[verdict]
        self._console.print(f"[{style}]{verdict.upper()}[/{style}]  {escape(printable(summary))}")

    def line(self, text: str) -> None:
        """A plain line above the progress display."""
        self._console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def _started(self, event: StageStarted) -> None:
        if not self._live:
            return
        label = printable(f"{event.stage} {event.subject}".strip())
        self._drop(event.stage)
        self._tasks[event.stage] = self._progress.add_task(escape(label), total=event.total)

    def _advanced(self, event: ProgressEvent) -> None:
        task = self._tasks.get(event.stage)
        if task is not None:
            label = printable(f"{event.stage} {event.message}".strip())
            self._progress.update(
                task, completed=event.done, total=event.total, description=escape(label)
            )

    def _finished(self, event: StageFinished) -> None:
        self._drop(event.stage)
        style = _STYLE[event.verdict]
        label = printable(f"{event.stage} {event.subject}".strip())
        self._console.print(
            f"[{style}]{event.verdict:<12}[/{style}] {escape(label):<34} "
            f"{event.seconds:6.1f} s  {escape(printable(event.summary))}",
            # Broken between words for a person, a line of its own in a log.
            soft_wrap=not self._live,
            highlight=False,
        )
        self._print_findings(lambda finding: _belongs(finding, event))

    def _print_findings(self, chosen: Callable[[Finding], bool]) -> None:
        """Print those that are chosen of the findings that wait."""
        waiting, self._findings = self._findings, []
        for finding in waiting:
            if chosen(finding):
                self.finding(finding)
            else:
                self._findings.append(finding)

    def _drop(self, stage: str) -> None:
        task = self._tasks.pop(stage, None)
        if task is not None:
            self._progress.remove_task(task)
