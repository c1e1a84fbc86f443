"""What an operator is told to do fits the release and the rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.load.advice import advice
from conformance.load.compactions import AS_IT_IS, Variant
from conformance.load.judgement import LoadAnswer, LoadFault
from conformance.load.specification import rules_of
from conformance.load.topics import OFFSETS
from conformance.resources import spec_dir

RULES = sorted(
    set(
        re.findall(r'Failed\(\w+, "(\w+)"\)', Path(spec_dir() / "GroupLoad.tla").read_text("utf-8"))
    )
)


def fault(rule: str, variant: Variant = AS_IT_IS) -> LoadFault:
    answer = LoadAnswer.FAILS if variant == AS_IT_IS else LoadAnswer.FAILS_COMPACTED
    return LoadFault(answer, rule, 7, "consumer member a", variant, (3,), 5)


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_has_advice(rule: str) -> None:
    assert advice(fault(rule), "4.1.0").endswith(".")


def test_who_has_the_mend_is_not_told_to_upgrade_to_it() -> None:
    beside = Variant("raw", 2, 2, 9)

    assert "KAFKA-19862" in advice(fault("PartitionHasOwner", beside), "4.1.0")
    assert "KAFKA-19862" not in advice(fault("PartitionHasOwner", beside), "4.4.0")
    assert "Elect another leader" in advice(fault("PartitionHasOwner", beside), "4.4.0")
    assert "Elect" not in advice(fault("PartitionHasOwner"), "4.4.0")


@pytest.mark.parametrize(
    ("release", "replaced", "streams"),
    [
        ("4.0.1", False, False),
        ("4.0.2", True, False),
        ("4.1.1", False, False),
        ("4.1.2", True, False),
        ("4.2.0", True, False),
        ("4.2.1", True, True),
        ("4.3.0", True, True),
        ("4.4.0", True, True),
        ("4.5.0", True, True),
    ],
)
def test_rules_came_with_patch_releases_too(release: str, replaced: bool, streams: bool) -> None:
    rules = rules_of(OFFSETS, release)

    assert rules["OwnersAreReplaced"] is replaced
    assert rules["StreamsReplacesSimple"] is streams
