"""What a saved divergence of a group says of its members, as tests and scripts write it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.systems.shared.departing import Unsayable
from conformance.tla import Value

_EACH = re.compile(r"\[(\w+) \\in Members \|-> (?:IF \1 = \"(\w+)\" THEN (.+) ELSE )?(.+)\]")
_BY_NAME = re.compile(r"(\w+) \|-> \"(\w+)\"")
_NO_INSTANCE = "none"
JOINS_ONCE, JOINS_TWICE = 3, 9
"""Versions of JoinGroup: before and after MEMBER_ID_REQUIRED (KIP-394)."""


def members(constants: Mapping[str, str]) -> tuple[str, ...]:
    """The members of a model, by name. Unsayable if the file does not name them."""
    names = tuple(names_in(constants.get("Members", "")))
    if not names:
        raise Unsayable("it does not say which members the group may have")
    return names


def instances(constants: Mapping[str, str]) -> Mapping[str, str]:
    """The instance id of each static member. Unsayable if the file's words are of another form."""
    ids = {name: id.strip('"') for name, id in by_member(constants, "InstanceOf").items()}
    return {name: id for name, id in ids.items() if id != _NO_INSTANCE}


def by_member(constants: Mapping[str, str], constant: str) -> Mapping[str, str]:
    """What a constant says of each member, by name. Unsayable if its words are of another form."""
    text = constants.get(constant, "")
    if match := _EACH.fullmatch(text):
        _, member, of_member, of_others = match.groups()
        return {name: of_member if name == member else of_others for name in members(constants)}
    of_members = dict(_BY_NAME.findall(text))
    if not of_members:
        raise Unsayable(f"it does not say what {constant} of each member is")
    return of_members


def is_of_assignors_or_interval(constants: Mapping[str, str]) -> bool:
    """Whether the members of a group of KIP-848 name several assignors, or its target may lag."""
    return len(names_in(constants.get("Assignors", ""))) > 1 or has_interval(constants)


def has_interval(constants: Mapping[str, str]) -> bool:
    """Whether the target of a group of KIP-848 may lag behind it (KAFKA-20291)."""
    return constants.get("AssignmentInterval") == "TRUE"


def names_in(value: str) -> list[str]:
    """The strings that a constant names, each once."""
    return [*dict.fromkeys(re.findall(r'"(\w+)"', value))]


def prolongations(constants: Mapping[str, str]) -> int:
    """How often the initial delay is prolonged. Unsayable if the file does not say it."""
    match = re.fullmatch(r"\d+", constants.get("InitialDelays", ""))
    if match is None:
        raise Unsayable("it does not say how often the initial delay is prolonged")
    return int(match[0])


def sorted_numbers(numbers: Value) -> list[int]:
    """Partitions in their order."""
    assert isinstance(numbers, frozenset)
    return sorted(number for number in numbers if isinstance(number, int))


def sorted_names(names: Value) -> list[str]:
    """A set of names, in order."""
    assert isinstance(names, frozenset)
    return sorted(map(str, names))


def text(name: object) -> str:
    """A string of Java."""
    return f'"{name}"'


def call(method: str, *arguments: object) -> str:
    """A call of a method."""
    return f"{method}({', '.join(map(str, arguments))})"


def partitions_of(constants: Mapping[str, str]) -> str:
    """How many partitions the topic has. Unsayable if the file does not say it."""
    return str(last_partition(constants, "Partitions") + 1)


def last_partition(constants: Mapping[str, str], constant: str) -> int:
    """Of the numbers from 0 on that a constant is about. Unsayable if the file does not say it."""
    match = re.match(r"(?:\[\w+ \\in )?0\.\.(\d+)\b", constants.get(constant, ""))
    if match is None:
        raise Unsayable("it does not say how many partitions the topic has")
    return int(match[1])
