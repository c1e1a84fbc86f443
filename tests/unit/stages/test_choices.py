"""By whose word a model is judged where both the specification's choice and a deviation speak."""

from __future__ import annotations

from conformance.stages.context import Context, choices_of, one_model
from conformance.stages.overridden import with_deviations
from conformance.systems.kafka import KafkaFactory

SYSTEM = "kafka-4.4.0"


def test_a_choice_gives_way_to_a_deviation_that_the_model_already_has() -> None:
    """`versions` judges by one deviation at a time: the choice took the place of this one."""
    table = KafkaFactory("4.4.0").deviations()
    kept = next(known for known in table if known.id == "re-elected-leader")
    model = one_model("replication/bench/truncate-on-fetch-log-start-coarse-2b")
    assert choices_of(Context(), SYSTEM, with_deviations(model, [kept])) == ()
