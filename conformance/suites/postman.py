"""The minimal transition cover: a directed Chinese postman with resets.

Every transition is taken at least once; steps plus resets are as few as possible. The classic
reduction (Edmonds and Johnson, "Matching, Euler tours and the Chinese postman", 1973; for test
suites Aho, Dahbura, Lee and Uyar, 1991): the transitions to repeat are a minimum-cost flow from
the states entered more often than left to those left more often than entered; with the
repetitions the graph is Eulerian, and Hierholzer's circuit, cut at the resets, is the suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import rustworkx
from ortools.graph.python import min_cost_flow

from conformance.errors import DataError
from conformance.suites.suite import Suite, Test, make_tests

if TYPE_CHECKING:
    from conformance.modelcheck.graph import StateGraph

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FlowProblem:
    """The minimum-cost flow whose solution says what to repeat; all arrays are parallel.

    Nodes: the states, then one node per weakly connected component (its tests begin there), then
    the reset node. Arcs: `steps` (transitions, parallel ones merged, cost 1), `ends` (from every
    state to the reset node, cost 1: this is the reset), `begins` (reset node to component) and
    `starts` (component to its initial states), both free. Capacities are unbounded. Each
    component gets one unit more than it balances: it must be entered, or its circuit would hang
    in the air.
    """

    tail: Ints
    head: Ints
    cost: Ints
    supply: Ints
    step_edges: Ints
    """For the first `len(step_edges)` arcs, the transition that the arc stands for."""
    components: Ints
    """Component of each initial state, in the order of `graph.initial`."""


def flow_problem(graph: StateGraph) -> FlowProblem:
    """The flow problem of `graph`, as it stands in `FlowProblem`."""
    count = len(graph.offsets) - 1
    source, target = graph.source.astype(np.int64), graph.target.astype(np.int64)
    component = _components_of_initial(graph)
    components = int(component.max()) + 1 if len(component) else 0
    reset = count + components

    supply = np.zeros(reset + 1, np.int64)
    supply[:count] = np.bincount(target, minlength=count) - np.bincount(source, minlength=count)
    supply[count:reset] = 1
    supply[reset] = -components

    pairs, step_edges = np.unique(source * count + target, return_index=True)
    loops = pairs // count == pairs % count  # repeating a self-loop never helps
    step_edges = step_edges[~loops].astype(np.int64)
    states = np.arange(count, dtype=np.int64)
    begins = np.arange(count, reset, dtype=np.int64)
    initial = graph.initial.astype(np.int64)
    full = np.full
    return FlowProblem(
        tail=np.concatenate(
            [source[step_edges], states, full(components, reset), count + component]
        ),
        head=np.concatenate([target[step_edges], full(count, reset), begins, initial]),
        cost=np.repeat([1, 0], [len(step_edges) + count, components + len(initial)]).astype(
            np.int64
        ),
        supply=supply,
        step_edges=step_edges,
        components=component,
    )


def _components_of_initial(graph: StateGraph) -> Ints:
    """Weakly connected component (0..k-1) of every initial state."""
    if len(graph.initial) == 1:
        return np.zeros(1, np.int64)
    digraph: rustworkx.PyDiGraph[None, None] = rustworkx.PyDiGraph()
    digraph.add_nodes_from([None] * (len(graph.offsets) - 1))
    pairs = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    digraph.extend_from_edge_list(list(pairs))
    label = np.zeros(len(graph.offsets) - 1, np.int64)
    for number, members in enumerate(rustworkx.weakly_connected_components(digraph)):
        label[list(members)] = number
    _, component = np.unique(label[graph.initial], return_inverse=True)
    return component.astype(np.int64)


def _solve(problem: FlowProblem) -> Ints:
    """Flow on every arc, by OR-Tools' cost-scaling push-relabel; integral and optimal."""
    solver = min_cost_flow.SimpleMinCostFlow()
    unbounded = int(np.abs(problem.supply).sum())
    arcs = solver.add_arcs_with_capacity_and_unit_cost(
        problem.tail, problem.head, np.full(len(problem.tail), unbounded), problem.cost
    )
    solver.set_nodes_supplies(np.arange(len(problem.supply)), problem.supply)
    if solver.solve() != solver.OPTIMAL:
        raise _unreachable()
    return np.asarray(solver.flows(arcs), dtype=np.int64)


