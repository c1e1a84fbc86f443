"""Consumer groups by their records in __consumer_offsets (being written)."""
from dataclasses import dataclass, field
from conformance.inspect.findings import Notes
@dataclass(frozen=True, slots=True)
class JudgedGroup:
    name: str
    truths: dict
    notes: Notes = field(default_factory=Notes)
def judge_groups(evidence, history):
    return ()
