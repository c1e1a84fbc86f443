"""What a manifest file may say, by key, with the defaults: docs/models.md describes it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

SCHEMA = 1

Tier = Literal["ci", "nightly"]


class Simulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Random behaviours in place of all states, for bounds that TLC does not exhaust in time."""

    behaviours: Annotated[int, msgspec.Meta(ge=1)]
    depth: Annotated[int, msgspec.Meta(ge=1)] = 100
    """States of a behaviour, at most."""
    seed: int = 1


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names of the spec's formulas that TLC gets, as in a .cfg."""

    specification: str = ""
    init: str = ""
    next: str = ""
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    action_constraints: tuple[str, ...] = ()
    symmetry: str = ""
    view: str = ""
    deadlock: bool = False
    """Whether a state without successor is an error."""
    simulation: Simulation | None = None


class SituationNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """State predicates of the spec; the suite shows a shortest path to each."""

    names: tuple[str, ...] = ()


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What TLC must say; `counterexample_length` counts states, the initial one included.

    A number that is 0 or missing is not stated: the run says which one to state.
    """

    result: Literal["holds", "violated", "not exhausted"] = "holds"
    distinct_states: int = 0
    generated_states: int = 0
    violated: str = ""
    counterexample_length: int = 0
    reason: str = ""


class ManifestFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it stands, together with its bases."""

    schema: int
    spec: str
    system: str = ""
    description: str = ""
    config: str = ""
    tier: Tier = "ci"
    variant: str = ""
    feeds_suite: bool = False
    mutant: str = ""
    labels: dict[str, str | int] = {}  # msgspec copies mutable defaults
    constants: dict[str, object] = {}
    definitions: dict[str, object] = {}
    overrides: dict[str, str] = {}
    check: Check = Check()
    situations: SituationNames = SituationNames()
    expect: Expect = Expect()
