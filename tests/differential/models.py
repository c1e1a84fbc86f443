"""Every model through TLC and through our search: `python -m tests.differential.models`.

Named models, or all of a tier: `--tier ci`; `--limit N` leaves out those that hold with more
states than that, or of an unstated number. Of a model that holds, states, initial states, labelled
transitions and the number of generated states are compared; of one that is violated, the formula
and the length of the counterexample, where both engines end. Temporal formulas stay with TLC, so
the graph of a model that has some is compared without them. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from conformance.modelcheck.check import CheckOptions, check, graph_and_spec
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.labels import is_safety_property
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.outcome import EngineOutcome
from conformance.modelcheck.parser import Parser
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.tla import Action, Fingerprinter, find_tools
from conformance.tla.search import SearchResult, problem_of, search
from tests.differential.table import Figures, Table


@dataclass(frozen=True, slots=True)
class Compared:
    """The figures of both, and in what they differ."""

    tlc: Figures
    ours: Figures
    differing: list[str]


def chosen(names: Sequence[str], tier: str | None, limit: int | None) -> list[Model]:
    """The models to compare, those left out that are beyond the limit."""
    return [
        model
        for model in find_models(names)
        if tier in (None, model.tier) and (limit is None or _within(model, limit))
    ]


def _within(model: Model, limit: int) -> bool:
    expect = model.expect
    assert expect is not None
    if expect.result == "violated":
        return expect.counterexample_length > 0
    return 0 < expect.distinct_states <= limit


def compare(model: Model, parser: Parser) -> Compared | None:
    """Both engines on one model; None where a temporal formula is what is violated."""
    options = CheckOptions(parser=parser)
    prepared = prepare(model, find_tools(), parser)
    model = _without_temporal(model, prepared)
    assert model.expect is not None
    if model.expect.result == "holds":
        graph, prepared = graph_and_spec(model, options)
        return _compare_graphs(check(model, options).outcome, graph, _searched(prepared))
    if model.expect.violated not in (*model.check.invariants, *model.check.properties, "deadlock"):
        return None
    return _compare_violations(
        check(model, options).outcome, _searched(prepare(model, find_tools(), parser))
    )


def _without_temporal(model: Model, prepared: PreparedModel) -> Model:
    properties = tuple(
        name for name in model.check.properties if is_safety_property(prepared.module, name)
    )
    if properties == model.check.properties:
        return model
    return replace(model, check=msgspec.structs.replace(model.check, properties=properties))


def _searched(prepared: PreparedModel) -> SearchResult:
    problem = replace(problem_of(prepared.spec), check_deadlock=prepared.model.check.deadlock)
    return search(problem, keep_transitions=True)


def _compare_violations(tlc: EngineOutcome, ours: SearchResult) -> Compared:
    found = ours.violated
    theirs = {tlc.violated: len(tlc.steps)} if tlc.violated else {}
    mine = {found.name: len(found.counterexample or ())} if found else {}
    differing = [] if theirs == mine and mine else [f"TLC {theirs}, ours {mine}"]
    return Compared(Figures(None, None, None, theirs), Figures(None, None, None, mine), differing)


def _compare_graphs(tlc: EngineOutcome, graph: StateGraph, ours: SearchResult) -> Compared:
    violations = {
        result.name: len(result.counterexample)
        for result in ours.formulas
        if result.counterexample is not None
    }
    fingerprint = Fingerprinter()
    known = np.fromiter(map(fingerprint, ours.states), np.int64, count=len(ours.states))
    mine = _transitions(ours, known, graph)
    differing = [
        *_counted("generated", tlc.generated_states, ours.generated),
        *_counted("distinct states", tlc.distinct_states, len(ours.states)),
        *_sets("states", graph.fingerprints, known),
        *_sets("initial states", graph.fingerprints[graph.initial], known[list(ours.initial)]),
        *_sets("transitions", _edges(graph), mine),
        *(f"ours violates {name}" for name in violations),
    ]
    return Compared(
        Figures(tlc.generated_states, tlc.distinct_states, len(graph.source), {}),
        Figures(ours.generated, len(ours.states), len(mine), violations),
        differing,
    )


def _counted(what: str, tlc: int | None, ours: int) -> list[str]:
    return [] if tlc == ours else [f"{what}: TLC {tlc}, ours {ours}"]


def _sets(what: str, tlc: npt.NDArray[np.int64], ours: npt.NDArray[np.int64]) -> list[str]:
    only = [
        (name, len(np.setdiff1d(a, b))) for name, a, b in (("TLC", tlc, ours), ("ours", ours, tlc))
    ]
    return [f"{what}: {count} only {name} has" for name, count in only if count]


def _edges(graph: StateGraph) -> npt.NDArray[np.int64]:
    return _coded(graph.source, graph.action, graph.target, graph)


def _coded(
    source: npt.NDArray[np.int32],
    action: npt.NDArray[np.int32],
    target: npt.NDArray[np.int32],
    graph: StateGraph,
) -> npt.NDArray[np.int64]:
    """One number per transition, of TLC's numbers of states and actions."""
    kinds, count = len(graph.actions) + 1, len(graph.states) + 1
    return np.unique((source.astype(np.int64) * kinds + action) * count + target)


def _transitions(
    ours: SearchResult, known: npt.NDArray[np.int64], graph: StateGraph
) -> npt.NDArray[np.int64]:
    """Our transitions in TLC's numbers; a state or action that TLC lacks has the number beyond."""
    numbers = {int(value): number for number, value in enumerate(graph.fingerprints)}
    states = np.array([numbers.get(int(value), len(numbers)) for value in known], np.int32)
    assert ours.transitions is not None
    labels = {_label(action, graph): code for code, action in enumerate(graph.actions)}
    codes = [labels.get(_label(action, graph), len(labels)) for action in ours.transitions.actions]
    return _coded(
        states[np.frombuffer(ours.transitions.source, np.int64)],
        np.array(codes, np.int32)[np.frombuffer(ours.transitions.action, np.int64)],
        states[np.frombuffer(ours.transitions.target, np.int64)],
        graph,
    )


def _label(action: Action, graph: StateGraph) -> Action:
    """Without arguments where TLC's labels have none: models with fairness keep their own Next."""
    return action if any(known.args for known in graph.actions) else Action(action.name, ())


def lines(models: Sequence[Model]) -> Iterator[tuple[str, bool]]:
    """The lines of the table as they are found, and whether the line says that all agree."""
    parser = Parser()
    parser.announce(models)
    table = Table("model", [model.name for model in models])
    yield table.header(), True
    for model in models:
        found = compare(model, parser)
        if found is None:
            yield f"{model.name}: a temporal formula, which TLC alone can judge", True
            continue
        for line in table.rows(model.name, found.tlc, found.ours, found.differing):
            yield line, not found.differing


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names of models; all if none")
    parser.add_argument("--tier", choices=["ci", "nightly"])
    parser.add_argument("--limit", type=int)
    asked = parser.parse_args(arguments)
    agree = True
    for line, equal in lines(chosen(asked.models, asked.tier, asked.limit)):
        print(line, flush=True)
        agree &= equal
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
