"""TLA+ values as plain Python values; their text, their JSON (ITF) and their types."""

from __future__ import annotations

from conformance.tla.values.value import (
    Action,
    Fingerprinter,
    Fn,
    ModelValue,
    Sharing,
    State,
    Value,
    abridged_value,
    canonical_key,
    canonical_sorted,
    collision_probability,
    equal,
    fingerprint,
    format_value,
    make_function,
    make_record,
    make_set,
    mismatch,
    tagged,
)

__all__ = [
    "Action",
    "Fingerprinter",
    "Fn",
    "ModelValue",
    "Sharing",
    "State",
    "Value",
    "abridged_value",
    "canonical_key",
    "canonical_sorted",
    "collision_probability",
    "equal",
    "fingerprint",
    "format_value",
    "make_function",
    "make_record",
    "make_set",
    "mismatch",
    "tagged",
]
