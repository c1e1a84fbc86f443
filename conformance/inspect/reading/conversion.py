"""A conversion pattern of log4j as the regular expression that takes a line apart.

The expression is wider than the pattern: see the head of log_layouts.toml. Source of the names:
log4j 1's and log4j2's PatternLayout, logback's PatternLayout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.errors import UserError

_CONVERSION = re.compile(
    r"%(?P<width>-?\d+)?(?:\.-?\d+)?(?P<name>[A-Za-z]+)(?P<options>(?:\{[^{}]*\})*)|%%"
)
_STYLED = re.compile(r"%(?:highlight|style)\{((?:[^{}]|\{[^{}]*\})*)\}(?:\{[^{}]*\})*")
_BRACKETED = re.compile(r"\[(%-?\d*(?:\.-?\d+)?(?:d|date|p|level|le)(?:\{[^{}]*\})*)\]")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "time": ("d", "date"),
    "level": ("p", "level", "le"),
    "logger": ("c", "logger", "lo"),
    "message": ("m", "msg", "message"),
    "thread": ("t", "tn", "thread", "threadName"),
    "number": (
        *("L", "line", "r", "relative", "pid", "processId", "T", "tid", "threadId"),
        *("tp", "threadPriority", "sn", "sequenceNumber", "N", "nano"),
    ),
    "word": (
        *("C", "class", "F", "file", "M", "method", "l", "location", "marker"),
        *("markerSimpleName", "K", "MAP", "map", "u", "uuid", "x", "NDC", "X", "mdc", "MDC"),
    ),
    "nothing": ("n", "ex", "exception", "throwable", "rEx", "xEx", "xThrowable", "wEx"),
}
_CONVERSIONS = {name: part for part, names in _NAMES.items() for name in names}
_LEVEL = r"(?P<level>(?i:TRACE|DEBUG|INFO|WARNING|WARN|ERROR|FATAL)\b)"
_NO_DATE = r"(?!\d{4}-)"
"""A date in brackets is no thread."""
DATED = (
    r"(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?: ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?"
    r"|\d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d(?:[.,]\d{3})?)"
)
"""The usual forms of a full date and time."""
_FORMATS: Mapping[str, str] = {
    "ABSOLUTE": r"\d\d:\d\d:\d\d[.,]\d{3}",
    "COMPACT": r"\d{17}",
    "UNIX": r"\d{10}",
    "UNIX_MILLIS": r"\d{13}",
}
_LETTERS: Mapping[str, tuple[str, str]] = {
    "yyyy": (r"\d{4}", "%Y"), "uuuu": (r"\d{4}", "%Y"), "yy": (r"\d\d", "%y"),
    "MMM": ("[A-Za-z]{3}", "%b"), "MM": (r"\d\d", "%m"), "dd": (r"\d\d", "%d"),
    "d": (r"\d{1,2}", "%d"), "HH": (r"\d\d", "%H"), "mm": (r"\d\d", "%M"), "ss": (r"\d\d", "%S"),
    "EEE": ("[A-Za-z]{3}", "%a"), "S": (r"\d{1,6}", "%f"),
    "X": (r"(?:Z|[+-]\d\d:?\d\d)", "%z"), "Z": (r"[+-]\d{4}", "%z"),
}  # fmt: skip
_RUN = re.compile(r"'(?P<quoted>[^']*)'|(?P<letters>([A-Za-z])\3*)|(?P<other>.)")


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A pattern as an expression with the groups time, level and message, as far as it has them."""

    regex: re.Pattern[str]
    time_format: str = ""
    """strptime's; '' where the time has one of the usual forms."""
    zone: str = ""
    """The name of the zone that the pattern states."""


@dataclass(frozen=True, slots=True)
class _PatternToken:
    """A conversion, or the text between two."""

    part: str
    text: str = ""
    options: tuple[str, ...] = ()
    padding: str = ""


def converted(pattern: str) -> LinePattern:
    """The expression of a pattern. Raises UserError: a conversion that is not known, no message."""
    tokens = [_PatternToken("text"), *_tokens(_BRACKETED.sub(r"\1", _STYLED.sub(r"\1", pattern)))]
    message = [number for number, token in enumerate(tokens) if token.part == "message"]
    if len(message) != 1:
        raise UserError(
            f"The pattern {pattern!r} has {len(message)} places for the message; %m stands for it, "
            "and must be there once."
        )
    pieces = [_regex(tokens, number) for number in range(len(tokens))]
    head, tail = "".join(pieces[: message[0]]), "".join(pieces[message[0] + 1 :])
    regex = re.compile(rf"{head}(?P<message>.*?)(?:{tail})?\s*$", re.DOTALL)
    times = [_time(token.options) for token in tokens if token.part == "time"]
    return LinePattern(regex, *times[0][1:]) if times else LinePattern(regex)


