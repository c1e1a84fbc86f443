"""The active controller that is cut from the others loses the quorum to one of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.recording import ScenarioRun
from conformance.kafka.scenario import Faults, faults_plan
from conformance.kafka.schemas import Schemas
from conformance.kafka.tap import TapThread
from conformance.kafka.tapped import tapped
from tests.kafka_needed import VERSIONS, jars_or_skip

BROKERS = 3
ELECTED_S = 60.0
LEADS = "Becoming the active controller"
"""So says the log of the node that is elected."""


@pytest.mark.parametrize("version", VERSIONS)
def test_the_others_elect_a_controller(version: str, tmp_path: Path) -> None:
    jars = jars_or_skip(version)
    schemas = Schemas.of(jars.classpath)
    ends, links = tapped(range(1, BROKERS + 1))
    settings = ClusterSettings(brokers=BROKERS)
    with (
        TapThread(schemas, links, lambda _: None) as tap,
        Cluster(jars, tmp_path, settings, schemas=schemas, endpoints=ends) as cluster,
    ):
        before = cluster.controller()
        plan = faults_plan(BROKERS, 1, Faults(["isolate"]), 60.0)
        ScenarioRun(plan, cluster, tap, {}, lambda _: None)._isolate(before)
        until = time.monotonic() + ELECTED_S
        logs = [node.log for node in cluster.nodes.values() if node.number != before]
        while not any(LEADS in log.read_text("utf-8") for log in logs):
            assert time.monotonic() < until, f"node {before} still leads the quorum"
            time.sleep(0.5)
