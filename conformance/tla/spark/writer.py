"""Writes expressions as SQL: what is used several times is evaluated once.

One expression alone (`expression`) binds what it uses several times by one-element lambdas.
Many expressions over the same rows (`staged`) become a chain of projections: each stage adds
columns to the row, the last one holds the results. Spark analyses, optimises and compiles many
small expressions in seconds; the same as nested lambdas takes it minutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from conformance.tla.spark.sql import NULL, Sql, parameters

LIGHT = 8
"""An expression of fewer parts is written again rather than stored in a column."""

LIGHT_BINDING = 10
"""The same for lambdas, which cost more than columns."""

HEAVY = 120
"""An expression of more parts gets a column even if it is used once: methods stay small."""

Shape = Callable[[Sql, list[str]], str]
"""How a dialect writes an expression whose parts are written already."""


def spark_shape(node: Sql, parts: list[str]) -> str:
    """Spark's dialect."""
    match node.form:
        case "field":
            return f"{parts[0]}.{node.head}"
        case "call":
            return f"{node.head}({', '.join(parts)})"
        case "cast":
            return f"try_cast({parts[0]} AS {node.head})"
        case "lambda":
            names = node.head if "," not in node.head else f"({node.head})"
            return f"{names} -> {parts[0]}"
        case _:
            return node.head


@dataclass(frozen=True, slots=True)
class Projection:
    """One projection: `columns` are kept from the stage before, `added` are (name, SQL)."""

    columns: tuple[str, ...]
    added: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ProjectionChain:
    """Several expressions as a chain of projections, and the SQL of each after the last one.

    The columns of the original row that `results` mention are among those of the last stage.
    """

    stages: tuple[Projection, ...]
    results: tuple[str, ...]


def expression(node: Sql) -> str:
    """One expression in Spark's dialect."""
    return _DialectWriter(spark_shape).body(node, {}, frozenset(), 0)


def staged(
    nodes: Sequence[Sql], *, shape: Shape = spark_shape, prefix: str = "e"
) -> ProjectionChain:
    """Expressions over one row as a chain of projections.

    Its columns are named with the prefix, a number and an underscore; the first stage takes
    what it needs from the columns and fields of the row.
    """
    levels = _levels(_Graph(nodes))
    names = {node: f"{prefix}{index}_" for index, node in enumerate(levels)}
    writer = _DialectWriter(shape)
    depth = max(levels.values(), default=0) + 1
    added: list[list[tuple[str, str]]] = [[] for _ in range(depth)]
    needs: list[set[str]] = [set() for _ in range(depth + 1)]
    for node, level in levels.items():
        added[level].append((names[node], writer.definition(node, names)))
        if not node.is_path:
            needs[level].update(*(_mentioned(arg, names) for arg in node.args))
    for node in nodes:
        needs[depth] |= _mentioned(node, names)
    stages = []
    for level, columns in enumerate(added):
        later = set().union(*needs[level + 1 :])
        kept = tuple(names[n] for n, at in levels.items() if at < level and names[n] in later)
        stages.append(Projection(kept, tuple(columns)))
    results = tuple(writer.body(node, names, frozenset(), 0) for node in nodes)
    return ProjectionChain(tuple(stages), results)