def _tokens(pattern: str) -> list[_PatternToken]:
    tokens: list[_PatternToken] = []
    position = 0
    for match in _CONVERSION.finditer(pattern):
        tokens.append(_PatternToken("text", pattern[position : match.start()]))
        position = match.end()
        if match["name"] is None:
            tokens.append(_PatternToken("text", "%"))
            continue
        part, rest = _part(match["name"])
        options = tuple(re.findall(r"\{([^{}]*)\}", match["options"]))
        tokens.append(_PatternToken(part, "", options, " *" if match["width"] else ""))
        tokens.append(_PatternToken("text", rest))
    tokens.append(_PatternToken("text", pattern[position:]))
    return [token for token in tokens if token.part != "text" or token.text]


def _part(name: str) -> tuple[str, str]:
    """What a conversion stands for; log4j takes the longest name that it knows."""
    for end in range(len(name), 0, -1):
        if name[:end] in _CONVERSIONS:
            return _CONVERSIONS[name[:end]], name[end:]
    raise UserError(
        f"%{name} is no conversion that is known here. Declare the layout as a regular expression "
        "with the groups time, level and message, as in (?P<message>.*)."
    )


def _regex(tokens: Sequence[_PatternToken], number: int) -> str:
    """The expression of one token; its neighbours tell where it ends."""
    token, before = tokens[number], tokens[number - 1]
    after = [*tokens[number + 1 :], _PatternToken("text"), _PatternToken("text")]
    to_message = "".join(t.text for t in after[:1]) if after[1].part == "message" else None
    match token.part:
        case "text":
            return _text(token.text, before.part == "word", after[0].part == "message")
        case "time":
            return rf"\[?(?P<time>{_time(token.options)[0]})\]?"
        case "level":
            return rf"\[?{token.padding}{_LEVEL}{token.padding}\]?"
        case "logger":
            word = r"(?:[\w$-]+\.)+[\w$-]+" if to_message == " " else r"[\w.$/-]+"
            return rf"{token.padding}{word}(?::\d+)?{token.padding}"
        case "thread" | "word":
            return token.padding + _name(token.part, before.text, to_message) + token.padding
        case "number":
            return rf"{token.padding}[\d?]+{token.padding}"
        case _:
            return ""


def _text(text: str, after_word: bool, before_message: bool) -> str:
    """Spaces are as many as there are; a word may be empty, and then they are fewer."""
    if before_message and re.fullmatch(r" *[-:] +", text):
        return " *[-:] +"
    spaces = " *" if after_word else " +"
    pieces = re.findall(r"\s+|\S", text)
    return "".join(spaces if piece.isspace() else re.escape(piece) for piece in pieces)


def _name(part: str, before: str, to_message: str | None) -> str:
    """A thread or a word, up to its bracket or space.

    Messages of Kafka begin with brackets too, with spaces or `=` between them: a bracket that
    stands right before the message is a thread only without these.
    """
    if to_message == "] ":
        return _NO_DATE + r"[^\]\s=]+"
    if before.endswith("["):
        return _NO_DATE + r"[^\]]*"
    if before.endswith("("):
        return "[^)]*"
    return r"\S*" if part == "word" else r"\S+"


def _time(options: Sequence[str]) -> tuple[str, str, str]:
    """The expression of a time, strptime's format and the name of the zone."""
    form, zone = (*options, "", "")[:2]
    if form in _FORMATS:
        return _FORMATS[form], "", zone
    if re.fullmatch(r"[A-Z0-9_]*", form):  # none, DEFAULT, DATE, ISO8601 and its relatives
        return DATED, "", zone
    regex = time_format = ""
    for match in _RUN.finditer(form):
        letters = match["letters"]
        if letters is None:
            literal = match["quoted"] if match["quoted"] is not None else match["other"]
            regex, time_format = regex + re.escape(literal), time_format + literal
            continue
        known = _LETTERS.get(letters) or _LETTERS.get(letters[0] if letters[0] in "SnXZx" else "")
        if known is None:
            raise UserError(
                f"{letters!r} in %d{{{form}}} is not known here. Declare the layout as a regular "
                "expression with the groups time, level and message, as in (?P<message>.*)."
            )
        regex, time_format = regex + known[0], time_format + known[1]
    return regex, time_format, zone
