"""Brokers of Kafka's own CoordinatorRuntime that a test drives by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from conformance.modelcheck.manifest import Model
from conformance.stages.context import Context, workbench
from conformance.systems.kafka import KafkaRuntimeSystem
from conformance.systems.protocol import Observation
from conformance.tla import Action, Value
from tests.kafka_needed import jars_or_skip

NEWEST = "4.4.0"
Step = tuple[Value, ...]
_System = TypeVar("_System", bound=KafkaRuntimeSystem)


@contextmanager
def driven_by_hand(context: Context, model: Model, kind: type[_System]) -> Iterator[_System]:
    """The brokers of a model, of the newest release."""
    jars_or_skip(NEWEST)
    bench = workbench(context, model, f"kafka-{NEWEST}", with_graph=False)
    system = bench.make_system()
    assert isinstance(system, kind)
    yield system
    system.close()


def after(driven: KafkaRuntimeSystem, *steps: Step) -> Observation:
    """What is seen after these steps from the start."""
    driven.reset({})
    for name, *args in steps:
        driven.apply(Action(str(name), tuple(args)))
    return driven.observe()
