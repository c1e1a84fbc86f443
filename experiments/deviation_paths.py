"""Makes the saved paths of conformance/systems/kafka/deviations.toml: TLC finds, Kafka follows.

Per deviation: the counterexample of a model with its override, and that path on a version which has
the deviation, judged without the override, up to where it diverges.

    python experiments/deviation_paths.py [--system kafka-3.8.1] [--only ID]
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviation
from conformance.modelcheck.check import check
from conformance.modelcheck.manifest import Model
from conformance.registry import factory_path
from conformance.replay.engine import Driver, close, run_path
from conformance.replay.saved import load, save, wrapped
from conformance.stages.context import Context, one_model, with_constants, workbench
from conformance.stages.overridden import with_deviations
from conformance.stages.replay import spec_oracle
from conformance.tla import Action, ItfTrace, Json, Spec, State, Value, dump_trace, parse_value

MODELS = {
    "KAFKA-18991": (
        "replication/bench/truncate-on-fetch-fine-2b",
        "replication/mutant-fetch-response-epoch-fine-2b",
    ),
    "re-elected-leader": (
        "replication/truncate-on-fetch-coarse-3b",
        "replication/mutant-remote-replica-reset-coarse-3b",
    ),
    "initialize-again": ("persister/writes-1l", "persister/mutant-initialize-again"),
    "fence-forgotten": ("persister/epochs-2l", "persister/mutant-fence-forgotten"),
    "start-of-write": ("persister/writes-1l", "persister/mutant-start-goes-back"),
    "complete-of-write": ("persister/writes-1l", "persister/mutant-complete-goes-back"),
    "told-again": ("reassignment/lags-2b", "reassignment/boundary-told-again-2b"),
    "overtaken-epoch-answer": ("directories/elections", "directories/mutant-overtaken"),
    "names-while-reconciling": ("consumer/losses-2m", "consumer/resent-exclusive-2m"),
    "forgotten-open-transaction": (
        "transaction/log-expiry-aborted",
        "transaction/mutant-log-expiry-loaded",
    ),
    "KAFKA-16599": ("positions/commits-close", "positions/mutant-close-forgets-callbacks"),
    "KAFKA-20253": (
        "positions/heartbeat-thread",
        "positions/mutant-heartbeat-thread-stays-ended",
    ),
    "owned-partition-unknown": (
        "positions/cooperative-lost",
        "positions/mutant-cooperative-assigns-unknown",
    ),
}
"""By deviation a model of the protocol that Kafka speaks, and the mutant whose bounds show it."""
_SPOKEN = ("Protocol", "NamesWhileReconciling")
"""Constants that say which protocol a model speaks."""
_ACTIVE = 'Elect("b1")  RunRole("b1")  CompleteLoad("b1", 1)'
"""A broker leads, and its shard is loaded."""
_TIMED_OUT = """BeginTransaction("a")  AddPartitionOfClient("c1", "a", "p")
    AcknowledgeAppend("c1", 1)  TakeAdded("a", "c1", "p")  SendBatch("a", "p")
    BeginFence("c1")  EndFence("c1")  AcknowledgeAppend("c1", 1)  WriteMarker("p", 1, 1)"""
"""A transaction is aborted while its batch is on the way: the marker has raised the epoch."""


SCRIPTED: dict[str, tuple[str, dict[str, str], str]] = {
    "late-tombstone": (
        "transaction/expiry-fail-over",
        {},
        """ExpireId("c1")  Elect("c1", 2)  Load("c1")  HandleInitProducerId("c1", "b")
        CallBackLate("c1", 1)""",
    ),
    "fenced-in-an-old-epoch": (
        "replication/truncate-on-fetch-log-start-fine-2b",
        {"Epochs": "1..3"},
        """AppendAsLeader("b1", 0)  SendFetch("b2")  HandleFetch("b1", "b2")
        ProcessFetchResponse("b2")  AppendAsLeader("b1", 1)  ShrinkIsr("b1", "b2")
        AdvanceLogStartOffset("b1", 2)  SendFetch("b2")  HandleFetch("b1", "b2")
        ElectLeader(2, "b1")  BecomeFollower("b2", 2)  ElectLeader(3, "b1")  BecomeLeader("b1", 3)
        ProcessFetchResponse("b2")  HandleListOffsets("b1", "b2")
        ProcessListOffsetsResponse("b2")""",
    ),
    "prepared-while-joining": (
        "group/dynamic-2m",
        {},
        """SendJoinGroup("m2")  HandleJoinGroup("m2")  ExpireInitialDelay()  ProcessJoinGroup("m2")
        HandleSyncGroup("m2")  ProcessSyncGroup("m2")  CompleteJoin("m2")
        SendJoinGroup("m1")  HandleJoinGroup("m1")
        SendHeartbeat("m2")  HandleHeartbeat("m2")  ProcessHeartbeat("m2")
        SendOffsetCommit("m2")  SendJoinGroup("m2")  HandleJoinGroup("m2")
        HandleOffsetCommit("m2")  ProcessOffsetCommit("m2")  ProcessJoinGroup("m2")""",
    ),
    "commit-within-assignment-epoch": (
        "consumer/commits-leaves-2m",
        {},
        """Join("m1")  SendHeartbeat("m1")  HandleHeartbeat("m1")  ReceiveAnswer("m1")
        Assign("m1")  SendCommit("m1")
        Join("m2")  SendHeartbeat("m2")  HandleHeartbeat("m2")  ReceiveAnswer("m2")
        Leave("m2")  HandleLeave("m2")
        SendHeartbeat("m1")  HandleHeartbeat("m1")  HandleCommit("m1")""",
    ),
    "first-epoch-two": (
        "consumer/dynamic-2m",
        {},
        """Join("m1")  SendHeartbeat("m1")  HandleHeartbeat("m1")""",
    ),
    "epoch-kept-after-revocation": (
        "consumer/three-3m",
        {},
        """Join("m3")  SendHeartbeat("m3")  HandleHeartbeat("m3")  ReceiveAnswer("m3")
        Assign("m3")
        Join("m2")  SendHeartbeat("m2")  HandleHeartbeat("m2")
        SendHeartbeat("m3")  HandleHeartbeat("m3")  ReceiveAnswer("m3")
        Revoke("m3")  Assign("m3")
        Join("m1")  SendHeartbeat("m1")  HandleHeartbeat("m1")
        SendHeartbeat("m3")  HandleHeartbeat("m3")""",
    ),
    "revoked-partitions-lost": (
        "consumer/three-3m",
        {"Expiries": "TRUE", "Epochs": "0..4"},
        """Join("m3")  SendHeartbeat("m3")  HandleHeartbeat("m3")  ReceiveAnswer("m3")
        Assign("m3")
        Join("m2")  SendHeartbeat("m2")  HandleHeartbeat("m2")
        Join("m1")  SendHeartbeat("m1")  HandleHeartbeat("m1")
        SendHeartbeat("m3")  HandleHeartbeat("m3")  ReceiveAnswer("m3")  Revoke("m3")
        ExpireSession("m3")  SendHeartbeat("m3")  RefuseHeartbeat("m3")  ReceiveAnswer("m3")""",
    ),
    "stale-assignment": (
        "consumer/expiries-2m",
        {},
        """Join("m1")  SendHeartbeat("m1")  HandleHeartbeat("m1")  ReceiveAnswer("m1")
        ExpireSession("m1")  SendHeartbeat("m1")  RefuseHeartbeat("m1")
        Assign_interrupted_by_ReceiveAnswer(<<"m1">>, 1, <<"m1">>)""",
    ),
    "full-batch-waits": (
        "runtime/batches-1b",
        {},
        f"""{_ACTIVE}  Write("b1", "two", "appended")""",
    ),
    "KAFKA-20115": (
        "runtime/tenures-2b",
        {"MaxBatch": "2"},
        f"""{_ACTIVE}  Write("b1", "put", "appended")
        Elect("b2")  FlushBatch("b1", "refused")""",
    ),
    "empty-group-unassigned": (
        "runtime/groups-1b",
        {},
        f"""{_ACTIVE}  Write("b1", <<"join", "m1">>, "appended")
        Write("b1", <<"leave", "m1">>, "appended")""",
    ),
    "first-epoch-one": (
        "runtime/groups-1b",
        {},
        f"""{_ACTIVE}  Write("b1", <<"join", "m1">>, "appended")""",
    ),
    "topics-in-the-log": (
        "runtime/groups-1b",
        {},
        f"""{_ACTIVE}  Write("b1", <<"join", "m1">>, "appended")""",
    ),
    "KAFKA-18688": (
        "runtime/groups-1b",
        {},
        f"""{_ACTIVE}  Write("b1", <<"join", "m2">>, "appended")
        Write("b1", <<"join", "m1">>, "appended")""",
    ),
    "KAFKA-19862": (
        "runtime/boundary-groups-thrown",
        {
            "Kinds": '{<<"join", "m1">>, <<"join", "m2">>, <<"leave", "m2">>}',
            "MaxWrites": "5",
        },
        f"""{_ACTIVE}  Write("b1", <<"join", "m2">>, "appended")
        Write("b1", <<"join", "m1">>, "appended")  Write("b1", <<"leave", "m2">>, "appended")
        FlushBatch("b1", "appended")
        Write("b1", <<"join", "m1">>, "appended")  FlushBatch("b1", "thrown")
        Write("b1", <<"join", "m2">>, "appended")  FlushBatch("b1", "appended")
        CompleteLoad("b1", 1)""",
    ),
    "first-update-not-counted": (
        "persister/writes-1l",
        {},
        """Join()  Initialize(1)  Read(1)""",
    ),
    "KAFKA-19456": (
        "persister/epochs-2l",
        {"UpdatesPerSnapshot": "0", "AlteredTo": "{-1}"},
        """Join()  Initialize(1)  Read(1)  Alter(-1)  Initialize(2)
        Acknowledge(1, 0, "ACCEPT")  Write(1, FALSE)  Read(1)
        Acknowledge(1, 0, "ACCEPT")  Write(1, FALSE)""",
    ),
    "KAFKA-20034": (
        "persister/epochs-2l",
        {"UpdatesPerSnapshot": "0"},
        """Join()  Initialize(1)  Alter(0)  Initialize(2)""",
    ),
    "KAFKA-20743": (
        "persister/forged-1l",
        {"UpdatesPerSnapshot": "0"},
        """Join()  Initialize(1)  HandleForged("WriteLeaderEpoch")""",
    ),
    "read-without-epoch-answered": (
        "persister/forged-1l",
        {"UpdatesPerSnapshot": "0"},
        """Join()  Initialize(1)  HandleForged("Read")""",
    ),
    "KAFKA-19690": (
        "transaction/errors-v1",
        {},
        f"""{_TIMED_OUT}  RefuseBatch("p", 1, 0, "INVALID_PRODUCER_EPOCH")""",
    ),
    "KAFKA-18042": (
        "transaction/errors-v1",
        {},
        f"""{_TIMED_OUT}  RefuseVerification("p", 1, 0, "INVALID_PRODUCER_EPOCH")""",
    ),
    "KAFKA-18202": (
        "transaction/errors-v2",
        {},
        """BeginTransaction("a")  SendBatch("a", "p")  SendBatch("a", "p")
        StartVerificationOfOvertaking("p", 1, 1)  AddPartitionOfLeader("c1", "p")
        AcknowledgeAppend("c1", 1)  Verify("c1", "p")
        RefuseBatch("p", 1, 1, "OUT_OF_ORDER_SEQUENCE_NUMBER")""",
    ),
    "KAFKA-18660": (
        "transaction/errors-v1",
        {},
        """BeginTransaction("a")  AddPartitionOfClient("c1", "a", "p")  AcknowledgeAppend("c1", 1)
        BeginFence("c1")  EndFence("c1")
        RefuseAddPartition("c1", "a", "p", "CONCURRENT_TRANSACTIONS")""",
    ),
}
"""By deviation that breaks no formula, or that TLC would meet behind another one first: a model,
constants, the way to it. The specification's evaluator computes its states."""


