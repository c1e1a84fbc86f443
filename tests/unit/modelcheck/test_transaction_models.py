"""What a read_committed consumer gets, by Kafka's own numbers; and which models break what."""

from __future__ import annotations

import re

import pytest

from conformance.modelcheck.manifest import Model, find_models
from conformance.resources import resource_root, spec_dir
from conformance.tla import ModelConfig, Spec, bind, format_value, load_module
from tests.unit.modelcheck import promises_seen

MODELS = find_models(["transaction"])
OF_PRODUCERS = find_models(["producer"])
PAGE = (resource_root() / "docs" / "transactions.md").read_text(encoding="utf-8")

UNIFIED_LOG_TEST = [
    ("data", "1", 0, 4),
    ("data", "none", 5, 7),
    ("data", "2", 8, 9),
    ("data", "1", 10, 13),
    ("data", "3", 14, 16),
    ("data", "none", 17, 18),
    ("data", "1", 19, 28),
    ("Aborted", "1", 29, 29),
    ("data", "2", 30, 35),
    ("data", "4", 36, 38),
    ("data", "none", 39, 48),
    ("data", "3", 49, 57),
    ("Committed", "3", 58, 58),
    ("data", "4", 59, 66),
    ("data", "2", 67, 73),
    ("Aborted", "2", 74, 74),
    ("data", "none", 75, 84),
    ("data", "4", 85, 88),
    ("Committed", "4", 89, 89),
]
"""Kind, producer, first and last offset: the log of UnifiedLogTest.testTransactionIndexUpdated."""

TRANSACTION_INDEX_TEST = [(0, 10, 11), (5, 15, 13), (18, 35, 25), (32, 50, 40)]
"""First, last, stable: TransactionIndexTest.testCollectAbortedTransactions, producers by place."""

VALUES = [
    (
        "AbortIndexOf(Log)",
        '<<[first |-> 0, last |-> 29, producer |-> "1", stable |-> 8], '
        '[first |-> 8, last |-> 74, producer |-> "2", stable |-> 36]>>',
    ),
    ("LastStableOffset(Log, 0, 30)", "8"),
    ("LastStableOffset(Log, 0, 75)", "36"),
    ("LastStableOffset(Log, 0, 90)", "90"),
    ("LastStableOffset(Log, 20, 30)", "20"),
    ("Looked(0, 32)", '{"1", "2", "3"}'),
    ("Looked(11, 35)", '{"2", "3", "4"}'),
    ("Looked(20, 41)", '{"3", "4"}'),
    # An offset's record is at the place behind it.
    ("ReadsCommitted(Log, 0, 75)", "{6, 7, 8, 15, 16, 17, 18, 19}"),
    *(
        (f"Read(0, {piece}) = ReadsCommitted(Log, 0, 90)", "TRUE")
        for piece in (1, 2, 7, 10, 29, 30, 74, 90)
    ),
]


def record(kind: str, producer: str) -> str:
    return f'[kind |-> "{kind}", producer |-> "{producer}"]'


def operators() -> str:
    """The log, the index, and a consumer that reads pieces from an offset on."""
    log = ", ".join(
        record(kind, producer)
        for kind, producer, first, last in UNIFIED_LOG_TEST
        for _ in range(first, last + 1)
    )
    index = ", ".join(
        f'AbortedTransaction("{place}", {first}, {last}, {stable})'
        for place, (first, last, stable) in enumerate(TRANSACTION_INDEX_TEST, start=1)
    )
    return rf"""
Log == <<{log}>>
Index == <<{index}>>
Looked(from, upper) == {{a.producer : a \in CollectAborted(Index, from, upper)}}
RECURSIVE Read(_, _)
Read(from, piece) ==
  LET end == Lesser(from + piece, Len(Log))
      aborted == CollectAborted(AbortIndexOf(Log), from, end)
  IN  IF from = Len(Log) THEN {{}}
      ELSE Filtered(Log, from, end, aborted, {{}}) \union Read(end, piece)
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    path = tmp_path_factory.mktemp("read") / "Numbers.tla"
    rows = "\n".join(f"V{row} == {text}" for row, (text, _) in enumerate(VALUES))
    path.write_text(f"---- MODULE Numbers ----\nEXTENDS ReadCommitted\n{operators()}{rows}\n====\n")
    return bind(load_module(path, search=[spec_dir()]), ModelConfig())


@pytest.mark.tlc
@pytest.mark.parametrize(("row", "text", "expected"), [(i, *v) for i, v in enumerate(VALUES)])
def test_the_operators_have_the_numbers_of_kafkas_tests(
    table: Spec, row: int, text: str, expected: str
) -> None:
    assert format_value(table.value(f"V{row}")) == expected, text


def formulas(model: Model) -> set[str]:
    """What the model checks, but for the types."""
    return {*model.check.invariants, *model.check.properties} - {"TypeOK"}


def broken(spec: str) -> set[str]:
    """The formulas that some model of the specification must violate."""
    expected = [model.expect for model in MODELS if model.spec == spec]
    return {expect.violated for expect in expected if expect is not None and expect.violated}


EXTENDED = {
    "TransactionErrors": "Transactions",
    "TransactionExpiry": "Transactions",
    "TransactionProducerIds": "Transactions",
    "TransactionalLogExpiry": "TransactionalLog",
    "TransactionalLogRestarts": "TransactionalLog",
    "TransactionsAtPort": "Transactions",
}
"""A root that takes the steps of another one as they are: what breaks a formula there is enough."""


@pytest.mark.parametrize("spec", sorted({model.spec for model in MODELS}))
def test_each_formula_has_a_model_that_breaks_it(spec: str) -> None:
    checked = set().union(*(formulas(model) for model in MODELS if model.spec == spec))
    assert checked - broken(spec) - broken(EXTENDED.get(spec, spec)) == set()


def test_the_page_of_promises_names_each_formula_and_each_model_that_must_fail() -> None:
    names = {name for model in MODELS for name in formulas(model)}
    failing = {
        model.name.partition("/")[2]
        for model in MODELS
        if model.expect is not None and model.expect.violated
    }
    words = set(re.findall(r"`([\w-]+)`", PAGE))
    assert (names | failing) - words == set()


def test_the_page_of_promises_names_no_model_that_is_not_there() -> None:
    named = set(re.findall(r"`((?:mutant|boundary)-[\w-]+)`", PAGE))
    there = {model.name.partition("/")[2] for model in (*MODELS, *OF_PRODUCERS)}
    assert named - there == set()


def test_the_page_of_promises_says_what_the_releases_were_seen_to_do() -> None:
    shown = promises_seen.TABLE.shown()
    assert shown == promises_seen.table(), "run python -m tests.unit.modelcheck.promises_seen"
