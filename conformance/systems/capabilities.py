"""What a system, or the factory that makes it, can do besides being stepped: asked here only.

An adapter declares a capability by having its methods (`conformance.systems.protocol` says which).
The harness asks one object for it, and gets the system as one that has it, or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.deviations.table import Deviating, Free
from conformance.systems.protocol import (
    Adapting,
    Choosing,
    Closeable,
    DiesMidway,
    Distant,
    InEntries,
    Interruptible,
    LeavesOut,
    Limited,
    Looping,
    Offers,
    Paced,
    Patient,
    Preparing,
    Repeatable,
    Restless,
    Selective,
    Shareable,
    Snapshots,
    StandsOn,
    Tolerant,
)
from conformance.tla import Value


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Of one system. Each is looked for when it is asked for: a declaration may be a property."""

    system: object

    @property
    def offers(self) -> Offers | None:
        """It tells which steps it would take by itself."""
        return self.system if isinstance(self.system, Offers) else None

    @property
    def patient(self) -> Patient | None:
        """It is driven in real time."""
        return self.system if isinstance(self.system, Patient) else None

    @property
    def choosing(self) -> Choosing | None:
        """It can be told how to choose."""
        return self.system if isinstance(self.system, Choosing) else None

    @property
    def snapshots(self) -> Snapshots | None:
        """It can go back."""
        return self.system if isinstance(self.system, Snapshots) else None

    @property
    def interruptible(self) -> Interruptible | None:
        """Its steps can be stopped where a real thread can be interrupted."""
        return self.system if isinstance(self.system, Interruptible) else None

    @property
    def looping(self) -> Looping | None:
        """Its threads' own loops can be driven."""
        return self.system if isinstance(self.system, Looping) else None

    @property
    def tolerant(self) -> Tolerant | None:
        """Its maker has declared departures of what it shows."""
        return self.system if isinstance(self.system, Tolerant) else None

    @property
    def repeats(self) -> bool:
        """Whether what agreed once need not be looked at again."""
        return isinstance(self.system, Repeatable) and self.system.repeatable

    @property
    def longest_call(self) -> float:
        """Seconds after which it ends a call itself; 0 if it does not."""
        return self.system.longest_call if isinstance(self.system, Limited) else 0.0

    @property
    def may_lack(self) -> frozenset[str]:
        """The variables that an observation need not show."""
        return frozenset(self.system.sometimes) if isinstance(self.system, LeavesOut) else _NONE

    @property
    def in_entries(self) -> frozenset[str]:
        """The variables of which a step that is seen in parts is judged entry by entry."""
        return self.system.in_entries if isinstance(self.system, InEntries) else _NONE

    @property
    def dies_midway(self) -> DiesMidway | None:
        """A process of it may die in the middle of a step."""
        return self.system if isinstance(self.system, DiesMidway) else None

    @property
    def innermost(self) -> object:
        """The system itself, or the one that it drives in a further way."""
        system = self.system
        while isinstance(system, Adapting):
            system = system.adapter
        return system

    def close(self) -> None:
        """Release what it holds, if it holds anything."""
        if isinstance(self.system, Closeable):
            self.system.close()


_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FactoryCapabilities:
    """Of a factory of systems."""

    factory: object

    @property
    def distant(self) -> Distant | None:
        """Its systems are driven in real time, by what they let in."""
        return self.factory if isinstance(self.factory, Distant) else None

    def goes_on(self, constants: Mapping[str, Value], state: Mapping[str, Value]) -> frozenset[str]:
        """By which actions its systems go on by themselves in a state; empty where they stay."""
        return (
            self.factory.goes_on(constants, state) if isinstance(self.factory, Restless) else _NONE
        )

    def shared_name(self, constants: Mapping[str, Value]) -> str:
        """Under which name another process drives it at the same time; empty if none may."""
        return self.factory.shared_name(constants) if isinstance(self.factory, Shareable) else ""

    @property
    def beyond_reach(self) -> Mapping[str, str]:
        """The actions that cannot be brought about at all, and why."""
        return self.factory.beyond_reach() if isinstance(self.factory, Distant) else {}

    @property
    def taken_elsewhere(self) -> Mapping[str, str]:
        """The actions that another specification's suites take, and which one."""
        return self.factory.taken_elsewhere() if isinstance(self.factory, StandsOn) else {}

    @property
    def paced(self) -> Paced | None:
        """It tells how fast its systems are."""
        return self.factory if isinstance(self.factory, Paced) else None

    @property
    def preparing(self) -> Preparing | None:
        """Its systems need what is fetched or compiled once on a machine."""
        return self.factory if isinstance(self.factory, Preparing) else None

    @property
    def selective(self) -> Selective | None:
        """It tells which models its systems can run."""
        return self.factory if isinstance(self.factory, Selective) else None

    @property
    def deviating(self) -> Deviating | None:
        """Its systems are known to depart from the specification, or may be."""
        return self.factory if isinstance(self.factory, Deviating) else None

    @property
    def free(self) -> Free | None:
        """The specification leaves its systems a choice."""
        return self.factory if isinstance(self.factory, Free) else None
