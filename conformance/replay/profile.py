"""How hard an exploration looks: the profiles, as Hypothesis users know them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Profile(StrEnum):
    """How long to search: `dev` seconds, `ci` a minute and derandomised, `nightly` long."""

    DEV = "dev"
    CI = "ci"
    NIGHTLY = "nightly"


@dataclass(frozen=True, slots=True)
class Effort:
    """The meaning of a profile. `search`: states to search for an action that was not taken."""

    examples: int
    steps: int
    derandomize: bool
    search: int = 100_000


EFFORTS = {
    Profile.DEV: Effort(25, 30, derandomize=False, search=2_000),
    Profile.CI: Effort(150, 40, derandomize=True),
    Profile.NIGHTLY: Effort(10_000, 60, derandomize=False, search=500_000),
}