def _unreachable() -> DataError:
    return DataError(
        "The state graph has transitions that no path from an initial state reaches: it is not "
        "the graph of one model. Generate it again from the model with `kconform suite`."
    )


def transition_cover(graph: StateGraph) -> Suite:
    """The suite that takes every transition with the fewest steps plus resets.

    An initial state without transitions gets a test without steps. The result depends on the
    graph alone.
    """
    if len(graph.initial) == 0:
        raise DataError("The state graph has no initial state: there is nothing to test.")
    problem = flow_problem(graph)
    flow = _solve(problem)
    repeats = np.ones(len(graph.source), np.int64)
    repeats[problem.step_edges] += flow[: len(problem.step_edges)]
    count = len(graph.offsets) - 1
    ends = flow[len(problem.step_edges) : len(problem.step_edges) + count]
    starts = flow[len(flow) - len(graph.initial) :]
    circuit = _euler_circuit(graph, repeats, ends, starts)
    return Suite("transition-cover", _cut(graph, circuit), graph.digest)


def _euler_circuit(graph: StateGraph, repeats: Ints, ends: Ints, starts: Ints) -> Ints:
    """Hierholzer's circuit from the reset node, as arcs.

    An arc is an edge id (taken `repeats` times), `edges + i` for a start in initial state i, or
    -1 for a reset. Iterative: the stack holds the arcs of the open path.
    """
    count, edges = len(graph.offsets) - 1, len(graph.source)
    tail = np.concatenate([graph.source, np.arange(count), np.full(len(starts), count)])
    head = np.concatenate([graph.target, np.full(count, count), graph.initial])
    name = np.concatenate([np.arange(edges), np.full(count, -1), edges + np.arange(len(starts))])
    times = np.concatenate([repeats, ends, starts])
    order = np.repeat(np.arange(len(tail)), times)
    # Sorted by tail so that each state's arcs are one run, consumed from its end: the resets,
    # listed after the transitions, would come first; reversed, a path goes on while it can.
    order = order[np.argsort(tail[order], kind="stable")]
    low = np.searchsorted(tail[order], np.arange(count + 1))
    left = np.append(low[1:], len(order)).tolist()
    return _hierholzer(low.tolist(), left, head[order].tolist(), name[order])


def _hierholzer(low: list[int], left: list[int], head: list[int], name: Ints) -> Ints:
    """The circuit over arcs grouped by tail: those of node v are low[v] to left[v] - 1."""
    node = len(low) - 1
    stack: list[int] = []
    circuit: list[int] = []
    while True:
        if left[node] > low[node]:
            left[node] -= 1
            arc = left[node]
            stack.append(arc)
            node = head[arc]
        elif stack:
            circuit.append(stack.pop())
            node = head[stack[-1]] if stack else len(low) - 1
        else:
            break
    if len(circuit) != len(name):
        raise _unreachable()
    return name[np.array(circuit[::-1], np.int64)]


def _cut(graph: StateGraph, circuit: Ints) -> tuple[Test, ...]:
    """The circuit (start, transitions, reset, start, ...) cut into tests."""
    edges = len(graph.source)
    starts = np.flatnonzero(circuit >= edges)
    initial = graph.initial[circuit[starts] - edges]
    steps = (circuit >= 0) & (circuit < edges)
    before = np.concatenate([[0], np.cumsum(steps)])
    offsets = np.append(before[starts], before[-1]).astype(np.int64)
    return make_tests(initial, circuit[steps].astype(np.int32), offsets)