MUTANTS: dict[str, tuple[str, str, tuple[str, ...], dict[str, str]]] = {
    "fetch-counted-in-a-later-epoch": (
        "replication/truncate-on-fetch-interrupted-fetch-fine-2b",
        "replication/mutant-late-count-fine-3b",
        ("re-elected-leader",),
        {},
    ),
    "stale-load": ("runtime/elections-2b", "runtime/boundary-stale-load", (), {}),
    "marker-out-of-sync": (
        "runtime/transaction-appends-1b",
        "runtime/boundary-marker-out-of-sync",
        (),
        {},
    ),
    "KAFKA-20634": (
        "runtime/tenures-2b",
        "runtime/mutant-foreign-watermark",
        (),
        {"MaxBatch": "2"},
    ),
    "KAFKA-20845": ("runtime/large-1b", "runtime/mutant-empty-flush", (), {}),
    "KAFKA-19274": ("runtime/deletion-1b", "runtime/mutant-deletion-in-epoch", (), {}),
    "KAFKA-19857": (
        "runtime/executor-2b",
        "runtime/mutant-unload-stops-at-task",
        (),
        {},
    ),
    "KAFKA-20734": ("transaction/v2-outages", "transaction/boundary-leaderless", (), {}),
    "KAFKA-19446": ("transaction/errors-v2", "transaction/mutant-outdated-marker", (), {}),
    "KAFKA-20090": (
        "transaction/ids-time-outs",
        "transaction/mutant-fence-without-next-id",
        (),
        {},
    ),
    "KAFKA-20310": ("transaction/ids-fail-over", "transaction/mutant-ids-not-stored", (), {}),
    "KAFKA-19891": (
        "consumer/regex-names-1m",
        "consumer/mutant-regex-given-up-1m",
        ("first-epoch-two",),
        {},
    ),
    "interval-outlasts-members": (
        "consumer/interval-leaves-2m",
        "consumer/mutant-interval-outlasts-2m",
        (
            *("pending-revocation-described", "join-always-accepted", "own-revocation-released"),
            *("commit-within-assignment-epoch", "first-epoch-two", "epoch-kept-after-revocation"),
            *("KAFKA-20601", "assignor-tie-made", "empty-group-assigned"),
        ),
        {},
    ),
    "flush-after-truncation": (
        "storage/truncation",
        "storage/mutant-torn-behind-truncation",
        (),
        {},
    ),
    "log-start-lifts-recovery-point": (
        "storage/log-start",
        "storage/mutant-recovery-point-at-log-start",
        (),
        {},
    ),
    "KAFKA-17076": (
        "compaction/late-follower",
        "compaction/mutant-last-batch-dropped",
        (),
        {},
    ),
}
"""By deviation a model, the mutant that has this deviation alone, the other deviations that the
classes show along the mutant's counterexample (its states are computed with those), and constants
that differ from the mutant's."""


