"""A state graph as bytes, and back."""

from __future__ import annotations

import io
import json

import numpy as np
import numpy.typing as npt

from conformance.modelcheck.graph import StateGraph, StateTable
from conformance.tla import Action, Value, ValueReader, format_value


def graph_to_bytes(graph: StateGraph) -> bytes:
    """The graph as an npz archive; values and actions as TLC prints them."""
    buffer = io.BytesIO()
    texts = [_pack(values) for values in graph.states.values]
    actions = [[action.name, *map(format_value, action.args)] for action in graph.actions]
    np.savez(
        buffer,
        head=_text(json.dumps({"variables": graph.variables, "actions": actions})),
        sizes=np.array([len(text) for text in texts], np.int64),
        texts=np.concatenate([np.zeros(0, np.uint8), *texts]),
        columns=graph.states.columns,
        initial=graph.initial,
        source=graph.source,
        target=graph.target,
        action=graph.action,
        offsets=graph.offsets,
        fingerprints=graph.fingerprints,
    )
    return buffer.getvalue()


def graph_from_bytes(blob: bytes) -> StateGraph:
    """The graph of `graph_to_bytes`; ValueError, KeyError or DataError if it is another's."""
    read = ValueReader()
    with np.load(io.BytesIO(blob), allow_pickle=False) as data:
        head = json.loads(data["head"].tobytes())
        ends = np.cumsum(data["sizes"])
        texts = np.split(data["texts"], ends[:-1])
        return StateGraph(
            variables=tuple(head["variables"]),
            states=StateTable(tuple(_unpack(text, read) for text in texts), data["columns"]),
            initial=data["initial"],
            actions=tuple(
                Action(name, tuple(read(arg) for arg in args)) for name, *args in head["actions"]
            ),
            source=data["source"],
            target=data["target"],
            action=data["action"],
            offsets=data["offsets"],
            fingerprints=data["fingerprints"],
        )


def _text(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def _pack(values: tuple[Value, ...]) -> npt.NDArray[np.uint8]:
    """One value per line: a printed value has no line break, strings escape theirs."""
    return _text("\n".join(map(format_value, values)))


def _unpack(text: npt.NDArray[np.uint8], read: ValueReader) -> tuple[Value, ...]:
    printed = text.tobytes().decode()
    return tuple(read(line) for line in printed.split("\n")) if printed else ()
