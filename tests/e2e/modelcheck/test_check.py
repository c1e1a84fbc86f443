"""Models of a small lock, checked by TLC: every verdict, the story, the cache, the bad input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from conformance.errors import SpecError, UserError
from conformance.events import Event, Finding, StageFinished
from conformance.modelcheck.cache import Cache
from conformance.modelcheck.check import (
    CheckOptions,
    check,
    check_models,
    edge_branches,
    graph_and_spec,
    state_graph,
    verdict_of,
)
from conformance.modelcheck.form import Check, Expect, Simulation
from conformance.modelcheck.manifest import Model, load_model, model_from_config
from conformance.modelcheck.tlc import TlcOptions
from conformance.stages.context import Context, one_model
from conformance.stages.python_engine import check_in_python
from conformance.suites.coverage import coverage
from conformance.suites.postman import transition_cover
from conformance.suites.situations import situations
from conformance.tla import Action, State
from conformance.verdict import Verdict
from tests.e2e.processes import MARK, needs_proc, processes

pytestmark = pytest.mark.tlc

MODULES = Path(__file__).parent / "modules"
ENDLESS = {"Processes": '{"a", "b", "c", "d", "e", "f", "g"}', "Turns": "100"}
"""Constants with which TLC has work for many minutes."""


@pytest.fixture
def options(tmp_path: Path) -> CheckOptions:
    return CheckOptions(cache=Cache(tmp_path / "cache"))


def lock(
    expect: Expect | None = None,
    *,
    invariants: tuple[str, ...] = (),
    properties: tuple[str, ...] = (),
    specification: str = "",
    deadlock: bool = False,
) -> Model:
    """The lock's model; with an expectation, that and the formulas given replace its own."""
    model = load_model(MODULES / "lock.toml")
    if expect is None and not invariants:
        return model
    checked = Check(
        specification=specification,
        init="" if specification else "Init",
        next="" if specification else "Next",
        invariants=invariants,
        properties=properties,
        deadlock=deadlock,
    )
    return replace(model, check=checked, expect=expect, feeds_suite=False)


def violated(formula: str, length: int) -> Expect:
    return Expect(result="violated", violated=formula, counterexample_length=length)


def test_a_model_that_holds_and_its_graph_from_one_run(options: CheckOptions) -> None:
    events: list[Event] = []
    result = check(lock(), options, events.append)
    assert (result.verdict, result.problems, result.cached) == (Verdict.PASS, (), False)
    assert (result.outcome.exit_code, result.outcome.distinct_states) == (0, 23)
    assert result.outcome.never_fired == ()
    finished = [event for event in events if isinstance(event, StageFinished)]
    assert finished[0].figures["distinct_states"] == 23

    again = check(lock(), options)
    assert (again.verdict, again.cached) == (Verdict.PASS, True)
    assert again.outcome == result.outcome

    graph, prepared = graph_and_spec(lock(), options)
    spec = prepared.spec
    assert graph.variables == spec.variables
    assert {graph.states[i] for i in graph.initial} == set(spec.initial_states())
    edges: set[tuple[State, Action, State]] = {
        (graph.states[source], graph.actions[action], graph.states[target])
        for source, action, target in zip(graph.source, graph.action, graph.target, strict=True)
    }
    # The evaluator, which shares nothing with TLC, sees the same transitions, arguments and all.
    assert edges == {
        (state, action, reached)
        for state in graph.states
        for action, reached in spec.successors(state)
    }
    suite = transition_cover(graph)
    assert coverage(graph, suite).covered_transitions == len(edges)
    reached = situations(
        graph, {name: spec.state_formula(name) for name in prepared.model.situations}
    )
    assert [test.name for test in reached.suite] == ["Waiting"]
    assert reached.unreached == ("Impossible",)


def test_a_damaged_cached_graph_is_made_again(options: CheckOptions) -> None:
    graph = state_graph(lock(), options)
    assert options.cache is not None
    (entry,) = (options.cache.root / "graph").iterdir()
    content = entry.read_bytes()
    entry.write_bytes(content[:-100])
    assert state_graph(lock(), options).digest == graph.digest
    assert entry.read_bytes() == content


