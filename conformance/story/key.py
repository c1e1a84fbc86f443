"""Keys of findings: what went wrong, in words that are the same in every stage and in every run.

`Fetch:not_allowed:hw:log` is a state after Fetch that differs in hw and log, whoever met it;
`Append:not_enabled` an Append that was taken or on offer where the specification has none;
`LogsMatch:violated` a formula that is false.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

INIT = "Init"
"""Stands for an action in the key of what an initial state shows."""
NOT_ALLOWED, NOT_ENABLED, REFUSED = "not_allowed", "not_enabled", "refused"
WRONG_INITIAL, RAISED, ENDLESS, VIOLATED = "wrong_initial", "raised", "endless", "violated"
KINDS = frozenset({NOT_ALLOWED, NOT_ENABLED, REFUSED, WRONG_INITIAL, RAISED, ENDLESS, VIOLATED})
_TOGETHER = "+"


def step_key(actions: Iterable[str], kind: str, details: Iterable[str] = ()) -> str:
    """Of a step: the names of its action, or of those on offer, the kind, and what differs.

    The details are sorted unless there is an exception's function and class in them.
    """
    parts = list(details) if kind == RAISED else sorted(set(details))
    return ":".join([_TOGETHER.join(sorted(set(actions))) or INIT, kind, *parts])


def formula_key(name: str) -> str:
    """Of a formula that is false."""
    return f"{name}:{VIOLATED}"


def hashed_key(stage: str, parts: Iterable[str]) -> str:
    """Of a finding that no short name would tell from others: what it is about, hashed."""
    digest = hashlib.sha256("|".join(parts).encode()).hexdigest()
    return f"{stage}-{digest[:12]}"


def kind_of(key: str) -> str:
    """One of KINDS; empty for a key of another form."""
    kind = f"{key}::".split(":")[1]
    return kind if kind in KINDS else ""


def subjects_of(key: str) -> tuple[str, ...]:
    """The actions or the formula that a key of a known kind is about."""
    return tuple(key.partition(":")[0].split(_TOGETHER)) if kind_of(key) else ()
