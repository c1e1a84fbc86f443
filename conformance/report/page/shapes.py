"""The states of a model as a picture small enough to grasp."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.events import JsonValue
from conformance.report.collect import Report

_WIDTH, _HEIGHT = 240.0, 44.0


@dataclass(frozen=True, slots=True)
class Situation:
    """How many of the states that were looked at are in a situation."""

    name: str
    percent: float


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's states by distance, as the points of a curve, and by situation."""

    model: str
    states: int
    deepest: int
    points: str
    width: float
    height: float
    sampled: int
    situations: tuple[Situation, ...]
    left: int
    """Transitions that no test has driven."""
    by_action: tuple[tuple[str, int], ...]
    examples: tuple[str, ...]


def shapes(report: Report) -> tuple[Shape, ...]:
    """One for each model that was replayed."""
    return tuple(_shapes(report))


def _shapes(report: Report) -> Iterator[Shape]:
    for stage in report.stages:
        document = stage.figures.get("shape")
        if stage.stage != "replay" or not isinstance(document, dict):
            continue
        depths = [n for n in _list(document, "depths") if isinstance(n, int)]
        left = stage.figures.get("unvisited")
        gaps = left if isinstance(left, dict) else {}
        by_action = gaps.get("actions")
        sampled = _int(document, "sampled")
        yield Shape(
            stage.subject,
            _int(document, "states"),
            len(depths) - 1,
            _points(depths),
            _WIDTH,
            _HEIGHT,
            sampled,
            tuple(_situations(document, sampled)),
            _int(gaps, "transitions"),
            tuple(_counts(by_action)),
            tuple(str(value) for value in _list(gaps, "examples")),
        )


def _points(depths: list[int]) -> str:
    """The curve's points; as SVG's polygon wants them, closed along the ground."""
    most, step = max(depths, default=1), _WIDTH / max(1, len(depths) - 1)
    tops = [
        f"{number * step:.1f},{_HEIGHT - 2 - (_HEIGHT - 4) * count / most:.1f}"
        for number, count in enumerate(depths)
    ]
    return " ".join([f"0,{_HEIGHT}", *tops, f"{_WIDTH},{_HEIGHT}"])


def _situations(document: dict[str, JsonValue], sampled: int) -> Iterator[Situation]:
    for name, count in _counts(document.get("situations")):
        yield Situation(name, round(100 * count / max(1, sampled), 1))


def _counts(value: JsonValue) -> Iterator[tuple[str, int]]:
    for name, count in value.items() if isinstance(value, dict) else ():
        if isinstance(count, int):
            yield name, count


def _int(document: dict[str, JsonValue], key: str) -> int:
    value = document.get(key)
    return value if isinstance(value, int) else 0


def _list(document: dict[str, JsonValue], key: str) -> list[JsonValue]:
    value = document.get(key)
    return value if isinstance(value, list) else []