def test_the_disjuncts_of_a_whole_graph_are_asked_once(options: CheckOptions) -> None:
    graph, prepared = graph_and_spec(one_model("acknowledgement/consumer-2b"), options)
    assert options.cache is not None
    kept = options.cache.root / "branches"
    every = np.ones(len(graph.source), bool)
    none = np.zeros(len(graph.source), bool)
    edge_branches(prepared, graph, none, options)
    assert not kept.exists()
    found = edge_branches(prepared, graph, every, options)
    (entry,) = kept.iterdir()
    again = edge_branches(prepared, graph, none, options)
    assert (found.kind >= 0).any()
    assert again.taken == found.taken
    assert np.array_equal(again.kind, found.kind)
    entry.write_bytes(b"torn")
    assert edge_branches(prepared, graph, every, options).taken == found.taken


def test_each_kind_of_violation_with_its_shortest_counterexample(options: CheckOptions) -> None:
    models = [
        lock(violated("ShortQueue", 3), invariants=("TypeOK", "ShortQueue")),
        lock(violated("OneTurn", 6), invariants=("OneTurn",)),
        lock(violated("NeverReleased", 2), properties=("TurnsNeverFall", "NeverReleased")),
        lock(violated("deadlock", 9), deadlock=True),
        lock(violated("SomebodyHolds", 3), specification="Spec", properties=("SomebodyHolds",)),
        lock(violated("AlwaysAgain", 9), specification="FairSpec", properties=("AlwaysAgain",)),
        lock(Expect(result="holds", distinct_states=23), specification="FairSpec",
             properties=("SomebodyHolds",)),
    ]  # fmt: skip
    results = check_models(models, options)
    found = [(r.outcome.violated, r.counterexample_length) for r in results]
    assert [(r.model.expect, r.problems) for r in results] == [(m.expect, ()) for m in models], (
        found
    )
    assert verdict_of(results) == Verdict.PASS
    assert [r.outcome.exit_code for r in results] == [12, 12, 13, 11, 13, 13, 0]

    actions = [line for line in results[1].story() if not line.startswith(" ")]
    assert actions[:2] == ["0. Initial state", '1. Ask("a")']
    assert actions[-2:] == ['5. Take("b")', "Why OneTurn is false:"]
    # A temporal counterexample: TLC's labels lack the arguments, the evaluator finds them.
    lasso = results[5].story()
    assert any(line.endswith('Take("a")') for line in lasso)
    assert lasso[-1].startswith("From here")


def test_what_comes_out_otherwise_is_a_failure_with_the_story(options: CheckOptions) -> None:
    models = [
        lock(Expect(result="holds", distinct_states=24)),
        lock(violated("TypeOK", 3), invariants=("TypeOK",)),
        lock(violated("OneTurn", 5), invariants=("OneTurn",)),
        lock(Expect(result="holds", distinct_states=23), invariants=("ShortQueue",)),
        lock(violated("OneTurn", 6), invariants=("ShortQueue", "OneTurn")),
    ]
    events: list[Event] = []
    results = check_models(models, options, events.append)
    assert [r.verdict for r in results] == [Verdict.FAIL] * 5
    assert [str(r.problems[0]) for r in results] == [
        "has 23 distinct states, expected 24",
        "holds, but must violate TypeOK: the formula or the model has lost its teeth "
        "(23 distinct states)",
        "has a counterexample of 6 states, expected 5",
        "ShortQueue is violated after 3 states, but the model holds",
        "violates ShortQueue, expected OneTurn",
    ]
    findings = [event for event in events if isinstance(event, Finding)]
    assert any('1. Ask("a")' in finding.story for finding in findings)


@pytest.mark.parametrize(
    ("expect", "invariants", "properties", "told"),
    [
        (
            violated("OneTurn", 6),
            ("OneTurn",),
            (),
            ["Lock:43:12: turns < 2 is FALSE", "  Lock:43:12: turns is 2"],
        ),
        (
            violated("NeverReleased", 2),
            (),
            ("NeverReleased",),
            [
                "Lock:47:20: [holder' # Free]_vars is FALSE",
                "  Lock:47:21: holder' # Free is FALSE",
                '    Lock:47:21: holder\' is "nobody"',
                '    Lock:47:31: Free is "nobody"',
                "  Lock:47:37: UNCHANGED vars is FALSE",
            ],
        ),
        (violated("deadlock", 9), (), (), []),
    ],
)
def test_both_engines_find_the_violation_and_say_why(
    options: CheckOptions,
    expect: Expect,
    invariants: tuple[str, ...],
    properties: tuple[str, ...],
    told: list[str],
) -> None:
    model = lock(
        expect, invariants=invariants, properties=properties, deadlock=expect.violated == "deadlock"
    )
    by_tlc = check(model, options)
    (ours,) = check_in_python(Context(check=options), [model])
    assert by_tlc.problems == ours.problems == ()
    assert by_tlc.to_json().keys() == ours.to_json().keys()
    for result in (by_tlc, ours):
        story = "\n".join(result.story())
        _, _, why = story.partition(f"\nWhy {expect.violated} is false:\n")
        assert textwrap.dedent(why).splitlines() == told


