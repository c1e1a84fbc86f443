"""Keys of findings: a name of the fault that is the same in every stage and in every run.

`Fetch:not_allowed:hw:log` is a state after Fetch that differs in hw and log, whoever met it;
`Append:not_enabled` an Append that was taken or on offer where the specification has none;
`LogsMatch:violated` a formula that is false.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from conformance.story.kind import BehaviourKind

INIT = "Init"
"""Replaces the action in the key of a fault in an initial state."""
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


def departure_key(kind: BehaviourKind, action: str, detail: str, variables: Iterable[str]) -> str:
    """Of an implementation that departs from the specification at an action.

    `detail` is what was said of it: the formula, the steps on offer, the exception's trace.
    `variables` are those that differ.
    """
    match kind:
        case BehaviourKind.INVARIANT:
            return formula_key(detail)
        case BehaviourKind.OFFERS:
            # As where it is taken: an action that the spec does not enable.
            more = re.findall(r"^would take (\w+)", detail, re.MULTILINE)
            less = re.findall(r"^would not take (\w+)", detail, re.MULTILINE)
            return step_key(more or less, NOT_ENABLED if more else REFUSED)
        case BehaviourKind.RAISED:
            return step_key([action], RAISED, _raised(detail))
    return step_key([action] if action else [], kind.name.lower(), variables)


def without_variables(key: str) -> str:
    """A key without what differs after its step: other versions may differ there in more."""
    action, _, rest = key.partition(":")
    kind = rest.partition(":")[0]
    return f"{action}:{kind}" if kind in (NOT_ALLOWED, WRONG_INITIAL) else key


def offered_in(detail: str) -> tuple[str, ...]:
    """The actions on offer that the specification does not enable, as text."""
    return tuple(re.findall(r"^would take (.+), which the spec does not enable$", detail, re.M))


def _raised(trace: str) -> list[str]:
    """The exception's class and the function that raised it: line numbers move with every edit."""
    functions = re.findall(r"^  File .*, in (\S+)$", trace, re.MULTILINE)
    classes = re.findall(r"^([A-Za-z_][\w.]*)(?::|$)", trace, re.MULTILINE)
    return [*functions[-1:], *(name.rpartition(".")[2] for name in classes[-1:])]


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
