"""Every protocol's smallest model, every kind of system, and the commands that take both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.modelcheck.manifest import Model
from conformance.registry import BUILT_IN, SPECIFICATIONS
from tests.bundled import MODELS
from tests.e2e.commands import Ended
from tests.kafka_needed import DRIVEN

DRIVE = {
    "gate": "gate {model} --system {system} --traces 1 --no-canary -o out",
    "replay": "replay {model} --system {system} --suite walks --walks 2",
    "interleave": "interleave {model} --system {system} --samples 1",
    "turns": "turns {model} --system {system} --walks 1",
    "explore": "explore {model} --system {system} --examples 2 --steps 5",
    "record": "record {model} --system {system} --traces 2 --length 5 -o {store}",
    "score": "score {system} --model {model} --traces 1 -o card",
}
"""Commands that take a model and a system."""
SYSTEMS = (
    *sorted(BUILT_IN),
    "kafka-4.4.0",
    "kafka-4.4.0+client",
    "wire:127.0.0.1:1",
    "exec:false",
    "tcp:127.0.0.1:1",
    "no_such_module:create",
)
HERE = 600.0
"""Seconds after which a command hangs, on a busy machine."""


def smallest(models: Sequence[Model]) -> Model:
    """The smallest; of those that feed a suite, where there are any."""
    return min(
        models, key=lambda model: (not model.feeds_suite, model.expect.distinct_states or 10**9)
    )


def protocols() -> Iterator[tuple[str, Model]]:
    """A model of every specification: the smallest that holds."""
    holding = [model for model in MODELS if not model.mutant]
    for spec in sorted({model.spec for model in holding}):
        yield spec, smallest([model for model in holding if model.spec == spec])


PROTOCOLS = dict(protocols())


def fits(spec: str, system: str) -> bool:
    driven = SPECIFICATIONS.get(system, ())
    return spec in driven or (system.startswith("kafka-") and spec in DRIVEN)


def tell(ended: Ended, command: str) -> str:
    return f"{command}: exit code {ended.code}\n{ended.out[-500:]}{ended.err[-1500:]}"