def test_the_command_that_shows_it_again_names_the_engine(options: CheckOptions) -> None:
    model = lock(violated("OneTurn", 5), invariants=("OneTurn",))
    (by_tlc,) = check(model, options).findings()
    (ours,) = check_in_python(Context(check=options), [model])[0].findings()
    assert by_tlc.reproduce.endswith("lock.toml --cold")
    assert ours.reproduce.endswith("lock.toml --engine python")


def test_an_override_makes_a_mutant_of_the_spec(options: CheckOptions) -> None:
    mutant = replace(
        lock(violated("HolderReleasesFirst", 5), properties=("HolderReleasesFirst",)),
        definitions={"Mutant_Guard(h)": "TRUE"},
        overrides={"Guard": "Mutant_Guard"},
    )
    assert check(mutant, options).problems == ()


def test_an_action_that_never_fires_is_named(options: CheckOptions) -> None:
    idle = replace(
        lock(Expect(result="holds", distinct_states=5), invariants=("TypeOK",)),
        constants={"Processes": '{"a", "b"}', "Turns": "0"},
    )
    result = check(idle, options)
    assert result.problems == ()
    assert result.outcome.never_fired == ("Take", "Release")


def test_an_invariant_that_reads_no_variable_is_named(options: CheckOptions) -> None:
    vacuous = replace(
        lock(Expect(result="holds"), invariants=("TypeOK",)),
        definitions={"Anything": "Turns >= 0"},
        overrides={"TypeOK": "Anything"},
    )
    ours = check_in_python(Context(check=options), [vacuous])[0]
    for result in (check(vacuous, options), ours):
        assert result.outcome.constant_formulas == ("TypeOK",)
        assert result.verdict is Verdict.INCONCLUSIVE


def test_a_formula_without_value_is_an_error_with_tlcs_words(options: CheckOptions) -> None:
    result = check(lock(Expect(result="holds"), invariants=("Broken",)), options)
    assert (result.verdict, result.outcome.result) == (Verdict.ERROR, "error")
    assert "Head" in result.outcome.error
    assert result.outcome.exit_code >= 75


def test_names_that_do_not_exist_are_told_with_file_and_key(options: CheckOptions) -> None:
    with pytest.raises(UserError, match=r"lock\.toml: `check\.invariants` names TypeOk.*TypeOK"):
        check(lock(invariants=("TypeOk",)), options)
    with pytest.raises(UserError, match=r"lock\.toml.*no value to Turns"):
        check(replace(lock(), constants={"Processes": "{1}"}), options)


def test_a_module_that_does_not_parse_is_a_spec_error_with_its_line(
    options: CheckOptions, tmp_path: Path
) -> None:
    config = tmp_path / "Unparsable.cfg"
    config.write_text("INIT Init\nNEXT Next\n")
    with pytest.raises(SpecError, match="line 4"):
        check(model_from_config(MODULES / "Unparsable.tla", config), options)


def test_a_users_own_module_and_configuration_with_model_values(
    options: CheckOptions, tmp_path: Path
) -> None:
    config = tmp_path / "Lock.cfg"
    config.write_text(
        "SPECIFICATION Spec\nCONSTANTS Processes = {p1, p2}\nTurns = 1\nINVARIANT ShortQueue\n"
    )
    result = check(model_from_config(MODULES / "Lock.tla", config), options)
    assert (result.verdict, *map(str, result.problems)) == (Verdict.FAIL, "ShortQueue is violated")
    assert result.to_json()["expected"] is None
    assert "1. Ask(p1)" in result.story()


