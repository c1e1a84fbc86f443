"""Reads what TLC says in `-tool` mode, by message code; the texts vary between versions.

Codes: tlc2.output.EC. Each message stands between `@!@!@STARTMSG code:severity @!@!@` and
`@!@!@ENDMSG code @!@!@`; what SANY and `Print` write stands outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum


class MessageCode(IntEnum):
    """The message codes that matter here."""

    VERSION = 2262
    FINISHED = 2186
    SUCCESS = 2193
    SEARCH_DEPTH = 2194
    STATS = 2199
    PROGRESS = 2200
    PROGRESS_SIMULATION = 2209
    STATS_SIMULATION = 2210
    INIT_GENERATED_ONE = 2190
    INIT_GENERATED_MANY = 2191
    ASSUMPTION_FALSE = 2104
    INVARIANT_INITIAL = 2107
    PROPERTY_INITIAL = 2108
    INVARIANT = 2110
    ACTION_PROPERTY = 2112
    DEADLOCK = 2114
    TEMPORAL = 2116
    BEHAVIOR = 2121
    BACK_TO_STATE = 2122
    ASSERT_FAILED = 2132
    STATE = 2217
    STUTTERING = 2218
    POSTCONDITION_FALSE = 2404


class ViolationKind(StrEnum):
    """What kind of formula TLC found violated."""

    INVARIANT = "invariant"
    ACTION_PROPERTY = "action property"
    TEMPORAL_PROPERTY = "temporal property"
    DEADLOCK = "deadlock"
    ASSUMPTION = "assumption"
    ASSERTION = "assertion"
    POSTCONDITION = "postcondition"


@dataclass(frozen=True, slots=True)
class TlcMessage:
    """One message; code 0 is a line outside of messages. Severity 1 is an error, 3 a warning."""

    code: int
    severity: int
    text: str


@dataclass(frozen=True, slots=True)
class TraceState:
    """A state of the error trace as printed; `label` is the action's name, "" at the start."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Violation:
    """What was violated; `name` as TLC prints it: a formula's name or its place."""

    kind: ViolationKind
    name: str


@dataclass(slots=True)
class Transcript:
    """All that TLC said, collected message by message."""

    version: str = ""
    finished: bool = False
    success: bool = False
    violation: Violation | None = None
    trace: list[TraceState] = field(default_factory=list)
    back_to: int | None = None
    """A lasso's loop leads back to this state of the trace, counted from 1."""
    stuttering: bool = False
    generated_states: int | None = None
    distinct_states: int | None = None
    depth: int | None = None
    collision_probability: float | None = None
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def add(self, message: TlcMessage) -> None:
        """Take in one message."""
        handler = _HANDLERS.get(message.code)
        if handler is not None:
            handler(self, message.text)
        elif message.code == 0:
            self.outside.append(message.text)
        elif message.severity in (1, 2) and message.code != MessageCode.BEHAVIOR:
            self.errors.append(message.text)


_START = re.compile(r"^@!@!@STARTMSG (-?\d+):(\d+) @!@!@$")
_END = re.compile(r"^@!@!@ENDMSG (-?\d+) @!@!@$")
_MARKER = re.compile(r"@!@!@(?:STARTMSG|ENDMSG) \S+ @!@!@")


def messages(lines: Iterable[str]) -> Iterator[TlcMessage]:
    """The messages in TLC's output, as they are complete; a cut-off last one is dropped.

    TLC wraps an error's message into another one: what is inside belongs to the outer one.
    """
    head: tuple[int, int] | None = None
    text: list[str] = []
    for raw in lines:
        line = raw.rstrip("\r\n")
        if head is None:
            if start := _START.match(line):
                head, text = (int(start[1]), int(start[2])), []
            elif line.strip():
                yield TlcMessage(0, 0, line)
        elif (end := _END.match(line)) and int(end[1]) == head[0]:
            yield TlcMessage(*head, "\n".join(text))
            head = None
        else:
            inner = _MARKER.sub("", line)
            if inner or not line:
                text.append(inner)


_STATS = re.compile(r"([\d,]+) states generated.*?, ([\d,]+) distinct states found")
_SIMULATED = re.compile(r"([\d,]+) states generated|number of states generated: ([\d,]+)")
_NUMBER = re.compile(r"\d[\d,]*")
_PROBABILITY = re.compile(r"val = ([-\d.E+]+)")
_TRACE_STATE = re.compile(r"^(\d+): <?(.*?)>?$")
_STATE_ACTION = re.compile(r"^([\w!]+)(?:\(.*\))? line \d+", re.DOTALL)
_NAMED = re.compile(
    r"^(?:Invariant|Action property|Property|Assumption) (.*?) is (?:violated|false)", re.DOTALL
)


