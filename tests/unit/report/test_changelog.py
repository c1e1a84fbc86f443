"""A changelog of two systems: its verdict, and what it says in Markdown, JSON and HTML."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from conformance.report.changelog import (
    CHANGELOG_SCHEMA,
    Changelog,
    ComparedPath,
    ComparedSuite,
    RuleChange,
    dumps,
    markdown,
    page,
)
from conformance.verdict import Verdict

KNOWN = RuleChange(
    rules=("AcceptsJoin (ConsumerGroupCoordinator.tla)",),
    title="a member may join again",
    specification="ConsumerGroup",
    departs="broker-4.4.0",
    follows="broker-4.1.0",
    in_new=True,
    known="join-always-accepted",
    report="KAFKA-19233",
    cost="harmless",
    model="consumer/losses-2m",
    path=('Join("m1")', 'SendHeartbeat("m1")'),
    differs=("channel.m1.epoch: broker-4.4.0 has 2, the specification -3",),
)
UNKNOWN = replace(KNOWN, known="", report="", cost="", title="HandleFetch: <refused>")
SUITE = ComparedSuite("group/protocols-2m", "agrees", "agrees", 203, 203, 3534, 3534)


def changelog(*changes: RuleChange, suites: tuple[ComparedSuite, ...] = (SUITE,)) -> Changelog:
    return Changelog(
        schema=CHANGELOG_SCHEMA,
        old="kafka-4.1.0",
        new="kafka-4.4.0",
        version="1",
        seed=7,
        changes=changes,
        suites=suites,
        paths=(ComparedPath("join-always-accepted", "gone", "seen"),),
        not_compared=("3 models: Kafka's classes are driven by Replication",),
    )


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        (changelog(), Verdict.PASS),
        (changelog(KNOWN), Verdict.PASS),
        (changelog(KNOWN, UNKNOWN), Verdict.FAIL),
        (changelog(suites=()), Verdict.INCONCLUSIVE),
        (changelog(suites=(replace(SUITE, undecided="too slow"),)), Verdict.INCONCLUSIVE),
        (changelog(suites=(SUITE, replace(SUITE, undecided="too slow"))), Verdict.INCONCLUSIVE),
    ],
)
def test_only_a_change_that_no_table_knows_fails_and_nothing_compared_never_passes(
    told: Changelog, verdict: Verdict
) -> None:
    assert told.verdict is verdict
    assert json.loads(dumps(told))["verdict"] == str(verdict)


def test_that_nothing_changed_is_said_with_what_was_covered() -> None:
    text = markdown(changelog())
    assert "Nothing changed; 1 suite driven on both (7,068 steps), 1 saved path replayed" in text
    assert "| group/protocols-2m | agrees, 203 tests, 3,534 steps | agrees, 203 tests" in text
    assert "| 3 models: Kafka's classes are driven by Replication" in text


def test_a_change_names_rule_report_path_and_what_differs() -> None:
    text = markdown(changelog(KNOWN))
    for part in (
        "`AcceptsJoin (ConsumerGroupCoordinator.tla)` of ConsumerGroup",
        "broker-4.4.0 departs from it, broker-4.1.0 follows it",
        "`join-always-accepted`: KAFKA-19233; harmless",
        "No formula for users is known to break",
        '2. `SendHeartbeat("m1")`',
        "channel.m1.epoch: broker-4.4.0 has 2, the specification -3",
    ):
        assert part in text, part


def test_a_formula_that_breaks_is_named_and_one_that_nobody_looked_for_is_said() -> None:
    broken = replace(KNOWN, formulas=("StrongIsr",), violated="StrongIsr")
    assert "break: StrongIsr; driven to the violation of StrongIsr" in markdown(changelog(broken))
    assert "Whether a formula breaks was not searched for" in markdown(changelog(UNKNOWN))


def test_the_page_has_the_same_and_no_foreign_markup() -> None:
    text = page(changelog(KNOWN, UNKNOWN))
    assert "a member may join again" in text
    assert "HandleFetch: &lt;refused&gt;" in text
    assert "<refused>" not in text
    assert "http" not in text.replace("<!doctype html>", "")
