"""Names for SQL expressions that are evaluated once: a one-element lambda for each layer.

Spark's analyzer resolves nested lambdas layer by layer, several passes each, and gives up after
100: expressions that do not depend on each other share a layer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.tla.spark import sql

Named = tuple[tuple[str, str], ...]
"""(name, expression); an expression mentions earlier names only. No name contains another."""

_NAME = re.compile(r"v\d+_")


def bind(names: Sequence[tuple[str, str]], body: str) -> str:
    """The body with its names introduced; a name used once is its expression."""
    kept, body = _inlined(names, body)
    for layer in reversed(_layers(kept)):
        body = _layer(layer, body)
    return body


def _inlined(names: Sequence[tuple[str, str]], body: str) -> tuple[list[tuple[str, str]], str]:
    kept: list[tuple[str, str]] = []
    for name, expression in reversed(names):
        hosts = [body, *(text for _, text in kept)]
        uses = [host.count(name) for host in hosts]
        if sum(uses) == 0:
            continue
        host = hosts[uses.index(max(uses))]
        if sum(uses) == 1 and "->" not in host[: host.index(name)]:
            body = body.replace(name, expression)
            kept = [(other, text.replace(name, expression)) for other, text in kept]
        else:
            kept.append((name, expression))
    return kept[::-1], body


def _layers(names: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    depth: dict[str, int] = {}
    layers: list[list[tuple[str, str]]] = []
    for name, expression in names:
        used = [depth[other] for other in _NAME.findall(expression) if other in depth]
        depth[name] = 1 + max(used, default=-1)
        if depth[name] == len(layers):
            layers.append([])
        layers[depth[name]].append((name, expression))
    return layers


def _layer(layer: Sequence[tuple[str, str]], body: str) -> str:
    if len(layer) == 1:
        name, expression = layer[0]
        return sql.first(f"transform(array({expression}), {name} -> {body})")
    together = layer[0][0].replace("v", "w")
    fields = ", ".join(f"'{name}', {expression}" for name, expression in layer)
    members = {name for name, _ in layer}
    inner = _NAME.sub(lambda m: f"{together}.{m[0]}" if m[0] in members else m[0], body)
    return sql.first(f"transform(array(named_struct({fields})), {together} -> {inner})")
