"""Reads the user's settings: [tool.kconform] in pyproject.toml, or kconform.toml."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec

from conformance import toml
from conformance.errors import UserError
from conformance.inputs import local_path, read_text

PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class TierSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one tier runs; an absent value is the default of that tier."""

    traces: PositiveInt | None = None
    trace_length: PositiveInt | None = None
    examples: PositiveInt | None = None
    interruptions: PositiveInt | None = None
    models: tuple[str, ...] | None = None


class Thresholds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Below these shares of coverage the gate does not pass."""

    states: Share = 0.0
    transitions: Share = 0.0
    actions: Share = 1.0


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of [tool.kconform]; every command-line option overrides its setting."""

    seed: Annotated[int, msgspec.Meta(ge=0)] = 1
    tier: str = "ci"
    output: str = "kconform-out"
    jobs: PositiveInt = 2
    canary: bool = True
    tiers: dict[str, TierSettings] = msgspec.field(default_factory=dict)
    thresholds: Thresholds = Thresholds()
    systems: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def divergences(self) -> Path:
        """The folder that gets the ITF files of divergences."""
        return Path(self.output) / "divergences"

    @property
    def counterexamples(self) -> Path:
        """The folder that gets the ITF files of models' counterexamples."""
        return Path(self.output) / "counterexamples"


@dataclass(frozen=True, slots=True)
class Tier:
    """The settled numbers of one tier."""

    name: str
    traces: int
    trace_length: int
    examples: int
    interruptions: int
    """States in which each pair of actions is interleaved."""
    models: tuple[str, ...] = field(default=())
    """Names of the models to run; empty means all models of the tier."""


DEFAULT_TIERS = {
    "ci": Tier("ci", traces=10_000, trace_length=20, examples=100, interruptions=3),
    "nightly": Tier(
        "nightly", traces=1_000_000, trace_length=20, examples=10_000, interruptions=100
    ),
}


def settled_tier(settings: Settings, name: str) -> Tier:
    """The tier called `name`, the user's values over the defaults. Raises UserError."""
    base = DEFAULT_TIERS.get(name)
    if base is None:
        raise UserError(f"There is no tier {name!r}; the tiers are {', '.join(DEFAULT_TIERS)}.")
    own = settings.tiers.get(name, TierSettings())
    return Tier(
        name,
        traces=own.traces or base.traces,
        trace_length=own.trace_length or base.trace_length,
        examples=own.examples or base.examples,
        interruptions=own.interruptions or base.interruptions,
        models=own.models or base.models,
    )


def load_settings(folder: Path) -> Settings:
    """The settings that hold in `folder`: kconform.toml wins over pyproject.toml, none is fine.

    Raises UserError for unreadable TOML, an unknown key or a value of the wrong type.
    """
    own = folder / "kconform.toml"
    if os.path.lexists(own):
        return _convert(_toml(own), own, "")
    project = folder / "pyproject.toml"
    if os.path.lexists(project):
        tool = _toml(project).get("tool")
        section = tool.get("kconform") if isinstance(tool, dict) else None
        if section is not None:
            return _convert(section, project, "[tool.kconform] of ")
    return Settings()


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is not valid TOML: {error}. Mend that line and start again."
        ) from None


def _convert(raw: object, path: Path, where: str) -> Settings:
    try:
        settings = toml.convert(raw, Settings)
    except msgspec.ValidationError as error:
        raise UserError(
            f"{where}{path} has a setting that kconform cannot use: {error}. "
            "docs/configuration.md lists the settings and their types."
        ) from None
    return msgspec.structs.replace(settings, output=str(local_path(settings.output)))
