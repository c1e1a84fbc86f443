"""The table of invariants between files: complete, planted, and shown as it is."""

from __future__ import annotations

import pytest

from conformance.inspect.damage import KINDS
from conformance.inspect.invariants import INVARIANTS, InvariantScope
from conformance.inspect.models import REPLICATION
from conformance.inspect.reading.names import IDENTITY_FILES, OFFSET_CHECKPOINTS
from conformance.modelcheck.specifications import Specifications
from tests.planted.faults import FAULTS
from tests.unit.inspect.invariants_page import PAGE, shown, table

FORMULAS = {
    *Specifications()[REPLICATION].invariants,
    "OneLeaderPerEpoch",
    "lost-by-unclean-election",
}


@pytest.mark.parametrize("scope", InvariantScope)
def test_the_page_shows_the_table(scope: InvariantScope) -> None:
    page = PAGE.read_text("utf-8")
    assert shown(page, scope) == table(scope), "run python -m tests.unit.inspect.invariants_page"


@pytest.mark.parametrize("name", [one.name for one in INVARIANTS])
def test_three_faults_are_planted_for_each_invariant(name: str) -> None:
    (row,) = (one for one in INVARIANTS if one.name == name)
    faults = [fault for fault in FAULTS.values() if fault.invariant == name]
    assert len(faults) >= 3
    for fault in faults:
        assert fault.told_by & set(row.kinds)


def test_every_fault_between_files_breaks_a_row() -> None:
    assert {fault.invariant for fault in FAULTS.values()} - {""} <= {o.name for o in INVARIANTS}


def test_the_findings_of_the_table_are_kinds_or_formulas() -> None:
    told = {kind for one in INVARIANTS for kind in one.kinds}
    assert told <= {*KINDS, *FORMULAS}


def test_every_file_that_is_read_is_in_the_table() -> None:
    told = " ".join(one.files for one in INVARIANTS)
    names = {*OFFSET_CHECKPOINTS, *IDENTITY_FILES, "leader-epoch-checkpoint", ".index",
             ".timeindex", ".txnindex", "producer snapshots", "metadata snapshots",
             "__cluster_metadata-0", "server log"}  # fmt: skip
    assert not [name for name in names if name not in told]
