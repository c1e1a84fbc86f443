"""Walks of the group protocol with more members, ids and generations than TLC can exhaust."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest

from conformance.replay.walker import Walker
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import spec_oracle

pytestmark = pytest.mark.tlc

WALKS, LENGTH = 12, 70
IDS = ", ".join(
    f'[id |-> "m{member}-{number}", member |-> "m{member}"]'
    for member in (1, 2, 3)
    for number in range(1, 7)
)
WIDE = {
    "Members": '{"m1", "m2", "m3"}',
    "MemberIds": f"<<{IDS}>>",
    "Generations": "0..9",
    "Partitions": "0..3",
    "FailOvers": "TRUE",
    "Deletes": "TRUE",
    "FailureLimit": "5",
}
SHAPES: Mapping[str, Mapping[str, str]] = {
    "known ids": {"RequireKnownMemberId": "TRUE", "InitialDelays": "1", "MaxSize": "2"},
    "static": {"InstanceOf": '[m1 |-> "i1", m2 |-> "i2", m3 |-> "none"]', "MaxSize": "2"},
    "shared instance": {"InstanceOf": '[m1 |-> "i1", m2 |-> "i1", m3 |-> "none"]'},
    "protocols": {
        "Protocols": '{"range", "sticky"}',
        "ProtocolsOf": r'[p \in Members |-> {"range", "sticky"}]',
        "ProtocolSets": '{{"range"}, {"sticky"}, {"range", "sticky"}}',
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_both_sides_follow_the_spec_beyond_what_was_model_checked(shape: str) -> None:
    narrow = one_model("group/failures-2m")
    model = replace(narrow, constants={**narrow.constants, **WIDE, **SHAPES[shape]})
    bench = workbench(Context(), model, with_graph=False)
    walker = Walker(bench.make_system(), spec_oracle(bench))
    taken: Counter[str] = Counter()
    for seed in range(WALKS):
        walk = walker.walk(seed, LENGTH)
        assert walk.problem is None, f"seed {seed}: {walk.problem}"
        taken.update(action.name for action in walk.actions)
    assert taken["HandleSyncGroup"], "no walk came to an assignment"
    assert len(taken) > 15, f"the walks took only {sorted(taken)}"
