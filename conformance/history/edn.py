"""Jepsen's histories of its Kafka workload, as they are: one operation a line, as EDN.

    {:process 3, :type :ok, :f :txn, :time 1200, :value [[:send 5 [17 2]] [:poll {5 [[16 1]]}]]}

Only what such histories have is read: maps, vectors, lists, sets, keywords, symbols, texts, numbers
and tags, of which the value counts. Operations of the nemesis are no clients'.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec
import pyarrow as pa

from conformance.conversion import convert
from conformance.history.lines import (
    LINES,
    BadLine,
    LineBlock,
    LoggedOperation,
    as_row,
)

Edn: TypeAlias = "bool | int | float | str | list[Edn] | dict[object, Edn] | None"


class Keyword(str):
    """`:send`, without its colon; texts are plain."""

    __slots__ = ()


_BLANK = re.compile(r"(?:[\s,]+|;[^\n]*)*")
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|#\{|#_|#[\w./-]+|[\[\](){}]|[^\s,\[\](){}";]+')
_CLOSING = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_DEEP = 50


def parse(text: str) -> Edn:
    """One value. ValueError if the text is not one."""
    tokens = _tokens(text)
    value = _value(next(tokens, ""), tokens, 0)
    rest = next(tokens, "")
    if rest:
        raise ValueError(f"after the value there is {rest[:40]!r}")
    return value


def _tokens(text: str) -> Iterator[str]:
    at = _after_blanks(text, 0)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"no EDN: {text[at : at + 40]!r}")
        yield match[0]
        at = _after_blanks(text, match.end())


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANK.match(text, at)
    assert blanks is not None, "there may be none: the pattern always matches"
    return blanks.end()


def _value(token: str, tokens: Iterator[str], depth: int) -> Edn:
    if depth > _DEEP:
        raise ValueError("values lie too deep in each other")
    if token in _CLOSING:
        return _collection(token, tokens, depth)
    if token == "#_":
        _value(next(tokens, ""), tokens, depth + 1)
        return _value(next(tokens, ""), tokens, depth + 1)
    if token.startswith("#"):
        return _value(next(tokens, ""), tokens, depth + 1)
    return _scalar(token)


def _collection(opening: str, tokens: Iterator[str], depth: int) -> Edn:
    items: list[Edn] = []
    for token in tokens:
        if token == _CLOSING[opening]:
            if opening != "{":
                return items
            if len(items) % 2:
                raise ValueError("a map has a key without a value")
            values = {
                _hashable(key): value for key, value in zip(items[::2], items[1::2], strict=True)
            }
            if len(values) < len(items) // 2:
                raise ValueError("a map has a key twice")
            return values
        items.append(_value(token, tokens, depth + 1))
    raise ValueError("the line ends amid a value")


def _hashable(key: Edn) -> object:
    return str(key) if isinstance(key, (list, dict)) else key


_NAMED: Mapping[str, bool | None] = {"nil": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?\d+[NM]?\Z")


def _scalar(token: str) -> Edn:
    if not token or token in _CLOSING.values():
        raise ValueError("the line ends amid a value" if not token else f"no EDN: {token!r}")
    if token.startswith('"'):
        return token[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if token.startswith(":"):
        return Keyword(token[1:])
    if token in _NAMED:
        return _NAMED[token]
    if _INTEGER.match(token):
        return int(token.rstrip("NM"))
    return token


# --- operations ---------------------------------------------------------------------------------


def read_block(data: bytes, first: int, *, cut: bool) -> LineBlock:
    """As `lines.read_block`."""
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    rows, numbers, bad = [], [], []
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            operation = operation_of(parse(line))
        except (ValueError, TypeError, msgspec.ValidationError) as error:
            last = cut and place == len(lines) - 1
            why = "the file ends amid it" if last else str(error)
            bad.append(BadLine(first + place, why, last))
            continue
        if operation is not None:
            rows.append(as_row(operation))
            numbers.append(first + place)
    reasons = Counter(line.why for line in bad)
    return LineBlock(pa.Table.from_pylist(rows, LINES), numbers, tuple(bad), dict(reasons))


def operation_of(value: Edn) -> LoggedOperation | None:
    """An operation of Jepsen's; None for what no client does. ValueError says what is wrong."""
    if not isinstance(value, dict):
        raise TypeError("a line is not a map")
    process = value.get("process")
    if isinstance(process, Keyword):
        return None
    fields: dict[str, object] = {
        "process": process,
        "type": value.get("type"),
        "f": value.get("f"),
        "time": value.get("time"),
        **_content(value),
    }
    moved = _moved(value.get("rebalance-log"))
    if moved:
        fields["moved"] = moved
    return convert(fields, LoggedOperation)


def _content(value: Mapping[object, Edn]) -> dict[str, object]:
    function, content = value.get("f"), value.get("value")
    if function in {"assign", "subscribe"} and value.get("type") == "ok":
        if function == "subscribe":
            return {}
        begins = {"moved": _list(content)} if value.get("seek-to-beginning?") else {}
        return {"assigned": _list(content), **begins}
    if function not in {"send", "poll", "txn"} or content is None:
        return {}
    sent: list[object] = []
    polled: list[object] = []
    for part in _list(content):
        micro = _list(part)
        if micro[:1] == ["send"] and len(micro) == 3:
            sent.append(_sent(micro[1], micro[2]))
        elif micro[:1] == ["poll"]:
            polled += _polled(micro[1] if len(micro) > 1 else None)
        else:
            raise ValueError(f"no send and no poll: {part!r:.60}")
    result: dict[str, object] = {}
    if sent:
        result["sent"] = sent
    if polled:
        result["polled"] = polled
    return result


def _list(value: Edn) -> list[Edn]:
    if not isinstance(value, list):
        raise TypeError(f"not a list: {value!r:.60}")
    return value


def _sent(key: Edn, value: Edn) -> dict[str, object]:
    if isinstance(value, list):
        if len(value) != 2:
            raise ValueError(f"a send is not [offset value]: {value!r:.60}")
        return {"key": key, "offset": value[0], "value": value[1]}
    return {"key": key, "value": value}


def _polled(value: Edn) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, dict):
        raise TypeError(f"a poll is not a map: {value!r:.60}")
    records: list[object] = []
    for key, pairs in value.items():
        for pair in _list(pairs):
            offset, element = _list(pair)
            records.append({"key": key, "offset": offset, "value": element})
    return records


def _moved(log: Edn) -> list[object]:
    """The partitions of all rebalances amid an operation."""
    rebalances = (
        [entry for entry in log or () if isinstance(entry, dict)] if isinstance(log, list) else []
    )
    return [key for entry in rebalances for key in _list(entry.get("keys") or [])]
