"""One command's life: events out to terminal and files, errors to exit codes."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import msgspec
from rich.console import Console

from conformance import __version__
from conformance.cli.endings import endings_seen
from conformance.cli.streams import prints_to_standard_error
from conformance.config import Settings, load_settings
from conformance.errors import INTERRUPTED, CommandEnded, ExitCode, UserError
from conformance.events import Emit, JsonValue
from conformance.files import check_folder, no_space, tells_of_no_space
from conformance.printable import bounded, counted, printable
from conformance.report import github, json_report
from conformance.report.causes import causes
from conformance.report.collect import SCHEMA_VERSION, Collector, Report
from conformance.report.exercised import exercised_lines
from conformance.report.files import Reports, reports
from conformance.report.terminal import Terminal
from conformance.stages.newest_tlc import use_newest_tlc
from conformance.systems.protocol import SystemFailed
from conformance.verdict import Verdict


@dataclass(slots=True)
class CommandSession:
    """What a command works with. `extra` verdicts count beside those of the stages."""

    command: str
    settings: Settings
    emit: Emit
    say: Callable[[str], None]
    header: dict[str, JsonValue] = field(default_factory=dict)
    extra: list[Verdict] = field(default_factory=list)
    closing: str = ""
    finished: Report | None = None
    reports: Reports | None = None
    as_json: bool = False

    def report_to(self, folder: Path | None, compare: Path | None = None) -> None:
        """Settle where reports go, before anything runs. UserError if it is not writable.

        What goes with the reports, such as the ITF files of divergences, goes to their folder.
        """
        if folder is None:
            raise UserError("--compare goes with --report: the folder of the report to write.")
        self.reports = reports(folder, compare)
        self.settings = msgspec.structs.replace(self.settings, output=str(folder))
        self.header.setdefault("version", __version__)

    def keep_divergences(self) -> None:
        """Settle where ITF files of divergences go, before anything runs: as `report_to` does."""
        check_folder(self.settings.divergences)

    def listing(self, key: str, rows: Sequence[tuple[str, JsonValue]]) -> NoReturn:
        """Print the rows, each a line and an object, and end the command: nothing is run."""
        for line, _ in () if self.as_json else rows:
            self.say(line)
        raise _Listed({key: [row for _, row in rows]})


class _Listed(CommandEnded):
    """A command has listed what there is, and nothing was run."""

    def __init__(self, rows: Mapping[str, JsonValue]) -> None:
        super().__init__(ExitCode.PASS)
        self.rows = rows


class _Console(Console):
    """Where rich would end with exit code 1, a violation's, it leaves that to the session."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@contextmanager
def _written(work: CommandSession, finish: Callable[[], Report]) -> Iterator[None]:
    """Write the reports, also after a failure: whoever looks for the report must find it."""
    try:
        yield
    except BaseException:
        work.header["incomplete"] = True  # a report of half a run must not look whole
        work.extra.append(Verdict.INCONCLUSIVE)
        raise
    finally:
        if work.reports is not None:
            work.finished = finish()
            files, since = work.reports.write(work.finished)
            lines = [f"{path.name:<12} {path}" for path in files]
            if since is not None:
                lines.insert(0, since.line())
            work.closing = "\n".join([*lines, *filter(None, [work.closing])])


@contextmanager
def session(
    command: str, *, as_json: bool, report: Path | None = None, compare: Path | None = None
) -> Iterator[CommandSession]:
    """Run a command's body; afterwards print its verdict and leave with its exit code.

    With `as_json` standard output carries one JSON object and nothing else, whatever happens.
    `report` is the folder that gets the reports, also those of a run that ends early; `compare`
    an earlier report.json. Where divergences are kept is settled there too.
    """
    started = time.monotonic()
    console = _Console(stderr=as_json, highlight=False)
    try:
        with endings_seen(), prints_to_standard_error(as_json), Terminal(console) as terminal:
            collector = Collector(terminal)
            settings = load_settings(Path.cwd())
            use_newest_tlc(tell=terminal.line)
            work = CommandSession(command, settings, collector, terminal.line, as_json=as_json)
            if report is not None or compare is not None:
                work.report_to(report, compare)

            def finish() -> Report:
                seconds = time.monotonic() - started
                return collector.report(command, seconds, work.header, *work.extra)

            with _written(work, finish):
                yield work
            finished = work.finished or finish()
        _publish(finished, terminal, work.closing, as_json=as_json)
    except _Listed as listed:
        if as_json:
            _print_object(command, Verdict.PASS, 0.0, listed.rows)
        raise
    except UserError as error:
        mistake(command, error, as_json=as_json, started=started)
    except SystemFailed as failed:  # in a test it is a divergence; this was before any
        mistake(command, _never_ready(failed), as_json=as_json, started=started)
    except KeyboardInterrupt:
        _problem(command, "interrupted", as_json=as_json, started=started)
        print(INTERRUPTED, file=sys.stderr)
        raise CommandEnded(ExitCode.INTERRUPTED) from None
    except CommandEnded:
        raise
    except SystemExit as foreign:
        mistake(command, _ended_by(foreign), as_json=as_json, started=started)
    except BrokenPipeError:
        raise  # nobody reads: `cli.main` ends every command then
    except OSError as error:
        if tells_of_no_space(str(error)):
            full = no_space(Path(error.filename or Path.cwd()))
            mistake(command, full, as_json=as_json, started=started)
        if error.errno is None or error.filename is None:
            raise
        place = f"{error.filename}: {error.strerror}"
        unusable = UserError(f"{place}. Mend that and start again.")
        mistake(command, unusable, as_json=as_json, started=started)
    raise CommandEnded(finished.exit_code)


def _never_ready(failed: SystemFailed) -> UserError:
    return UserError(
        f"The system failed before its first step, and nothing was judged. {failed}\nMend that, or "
        "leave out what makes it fail (for a broker, `--api-version NAME=VERSION`)."
    )


def _ended_by(foreign: SystemExit) -> UserError:
    """Code of a user has ended the process: without this its exit code would be the verdict."""
    last = traceback.extract_tb(foreign.__traceback__)[-1]
    return UserError(
        f"The code at {last.filename}:{last.lineno} ended the process (SystemExit: {foreign}), and "
        "nothing was judged. Raise another exception there, or leave sys.exit to a main program."
    )


def _publish(report: Report, terminal: Terminal, closing: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_report.dumps(report))
        sys.stdout.flush()
    if github.inside_actions():
        github.annotate(report, sys.stderr if as_json else sys.stdout)
        github.write_summary(report)
    for line in exercised_lines(report):
        terminal.line(line)
    summary = f"{report.command} in {report.seconds:.1f} s"
    if report.findings:
        count = len(report.findings)
        summary += f", {counted(count, 'finding')}"
        likely = len(causes(report.findings))
        if likely < count:
            summary += f" of likely {counted(likely, 'cause')}"
    if not report.stages and not report.findings:
        summary += ": there was nothing to check"
    terminal.verdict(report.verdict, summary)
    if closing:
        terminal.line(closing)


def mistake(command: str, error: UserError, *, as_json: bool, started: float) -> NoReturn:
    """Print a user's mistake, and end with its exit code."""
    message = bounded(str(error))
    _problem(command, message, as_json=as_json, started=started)
    print(f"kconform: {printable(message)}", file=sys.stderr)
    raise CommandEnded(error.exit_code) from None


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