def main() -> None:
    """Write the files of each deviation, or of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", default="kafka-3.8.1")
    parser.add_argument("--only", help="The id of one deviation.")
    given = parser.parse_args()
    system = given.system
    known = deviating(factory_path(system))
    if known is None:
        raise SystemExit(f"{system} has no table of deviations")
    for deviation in known.deviations():
        if given.only not in (None, deviation.id):
            continue
        if deviation.id not in {*SCRIPTED, *MODELS, *MUTANTS}:
            print(f"{deviation.id}: found by a suite; its path is kept as it is")
            continue
        if deviation.id in SCRIPTED:
            name, constants, text = SCRIPTED[deviation.id]
            model, actions = with_constants(one_model(name), constants), _actions(text)
            if deviation.consequence:
                file = known.file(deviation.consequence)
                _followed(model, deviation, actions, file, system, (deviation.id,))
            _divergence(model, deviation, actions, known.file(deviation.path), system)
            continue
        if deviation.id in MUTANTS:
            name, broken, others, constants = MUTANTS[deviation.id]
            mutant = with_constants(one_model(broken), constants)
            model = _bounded(one_model(name), mutant)
            actions = _counterexample(mutant)
            ids = (*others, deviation.id)
            _followed(model, deviation, actions, known.file(deviation.consequence), system, ids)
            _divergence(model, deviation, actions, known.file(deviation.path), system, others)
            continue
        model = _bounded(*map(one_model, MODELS[deviation.id]))
        actions = _consequence(model, deviation, known.file(deviation.consequence), system)
        _divergence(model, deviation, actions, known.file(deviation.path), system)


def _actions(text: str) -> list[Action]:
    """The steps of a way, as `Name(arguments)`."""
    matches = re.findall(r"(\w+)\(([^)]*)\)", text)
    return [Action(name, _arguments(given)) for name, given in matches]


def _arguments(given: str) -> tuple[Value, ...]:
    arguments = parse_value(f"<<{given}>>")
    assert isinstance(arguments, tuple)
    return arguments


def _bounded(model: Model, mutant: Model) -> Model:
    """The model with the mutant's bounds, and the formula that those break."""
    spoken = {name: model.constants[name] for name in model.constants if name in _SPOKEN}
    constants = {**mutant.constants, **spoken}
    assert mutant.expect is not None
    broken = (mutant.expect.violated,)
    of_steps = {*broken} <= {*mutant.check.properties}
    check = msgspec.structs.replace(
        model.check,
        invariants=() if of_steps else broken,
        properties=broken if of_steps else (),
    )
    return replace(model, constants=constants, check=check, expect=None)


