"""What a saved divergence of a group says of its members, as tests and scripts write it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.systems.shared.departing import Unsayable
from conformance.tla import Value

_EACH = re.compile(r"\[\w+ \\in Members \|-> (\"\w+\")\]")
_BY_NAME = re.compile(r"(\w+) \|-> \"(\w+)\"")
_NO_INSTANCE = "none"
JOINS_ONCE, JOINS_TWICE = 3, 9
"""Versions of JoinGroup: before and after MEMBER_ID_REQUIRED (KIP-394)."""


def members(constants: Mapping[str, str]) -> tuple[str, ...]:
    """The members of a model, by name. Unsayable if the file does not name them."""
    names = tuple(re.findall(r'"(\w+)"', constants.get("Members", "")))
    if not names:
        raise Unsayable("it does not say which members the group may have")
    return names


def instances(constants: Mapping[str, str]) -> Mapping[str, str]:
    """The instance id of each static member. Unsayable if the file's words are of another form."""
    text = constants.get("InstanceOf", "")
    if match := _EACH.fullmatch(text):
        of_members = dict.fromkeys(members(constants), match[1].strip('"'))
    else:
        of_members = dict(_BY_NAME.findall(text))
    if not of_members:
        raise Unsayable("it does not say which members are static")
    return {member: name for member, name in of_members.items() if name != _NO_INSTANCE}


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
    match = re.fullmatch(r"0\.\.(\d+)", constants.get("Partitions", ""))
    if match is None:
        raise Unsayable("it does not say how many partitions the topic has")
    return str(int(match[1]) + 1)