def statistics(text: str) -> tuple[int, int] | None:
    """Generated and distinct states in a progress or final message."""
    match = _STATS.search(text)
    return (_integer(match[1]), _integer(match[2])) if match else None


def _integer(text: str) -> int:
    return int(text.replace(",", ""))


def _stats(transcript: Transcript, text: str) -> None:
    # A progress message counts too: after a kill it is all there is.
    if numbers := statistics(text):
        transcript.generated_states, transcript.distinct_states = numbers


def _simulated(transcript: Transcript, text: str) -> None:
    # Simulation remembers no state, so how many are distinct nobody knows.
    if match := _SIMULATED.search(text):
        transcript.generated_states = _integer(match[1] or match[2])


def _depth(transcript: Transcript, text: str) -> None:
    if match := _NUMBER.search(text):
        transcript.depth = _integer(match[0])


def _success(transcript: Transcript, text: str) -> None:
    transcript.success = True
    # Two estimates when TLC knows both: calculated first, then based on the actual fingerprints.
    values = _PROBABILITY.findall(text)
    if values:
        transcript.collision_probability = max(float(value) for value in values)


def _version(transcript: Transcript, text: str) -> None:
    transcript.version = text.strip()


def _finished(transcript: Transcript, _text: str) -> None:
    transcript.finished = True


def _violated(kind: ViolationKind) -> Callable[[Transcript, str], None]:
    def handler(transcript: Transcript, text: str) -> None:
        if transcript.violation is None:
            match = _NAMED.match(text)
            transcript.violation = Violation(kind, match[1] if match else "")

    return handler


def _violated_initially(kind: ViolationKind) -> Callable[[Transcript, str], None]:
    violated = _violated(kind)

    def handler(transcript: Transcript, text: str) -> None:
        violated(transcript, text)
        state = text.partition("\n")[2].strip()
        if state:
            transcript.trace.append(TraceState("", state))

    return handler


def _postcondition(transcript: Transcript, text: str) -> None:
    name = text.removeprefix("Postcondition ").partition(" ")[0]
    transcript.violation = transcript.violation or Violation(ViolationKind.POSTCONDITION, name)


def _assertion(transcript: Transcript, text: str) -> None:
    transcript.violation = transcript.violation or Violation(ViolationKind.ASSERTION, text.strip())


def _state(transcript: Transcript, text: str) -> None:
    head, _, state = text.partition("\n")
    match = _TRACE_STATE.match(head)
    action = _STATE_ACTION.match(match[2]) if match else None
    transcript.trace.append(TraceState(action[1] if action else "", state.strip()))


def _back_to_state(transcript: Transcript, text: str) -> None:
    if match := _NUMBER.search(text):
        transcript.back_to = _integer(match[0])


def _stuttering(transcript: Transcript, _text: str) -> None:
    transcript.stuttering = True


_HANDLERS: dict[int, Callable[[Transcript, str], None]] = {
    MessageCode.VERSION: _version,
    MessageCode.FINISHED: _finished,
    MessageCode.SUCCESS: _success,
    MessageCode.SEARCH_DEPTH: _depth,
    MessageCode.STATS: _stats,
    MessageCode.PROGRESS: _stats,
    MessageCode.PROGRESS_SIMULATION: _simulated,
    MessageCode.STATS_SIMULATION: _simulated,
    MessageCode.ASSUMPTION_FALSE: _violated(ViolationKind.ASSUMPTION),
    MessageCode.INVARIANT_INITIAL: _violated_initially(ViolationKind.INVARIANT),
    MessageCode.PROPERTY_INITIAL: _violated_initially(ViolationKind.ACTION_PROPERTY),
    MessageCode.INVARIANT: _violated(ViolationKind.INVARIANT),
    MessageCode.ACTION_PROPERTY: _violated(ViolationKind.ACTION_PROPERTY),
    MessageCode.DEADLOCK: _violated(ViolationKind.DEADLOCK),
    MessageCode.TEMPORAL: _violated(ViolationKind.TEMPORAL_PROPERTY),
    MessageCode.ASSERT_FAILED: _assertion,
    MessageCode.POSTCONDITION_FALSE: _postcondition,
    MessageCode.STATE: _state,
    MessageCode.BACK_TO_STATE: _back_to_state,
    MessageCode.STUTTERING: _stuttering,
}
