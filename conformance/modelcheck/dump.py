"""Reads TLC's `-dump dot,actionlabels` as text, into a lossless multigraph.

The dump calls itself `strict digraph` but lists every transition: two actions between the same
states are two lines. A dot library would merge them. Each distinct text of a value is parsed
once, however many states show it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from conformance.errors import DataError
from conformance.modelcheck.graph import Edges, StateGraph, StateTable, build_graph
from conformance.tla import Action, Value

ParseValue = Callable[[str], Value]

_TOOLTIP = (
    b'",tooltip="'  # newer TLC repeats the state's text; inside a text both quotes are escaped
)
_ENDS = (b'",style = filled]', b'"];', b'"]')
_NEXT_VARIABLE = b"\\n/\\\\ "  # a line break and `/\ `, as the dump escapes them


class DumpReader:
    """Collects states and transitions line by line; `finish` makes the graph."""

    def __init__(self, parse: ParseValue, actions: Mapping[str, Action], origin: str) -> None:
        self._parse = parse
        self._known_actions = actions
        self._origin = origin
        self._variables: tuple[str, ...] = ()
        self._prefixes: tuple[bytes, ...] = ()
        self._ids: dict[bytes, int] = {}
        self._rows: dict[int, array[int]] = {}
        self._texts: list[dict[bytes, int]] = []
        self._values: list[list[Value]] = []
        self._initial: list[int] = []
        self._labels: dict[bytes, int] = {}
        self._actions: list[Action] = []
        self._source = array("i")
        self._target = array("i")
        self._action = array("i")

    def read(self, path: Path) -> None:
        """Read the whole dump; DataError if it breaks off."""
        last = b""
        with path.open("rb", buffering=1 << 20) as file:
            for line in file:
                if line[0] in b"-0123456789":
                    self._line(line)
                last = line
        if last.strip() != b"}":
            raise DataError(
                f"The state graph that TLC dumped for {self._origin} breaks off: TLC did not "
                "finish, or the disk is full. Run the command again."
            )

    def _line(self, line: bytes) -> None:
        name, _, rest = line.partition(b" ")
        if rest.startswith(b"-> "):
            target, labelled, attributes = rest[3:].partition(b' [label="')
            if not labelled:  # a stuttering step: TLC draws it where it judges liveness
                return
            ids = self._ids
            self._source.append(ids.setdefault(name, len(ids)))
            self._target.append(ids.setdefault(target, len(ids)))
            label = attributes.partition(b'"')[0]
            code = self._labels.get(label)
            self._action.append(self._new_action(label) if code is None else code)
        elif rest.startswith(b'[label="'):
            self._state(self._ids.setdefault(name, len(self._ids)), rest[8:].rstrip())

    def _new_action(self, label: bytes) -> int:
        name = label.decode()
        action = self._known_actions.get(name, Action(name))
        code = self._labels[label] = len(self._actions)
        self._actions.append(action)
        return code

    def _state(self, state: int, rest: bytes) -> None:
        text, tooltip, _ = rest.partition(_TOOLTIP)
        if not tooltip:
            end = next(end for end in _ENDS if rest.endswith(end))
            text = rest[: -len(end)]
            if end is _ENDS[0]:
                self._initial.append(state)
        pieces = text.split(_NEXT_VARIABLE)
        if not self._prefixes:
            self._set_variables(pieces)
        if len(pieces) != len(self._prefixes):
            raise self._unreadable(text)
        row = array("i")
        for prefix, texts, values, piece in zip(
            self._prefixes, self._texts, self._values, pieces, strict=True
        ):
            index = texts.get(piece)
            if index is None:
                if not piece.startswith(prefix):
                    raise self._unreadable(text)
                index = texts[piece] = len(values)
                values.append(self._parse(_unescape(piece[len(prefix) :])))
            row.append(index)
        self._rows[state] = row

    def _set_variables(self, pieces: Sequence[bytes]) -> None:
        """Names and order of the variables, from the first state; every other must agree."""
        self._prefixes = tuple(piece[: piece.index(b" = ") + 3] for piece in pieces)
        names = [prefix[:-3].decode() for prefix in self._prefixes]
        # `/\ ` stands before the first variable, unless it is the only one.
        self._variables = tuple(name.removeprefix("/\\\\ ") for name in names)
        self._texts = [{} for _ in names]
        self._values = [[] for _ in names]

    def _unreadable(self, text: bytes) -> DataError:
        return DataError(
            f"The state graph that TLC dumped for {self._origin} has a state whose variables "
            f"cannot be told apart: {text[:200].decode(errors='replace')}... A string with a line "
            "break in a variable does this; remove it from the spec."
        )

    def finish(self, variables: Sequence[str] | None) -> StateGraph:
        """The graph, its variables in the order of `variables` (the dump's order if None)."""
        states = len(self._ids)
        if len(self._rows) != states:
            raise DataError(
                f"The state graph that TLC dumped for {self._origin} mentions {states} states but "
                f"shows {len(self._rows)}: it is incomplete. Run the command again."
            )
        if not states:
            raise DataError(
                f"{self._origin} has no state: no value of its variables satisfies its initial "
                "formula. Mend the formula, or the model's constants."
            )
        order = list(range(len(self._variables)))
        if variables is not None:
            if sorted(variables) != sorted(self._variables):
                raise DataError(
                    f"The state graph of {self._origin} has the variables "
                    f"{', '.join(self._variables)}, the spec has {', '.join(variables)}."
                )
            order = [self._variables.index(name) for name in variables]
        joined = array("i")
        for state in range(states):
            joined.extend(self._rows[state])
        columns = np.array(joined, np.int32).reshape(states, len(order))[:, order]
        return build_graph(
            [self._variables[i] for i in order],
            StateTable(tuple(tuple(self._values[i]) for i in order), columns),
            self._initial,
            self._actions,
            Edges(
                np.array(self._source, np.int32),
                np.array(self._target, np.int32),
                np.array(self._action, np.int32),
            ),
        )


def _unescape(text: bytes) -> str:
    """Undo the dump's escapes: backslash, quote and line break."""
    if b"\\" not in text:
        return text.decode()
    parts = text.split(b"\\\\")
    return b"\\".join(part.replace(b'\\"', b'"').replace(b"\\n", b"\n") for part in parts).decode()


def read_dump(
    path: Path,
    parse: ParseValue,
    actions: Mapping[str, Action],
    *,
    variables: Sequence[str] | None = None,
    origin: str = "the model",
) -> StateGraph:
    """The graph in the dump; `actions` maps TLC's labels to actions with their arguments.

    A label that `actions` lacks is an action without arguments.
    """
    reader = DumpReader(parse, actions, origin)
    reader.read(path)
    return reader.finish(variables)