def test_an_action_without_a_name_of_its_own_keeps_tlcs_labels(
    options: CheckOptions, tmp_path: Path
) -> None:
    (tmp_path / "Anonymous.tla").write_text(
        "---- MODULE Anonymous ----\nEXTENDS Naturals\nVARIABLE x\nInit == x = 0\n"
        "Up(n) == x < 3 /\\ x' = x + n\n"
        "Next == (\\E n \\in {1} : Up(n)) \\/ (x > 0 /\\ x' = 0)\n====\n"
    )
    config = tmp_path / "Anonymous.cfg"
    config.write_text("INIT Init\nNEXT Next\n")
    graph = state_graph(model_from_config(tmp_path / "Anonymous.tla", config), options)
    # Had `Next` been taken for the name of its second part, every `Up` would be a `Next` as well.
    assert (
        sorted(str(graph.actions[action]) for action in graph.action) == ["Next"] * 3 + ["Up"] * 3
    )


def test_a_violated_model_has_no_graph(options: CheckOptions) -> None:
    with pytest.raises(UserError, match="stops at a violation of ShortQueue"):
        state_graph(lock(invariants=("ShortQueue",)), options)


def test_a_run_out_of_time_is_inconclusive(options: CheckOptions) -> None:
    large = replace(
        lock(invariants=("ShortQueue",)),
        constants=ENDLESS,
        check=Check(init="Init", next="Next"),
    )
    result = check(large, replace(options, tlc=TlcOptions(timeout=8.0)))
    assert (result.verdict, result.outcome.result) == (Verdict.INCONCLUSIVE, "timeout")


def test_what_is_too_large_to_exhaust_is_simulated_and_said_to_be(options: CheckOptions) -> None:
    large = replace(
        lock(
            Expect(result="not exhausted"), invariants=("TypeOK",), properties=("TurnsNeverFall",)
        ),
        constants=ENDLESS,
    )
    large = replace(large, check=msgspec.structs.replace(large.check, simulation=Simulation(50)))
    [result, repeated] = [check(large, replace(options, cold=True)) for _ in range(2)]
    assert (result.verdict, result.outcome.result) == (Verdict.PASS, "not exhausted")
    assert result.summary().startswith("not exhausted: ")
    assert result.outcome.distinct_states is None
    assert result.outcome.generated_states == repeated.outcome.generated_states
    assert (result.outcome.generated_states or 0) > 1_000
    with pytest.raises(UserError, match="simulated, not exhausted"):
        state_graph(large, options)


def test_a_simulation_finds_what_is_wrong(options: CheckOptions) -> None:
    model = lock(Expect(result="not exhausted"), invariants=("ShortQueue",))
    model = replace(model, check=msgspec.structs.replace(model.check, simulation=Simulation(50)))
    result = check(model, options)
    assert (result.verdict, result.outcome.violated) == (Verdict.FAIL, "ShortQueue")
    assert result.story()


INTERRUPTED = """
import sys
from dataclasses import replace
from pathlib import Path
from conformance.modelcheck.cache import Cache
from conformance.modelcheck.check import CheckOptions, check_models
from conformance.modelcheck.manifest import load_model

model = replace(load_model(Path(sys.argv[1])), feeds_suite=False,
                constants={"Processes": '{"a", "b", "c", "d", "e", "f", "g"}', "Turns": "100"})
try:
    check_models([model, model], CheckOptions(cache=Cache(Path(sys.argv[2]))),
                 lambda event: print(type(event).__name__, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


@needs_proc
def test_an_interrupt_ends_every_jvm_and_leaves_nothing(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(MODULES / "lock.toml"), str(tmp_path / "cache")],
        env={
            **os.environ,
            MARK: str(scratch),
            "TMPDIR": str(scratch),
            "PYTHONPATH": str(Path.cwd()),
        },
        stdout=subprocess.PIPE,
        text=True,
        # Tests started in the background ignore interrupts, and would hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    # A progress event: a JVM is at work.
    assert any(line.startswith("Progress") for line in iter(process.stdout.readline, ""))
    of_its_own_or_shared = ("tlc2.TLC", "py4j.GatewayServer")
    commands = [command for _, command in processes(str(scratch))]
    assert any(name in command for name in of_its_own_or_shared for command in commands)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert list(scratch.iterdir()) == []
    deadline = time.monotonic() + 10
    while (running := processes(str(scratch))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert running == []


def test_a_module_of_ones_own_extends_the_specification_of_kafka(options: CheckOptions) -> None:
    """The page on features shows this model; what it says came out has to come out."""
    feature = Path(__file__).resolve().parents[3] / "docs" / "feature" / "kip101.toml"
    result = check(load_model(feature), options)
    assert (result.verdict, result.outcome.violated) == (
        Verdict.PASS,
        "FollowersServeExposedRecordsOnly",
    )
    assert result.outcome.steps[-1].name == "ProcessFetchResponse"
