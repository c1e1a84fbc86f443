"""What the files of a history declare of themselves: a first line that says how the client was
configured. Files are judged together with those that keep at least as much."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from conformance.errors import DataError
from conformance.history.rules import DeclaredConfiguration
from conformance.printable import path_text

CONFIGURE = "configure"
"""The operation of such a line; `configured` in it has the fields of `DeclaredConfiguration`."""
STRICT = DeclaredConfiguration()
_ALLOWED: Mapping[str, tuple[str | bool | int, ...]] = {
    "acks": ("all", "1"),
    "isolation": ("read_committed", "read_uncommitted"),
    "idempotence": (True, False),
    "unclean_election": (False, True),
    "deletion": (False, True),
    "transaction_version": (2, 1),
}
"""The strict value of each, and the weak one."""
_FIRST = 1 << 16


Declared = Mapping[str, str | bool | int]
"""By field of `DeclaredConfiguration`."""


@dataclass(frozen=True, slots=True)
class DeclaredHistory:
    """Files that are judged under one configuration."""

    name: str
    configuration: DeclaredConfiguration
    files: tuple[Path, ...]


def declared_histories(paths: Sequence[Path], given: Declared) -> list[DeclaredHistory]:
    """A history for each configuration that files declare; `given` replaces what they declare.

    Each has the files that keep its configuration or a stricter one: what is forbidden for them is
    forbidden under it. But readers of different isolation do not see the same records, so they are
    judged apart. A file without a declaration is of the strict configuration. Raises DataError for
    a declaration that is wrong.
    """
    declared = {path: {**declaration(path), **given} for path in paths}
    isolations = {str(own["isolation"]) for own in declared.values() if "isolation" in own}
    histories = {}
    for isolation in sorted(isolations or {STRICT.isolation}):
        files = {p: own for p, own in declared.items() if _reads_so(own, isolation)}
        for own in files.values():
            values = {**asdict(STRICT), **own, "isolation": isolation}
            kept = tuple(path for path, other in files.items() if _keeps(other, values))
            configuration = DeclaredConfiguration(**values)
            histories[configuration] = DeclaredHistory(_name(values), configuration, kept)
    return sorted(histories.values(), key=lambda history: (len(history.name), history.name))


def declaration(path: Path) -> dict[str, str | bool | int]:
    """What a file's first line declares: what it leaves out does not matter of its client.

    Everything, and strictly, if there is no such line. Raises DataError.
    """
    try:
        with path.open("rb") as file:
            line = json.loads(file.readline(_FIRST))
    except (OSError, ValueError, RecursionError):
        return asdict(STRICT)  # whoever reads the file says what is wrong
    if not isinstance(line, dict) or line.get("f") != CONFIGURE:
        return asdict(STRICT)
    configured = line.get("configured")
    values: dict[str, str | bool | int] = {}
    for name, value in (configured if isinstance(configured, dict) else {}).items():
        allowed = _ALLOWED.get(name, ())
        if not any(type(value) is type(other) and value == other for other in allowed):
            can = "; ".join(f"{known}: {_or(others)}" for known, others in _ALLOWED.items())
            raise DataError(
                f"{path_text(path)} declares {name} = {json.dumps(value)} in its first line. "
                f"It can declare {can}."
            )
        values[name] = value
    return values


def _or(values: Sequence[str | bool | int]) -> str:
    return " or ".join(map(json.dumps, values))


def _reads_so(own: Declared, isolation: str) -> bool:
    return own.get("isolation", isolation) == isolation


def _keeps(own: Declared, promised: Declared) -> bool:
    """Whether a client so configured keeps all that is promised."""
    strict = asdict(STRICT)
    return all(value in (strict[name], promised[name]) for name, value in own.items())


def _name(values: Declared) -> str:
    weak = [(name, value) for name, value in values.items() if value != getattr(STRICT, name)]
    return "+".join(f"{n}={v}".replace("_", "-").lower() for n, v in weak) or "strict"
