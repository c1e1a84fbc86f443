"""What became of the lines of server logs: how many were understood, and what that leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from conformance.events import JsonValue
from conformance.inspect.evidence import Evidence
from conformance.inspect.findings import UnjudgedSubject
from conformance.printable import counted

_DECLARE = (
    "Declare how its lines are laid out with --log-layout, for instance '%d %p %m (%c)%n', or give "
    "the text of the log (gzip is read, other archives are not), or leave the file out"
)


@dataclass(frozen=True, slots=True)
class ServerLog:
    """A server log; its lines are understood, other or unreadable, as the table says."""

    broker: str
    """'' where it is not known whose it is."""
    path: str
    layout: str
    lines: int
    understood: int
    other: int
    unreadable: int
    undated: int
    first_unreadable: int
    sample: str

    @property
    def readable(self) -> int:
        """Lines of a known layout, and what goes on with them."""
        return self.understood + self.other

    def counts(self) -> str:
        """In words."""
        return (
            f"{counted(self.lines, 'line')}, {self.understood:,} understood, {self.other:,} other, "
            f"{self.unreadable:,} unreadable"
        )

    def as_json(self) -> dict[str, JsonValue]:
        """The log in the JSON report."""
        return asdict(self)


def read_server_logs(evidence: Evidence) -> tuple[ServerLog, ...]:
    """All of them, by broker and path."""
    logs = (ServerLog(**row) for row in evidence.rows("server_logs"))
    return tuple(sorted(logs, key=lambda log: (log.broker, log.path)))


def out_of_order(logs: Sequence[ServerLog]) -> frozenset[str]:
    """Brokers of whose lines without a date nobody can tell where they belong among the others."""
    by_broker: dict[str, list[ServerLog]] = {}
    for log in logs:
        if log.understood:
            by_broker.setdefault(log.broker, []).append(log)
    return frozenset(
        broker
        for broker, several in by_broker.items()
        if len(several) > 1 and any(log.undated for log in several)
    )


def not_understood(logs: Sequence[ServerLog]) -> Iterator[UnjudgedSubject]:
    """What the logs would have told, had they been understood."""
    for log in logs:
        yield from _of_log(log)
    for broker in dict.fromkeys(log.broker for log in logs):
        own = [log for log in logs if log.broker == broker]
        if broker and any(log.readable for log in own) and not any(log.understood for log in own):
            yield UnjudgedSubject(
                f"the server logs of {broker}",
                "who led, truncations and high watermarks that they tell",
                f"none of their {sum(log.lines for log in own):,} lines says anything that is "
                "known of replication or groups. Give server.log at level INFO, of the time in "
                "question; if it is that, its layout or its wordings are not known",
                matters=True,
            )
    for broker in sorted(out_of_order(logs)):
        yield UnjudgedSubject(
            f"the server logs of {broker}",
            f"{counted(sum(log.undated for log in logs if log.broker == broker), 'line')} without "
            "a date",
            "the order of lines in several files is only known by their dates. Give one file, with "
            "the parts put together in their order",
            matters=True,
        )


def _of_log(log: ServerLog) -> Iterator[UnjudgedSubject]:
    name = f"{log.broker}: {log.path}" if log.broker else log.path
    if not log.lines:
        why = "the file is empty. Give the log that the broker wrote, or leave the file out"
        yield UnjudgedSubject(name, "the server log", why, matters=True)
    elif not log.readable:
        why = f"no line has a layout that is known; {_first(log)}. {_DECLARE}"
        yield UnjudgedSubject(name, "the server log", why, matters=True)
    elif log.unreadable > log.readable:
        what = f"{log.unreadable:,} of {counted(log.lines, 'line')}"
        yield UnjudgedSubject(
            name, what, f"they are unreadable; {_first(log)}. {_DECLARE}", matters=True
        )
    if not log.broker and log.understood:
        why = "it does not tell whose log it is. Name the broker: --logs NAME=PATTERN"
        yield UnjudgedSubject(name, f"{counted(log.understood, 'line')}", why, matters=True)


def _first(log: ServerLog) -> str:
    return f"line {log.first_unreadable} begins {log.sample[:80]!r}"