class _Graph:
    """The parts of expressions, operands first; `named` ones are not looked into."""

    def __init__(self, roots: Sequence[Sql], named: Mapping[Sql, str] | None = None) -> None:
        self.order: list[Sql] = []
        self.roots = frozenset(roots)
        self.uses: Counter[Sql] = Counter(roots)
        """How often a part is written, or more than once where it is evaluated in a loop."""
        self.changing: set[Sql] = set()
        """The parts that depend on the row or on a lambda's variable."""
        self._named = named or {}
        seen: set[Sql] = set()
        for root in roots:
            self._visit(root, seen)

    def _visit(self, root: Sql, seen: set[Sql]) -> None:
        stack = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                self._leave(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                if node not in self._named:
                    stack.extend((arg, False) for arg in reversed(node.args))

    def _leave(self, node: Sql) -> None:
        self.order.append(node)
        if node in self._named:
            self.changing.add(node)
            return
        if node.form in ("column", "variable") or any(a in self.changing for a in node.args):
            self.changing.add(node)
        for arg in node.args:
            self.uses[arg] += 1
            if not arg.free and (node.free or node.form == "lambda"):
                self.uses[arg] += 1


def _levels(graph: _Graph) -> dict[Sql, int]:
    """The parts that get a column, operands first, each with the number of its stage."""
    levels: dict[Sql, int] = {}
    weight: dict[Sql, int] = {}
    below: dict[Sql, int] = {}
    used = {arg for node in graph.order if not node.is_path for arg in node.args} | graph.roots
    for node in graph.order:
        weight[node] = 1 + sum(1 if arg in levels else weight[arg] for arg in node.args)
        below[node] = max((levels.get(arg, below[arg]) for arg in node.args), default=-1)
        if node.is_path:
            if node in used:
                levels[node] = 0
        elif node in graph.changing and not node.free and node.form != "lambda":
            often = graph.uses[node] > 1 and weight[node] >= LIGHT
            if often or weight[node] >= HEAVY or node in graph.roots:
                levels[node] = below[node] + 1
    return levels


def _mentioned(node: Sql, names: Mapping[Sql, str]) -> set[str]:
    """The columns of the stages before of which an expression makes direct use."""
    result: set[str] = set()
    stack, seen = [node], {node}
    while stack:
        part = stack.pop()
        if part in names:
            result.add(names[part])
        else:
            stack.extend(arg for arg in part.args if arg not in seen)
            seen.update(part.args)
    return result


class _DialectWriter:
    """Writes expressions in one dialect."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def definition(self, node: Sql, names: Mapping[Sql, str]) -> str:
        """An expression that has a name itself."""
        if node.is_path:
            return self._shape(node, [self.definition(arg, names) for arg in node.args])
        return self._shape(node, [self._text(arg, names, frozenset(), 0) for arg in node.args])

    def body(
        self, node: Sql, names: Mapping[Sql, str], variables: frozenset[str], depth: int
    ) -> str:
        """An expression within lambdas of these variables; what it repeats is bound first."""
        known = dict(names)
        layers: list[tuple[str, list[tuple[str, str]]]] = []
        for number, layer in enumerate(_bindings(node, names, variables)):
            together = f"w{depth}_{number}_"
            written = [self._written(part, known, variables, depth) for part in layer]
            parts = [(f"f{index}", text) for index, text in enumerate(written)]
            layers.append((together, parts))
            known |= {
                part: f"{together}.{field}" for part, (field, _) in zip(layer, parts, strict=True)
            }
        made = self._text(node, known, variables, depth)
        for together, parts in reversed(layers):
            made = self._bound(together, parts, made)
        return made

    def _bound(self, variable: str, parts: list[tuple[str, str]], body: str) -> str:
        """`body` with a struct of the parts as the variable."""
        fields = [piece for field, text in parts for piece in (f"'{field}'", text)]
        struct = self._shape(Sql("call", "named_struct"), fields)
        array = self._shape(Sql("call", "array"), [struct])
        function = self._shape(Sql("lambda", variable, (NULL,)), [body])
        mapped = self._shape(Sql("call", "transform"), [array, function])
        return self._shape(Sql("call", "get"), [mapped, "0"])

    def _written(
        self, node: Sql, names: Mapping[Sql, str], variables: frozenset[str], depth: int
    ) -> str:
        return self._shape(node, [self._text(arg, names, variables, depth) for arg in node.args])

    def _text(
        self, node: Sql, names: Mapping[Sql, str], variables: frozenset[str], depth: int
    ) -> str:
        if node in names:
            return names[node]
        if node.form == "lambda":
            inner = variables.union(parameters(node))
            return self._shape(node, [self.body(node.args[0], names, inner, depth + 1)])
        return self._written(node, names, variables, depth)


def _bindings(root: Sql, names: Mapping[Sql, str], variables: frozenset[str]) -> list[list[Sql]]:
    """What a lambda's body evaluates several times, in layers that depend on those before."""
    graph = _Graph([root], names)
    levels: dict[Sql, int] = {}
    weight: dict[Sql, int] = {}
    below: dict[Sql, int] = {}
    for node in graph.order:
        if node in names:
            weight[node], below[node] = 1, -1
            continue
        weight[node] = 1 + sum(1 if arg in levels else weight[arg] for arg in node.args)
        below[node] = max((levels.get(arg, below[arg]) for arg in node.args), default=-1)
        apart = node.form in ("call", "cast", "field") and not node.is_path
        bindable = apart and node in graph.changing and node.free <= variables
        if bindable and graph.uses[node] > 1 and weight[node] >= LIGHT_BINDING:
            levels[node] = below[node] + 1
    layers: list[list[Sql]] = [[] for _ in range(max(levels.values(), default=-1) + 1)]
    for node, level in levels.items():
        layers[level].append(node)
    return layers
