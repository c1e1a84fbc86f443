"""One command's life: events out to terminal and files, errors to exit codes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from conformance.config import Settings, load_settings
from conformance.errors import INTERRUPTED, ExitCode, UserError
from conformance.events import Emit, JsonValue
from conformance.files import no_space, tells_of_no_space, written_aside
from conformance.report import github, json_report
from conformance.report.collect import SCHEMA_VERSION, Collector, Report
from conformance.report.terminal import Terminal
from conformance.verdict import Verdict


@dataclass(slots=True)
class Session:
    """What a command works with. `extra` verdicts count beside those of the stages."""

    command: str
    settings: Settings
    emit: Emit
    say: Callable[[str], None]
    header: dict[str, JsonValue] = field(default_factory=dict)
    extra: list[Verdict] = field(default_factory=list)
    closing: str = ""
    report: Report | None = None
    finish: Callable[[], Report] | None = None
    as_json: bool = False

    def listing(self, key: str, rows: Sequence[tuple[str, JsonValue]]) -> NoReturn:
        """Print the rows, each a line and an object, and end the command: nothing is run."""
        if self.as_json:
            _print_object(self.command, Verdict.PASS, 0.0, {key: [row for _, row in rows]})
        else:
            for line, _ in rows:
                self.say(line)
        raise SystemExit(ExitCode.PASS)


class _Console(Console):
    """Where rich would end with exit code 1, a violation's, it leaves that to the session."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@contextmanager
def session(command: str, *, as_json: bool, html: Path | None = None) -> Iterator[Session]:
    """Run a command's body; afterwards print its verdict and leave with its exit code.

    With `as_json` standard output carries one JSON object and nothing else, whatever happens.
    `html` is where the report is written as a page.
    """
    started = time.monotonic()
    console = _Console(stderr=as_json, highlight=False)
    try:
        with Terminal(console) as terminal:
            collector = Collector(terminal)
            settings = load_settings(Path.cwd())
            work = Session(command, settings, collector, terminal.line, as_json=as_json)

            def finish() -> Report:
                seconds = time.monotonic() - started
                return collector.report(command, seconds, work.header, *work.extra)

            work.finish = finish
            yield work
            report = work.report or finish()
        if html is not None:
            _write_page(report, html)
            work.closing = f"{work.closing}\nreport: {html}".strip()
        _publish(report, terminal, work.closing, as_json=as_json)
    except UserError as error:
        _mistake(command, error, as_json=as_json, started=started)
    except KeyboardInterrupt:
        _problem(command, "interrupted", as_json=as_json, started=started)
        print(INTERRUPTED, file=sys.stderr)
        raise SystemExit(ExitCode.INTERRUPTED) from None
    except BrokenPipeError:
        # What is still buffered goes nowhere, or Python's exit would complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(ExitCode.READER_GONE) from None
    except OSError as error:
        if tells_of_no_space(str(error)):
            full = no_space(Path(error.filename or Path.cwd()))
            _mistake(command, full, as_json=as_json, started=started)
        if error.errno is None or error.filename is None:
            raise
        place = f"{error.filename}: {error.strerror}"
        mistake = UserError(f"{place}. Mend that and start again.")
        _mistake(command, mistake, as_json=as_json, started=started)
    raise SystemExit(report.exit_code)


def _write_page(report: Report, path: Path) -> None:
    from conformance.report import html  # Jinja: few runs need it

    path.parent.mkdir(parents=True, exist_ok=True)
    with written_aside(path) as aside:
        aside.write_text(html.dumps(report), encoding="utf-8")


def _publish(report: Report, terminal: Terminal, closing: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_report.dumps(report))
        sys.stdout.flush()
    if github.inside_actions():
        github.annotate(report, sys.stderr if as_json else sys.stdout)
        github.write_summary(report)
    summary = f"{report.command} in {report.seconds:.1f} s"
    if report.findings:
        count = len(report.findings)
        summary += f", {count} finding{'s' if count > 1 else ''}"
    if not report.stages and not report.findings:
        summary += ": there was nothing to check"
    terminal.verdict(report.verdict, summary)
    if closing:
        terminal.line(closing)


def _mistake(command: str, error: UserError, *, as_json: bool, started: float) -> None:
    _problem(command, str(error), as_json=as_json, started=started)
    print(f"kconform: {error}", file=sys.stderr)
    raise SystemExit(error.exit_code) from None


def _problem(command: str, message: str, *, as_json: bool, started: float) -> None:
    if as_json:
        _print_object(command, Verdict.ERROR, time.monotonic() - started, {"error": message})


def _print_object(
    command: str, verdict: Verdict, seconds: float, further: Mapping[str, JsonValue]
) -> None:
    """The object of a command that ran no stage."""
    body: dict[str, JsonValue] = {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "verdict": str(verdict),
        "seconds": round(seconds, 3),
        **further,
        "findings": [],
    }
    sys.stdout.write(json.dumps(body, indent=2) + "\n")
