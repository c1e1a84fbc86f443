"""A suite goes to another process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from conformance.suites.suite import Suite, Test

TESTS = [
    pytest.param([], id="no test"),
    pytest.param([Test(0, np.array([1, 2], np.int32)), Test(3, np.zeros(0, np.int32))], id="some"),
    pytest.param(
        [Test(1, np.array([7], np.int32), "named"), Test(0, np.array([2], np.int32))], id="named"
    ),
]


@pytest.mark.parametrize("tests", TESTS)
def test_a_suite_arrives_as_it_was_sent(tests: list[Test]) -> None:
    suite = Suite("some", tuple(tests), "digest", seed=3)
    sent = pickle.loads(pickle.dumps(suite))
    assert (sent.kind, sent.graph_digest, sent.seed, len(sent)) == ("some", "digest", 3, len(tests))
    for ours, theirs in zip(tests, sent, strict=True):
        assert (ours.initial, ours.edges.tolist(), ours.name) == (
            theirs.initial,
            theirs.edges.tolist(),
            theirs.name,
        )
        assert theirs.edges.dtype == np.int32