def _consequence(model: Model, deviation: Deviation, path: Path, system: str) -> list[Action]:
    """Write TLC's counterexample under the override; its actions."""
    judged = with_deviations(model, [msgspec.structs.replace(deviation, breaks=())])
    actions = _counterexample(judged)
    _followed(model, deviation, actions, path, system, (deviation.id,))
    return actions


def _counterexample(model: Model) -> list[Action]:
    """The steps by which TLC breaks a formula of the model."""
    result = check(model)
    steps = result.counterexample(result.outcome.variables)
    if not steps:
        raise SystemExit(f"{model.name}: TLC finds no counterexample")
    return [step.action for step in steps if step.action is not None]


def _followed(
    model: Model,
    deviation: Deviation,
    actions: list[Action],
    path: Path,
    system: str,
    deviations: tuple[str, ...],
) -> None:
    """Write the states along the steps, with these deviations, to the violation of its formula."""
    bench = workbench(Context(), model, system, with_graph=False, deviations=deviations)
    spec = bench.prepared.spec
    holds = _formula(model, spec, deviation.violated)
    ways = [[next(iter(spec.initial_states()))]]  # several where a step has several outcomes
    for action in actions:
        ways = [
            [*way, state]
            for way in ways
            if holds(way)
            for state in sorted(
                {after for step, after in spec.successors(way[-1]) if step == action}, key=repr
            )
        ]
    states = next((way for way in ways if not holds(way)), None)
    if states is None:
        raise SystemExit(f"{deviation.id}: {deviation.violated} is not false at the end alone")
    about: dict[str, Json] = {
        "model": model.name,
        "system": system,
        "constants": dict(model.constants),
        "deviations": list(deviations),
        "violated": deviation.violated,
    }
    trace = ItfTrace(tuple(spec.variables), tuple(states), tuple(actions), meta={"kconform": about})
    path.write_text(dump_trace(trace) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(actions)} steps to the violation of {deviation.violated}")


