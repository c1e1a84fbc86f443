"""Compares the Python evaluator with TLC on one model: `python benchmarks/tla_python.py`.

Both search the whole state space of Replication with two brokers and check no invariants, TLC
with one worker. Times are CPU seconds, since the machine may be shared; TLC's contain the start
of its JVM, ours do not contain SANY's, which is given apart.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conformance.resources import spec_dir
from conformance.tla import Sharing, Spec, State, bind, find_tools, load_module, parse_config

CONFIG = """
CONSTANTS
  Brokers = {"b1", "b2"}  Epochs = {1, 2, 3}  Offsets = {0, 1, 2}  AppendCounts = {0, 1, 2}
  BrokerEpochs = {0}  PartitionEpochs = {0}  InitialLeader = "b1"  Protocol = "Kip320"
  Fine = TRUE  UncleanElection = FALSE  Crashes = FALSE  LogStartMoves = FALSE  TwoStepIsr = FALSE
INIT Init
NEXT Next
"""
_INVARIANTS = """
  TypeOK OneLeaderPerEpoch LeaderInIsr KnownEpochIsRegistered IsrWithinMaximalIsr
  HighWatermarkWithinLog EpochsNonDecreasing RecordEpochIsKnown EpochCacheMatchesLog
  LeaderEpochIsCached EndOffsetIsExact FetchOffsetIsLogEnd FailedPartitionNotFetched
  FetchedIffFollower WeakIsr StrongIsr CommittedNeverLost ElectableHasExposed
  OneExposedRecordPerOffset LogMatching FetchingFollowerIsPrefix RememberedPositionExists
"""
INVARIANTS = _INVARIANTS.split()


def child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_tlc(folder: Path) -> tuple[float, int, int]:
    """CPU seconds, generated and distinct states."""
    for module in spec_dir().glob("*.tla"):
        shutil.copy(module, folder)
    (folder / "Replication.cfg").write_text(CONFIG)
    jvm = ("-Xmx2g", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={folder}")
    options = ("-workers", "1", "-deadlock", "-config", "Replication.cfg", "Replication.tla")
    before = child_seconds()
    command = find_tools().command("tlc2.TLC", *options, jvm=jvm)
    output = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    match = re.search(r"(\d+) states generated, (\d+) distinct", output)
    assert match is not None, output
    return child_seconds() - before, int(match[1]), int(match[2])


def search(spec: Spec) -> tuple[float, int, list[State]]:
    """CPU seconds, generated states, all states in the order found.

    States share their parts, as in `conformance.tla.search`.
    """
    started = time.process_time()
    shared = Sharing()
    seen = dict.fromkeys(spec.initial_states())
    frontier, generated = list(seen), len(seen)
    while frontier:
        following = []
        for state in frontier:
            for _, successor in spec.successors(state):
                generated += 1
                if successor not in seen:
                    successor = shared(successor)
                    seen[successor] = None
                    following.append(successor)
        frontier = following
    return time.process_time() - started, generated, list(seen)


def main() -> int:
    started = time.process_time() + child_seconds()
    spec = bind(load_module(spec_dir() / "Replication.tla"), parse_config(CONFIG))
    formulas = [spec.state_formula(name) for name in INVARIANTS]
    spec.successors(next(iter(spec.initial_states())))
    start = time.process_time() + child_seconds() - started
    seconds, generated, states = search(spec)
    with tempfile.TemporaryDirectory() as folder:
        tlc_seconds, tlc_generated, tlc_states = run_tlc(Path(folder))
    before = time.process_time()
    false = sum(not formula(state) for state in states for formula in formulas)
    checking = time.process_time() - before
    print(f"start, SANY included: {start:.2f} s")
    print(f"ours: {generated} generated, {len(states)} distinct, {generated / seconds:.0f} per s")
    print(
        f"TLC:  {tlc_generated} generated, {tlc_states} distinct, "
        f"{tlc_generated / tlc_seconds:.0f} per s"
    )
    print(f"ours / TLC: {generated / seconds / (tlc_generated / tlc_seconds):.2f} (at least 0.2)")
    print(
        f"all {len(formulas)} invariants: {len(states) / checking:.0f} states per s "
        f"(at least 5000), {false} false"
    )
    return int((generated, len(states)) != (tlc_generated, tlc_states))


if __name__ == "__main__":
    sys.exit(main())