def _formula(model: Model, spec: Spec, name: str) -> Callable[[Sequence[State]], bool]:
    """Whether a formula is true of a way's last state, or of its last step."""
    if name in model.check.properties:
        of_step = spec.action_formula(name)
        return lambda way: len(way) < 2 or of_step(*way[-2:])
    of_state = spec.state_formula(name)
    return lambda way: of_state(way[-1])


def _divergence(
    model: Model,
    deviation: Deviation,
    actions: list[Action],
    path: Path,
    system: str,
    deviations: tuple[str, ...] | None = None,
) -> None:
    """Write where the specification is left, with the deviations that the path had before, or with
    these."""
    before = load(path).deviations if path.is_file() else ()
    given = before if deviations is None else deviations
    judged = (*given, *_of_other_parts(deviation, system))
    bench = workbench(Context(), model, system, with_graph=False, deviations=judged)
    oracle = spec_oracle(bench)
    driven, oracle = wrapped(actions, bench.make_system(), oracle)
    result = run_path(
        Driver(driven, oracle), next(iter(bench.prepared.spec.initial_states())), actions
    )
    close(driven)
    if result.divergence is None:
        raise SystemExit(f"{deviation.id}: {system} follows the specification ({result.disabled})")
    save(
        path,
        oracle,
        result.divergence,
        model=model.name,
        system=system,
        constants=model.constants,
        deviations=given,
    )
    print(f"{path.name}: {len(result.divergence.actions)} steps, {result.divergence.action}")


def _of_other_parts(deviation: Deviation, system: str) -> list[str]:
    """What the stage `deviations` takes for known along a path, too."""
    known = deviating(factory_path(system))
    assert known is not None, "main has asked for it"
    return [
        other.id
        for other in known.deviations()
        if other.part != deviation.part and other.stands_in(known.version_of(other.part))
    ]


if __name__ == "__main__":
    main()
