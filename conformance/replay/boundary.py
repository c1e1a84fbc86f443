"""Where an adapter's answers enter the harness: each is checked once, whatever adapter gave it.

An adapter declares in `variables` what it shows, and in `sometimes` what of it an observation may
lack. All else must be there in every observation, as a TLA+ value: a variable that is not shown is
not compared, and a verdict must not say that it was.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import cast

from conformance.errors import UserError
from conformance.systems.capabilities import Capabilities
from conformance.systems.protocol import Observation, SystemUnderTest, raised_by_systems
from conformance.tla import Action, ModelValue, Value, objection

_REMEMBERED = 500_000
_ATOMS = frozenset({bool, int, ModelValue})


class Boundary:
    """What one system declares, and the check of what it answers.

    `variables` are the specification's. UserError if the declarations do not fit them.
    """

    __slots__ = ("_checked", "_declared", "_system", "always", "sometimes")

    def __init__(self, system: SystemUnderTest, variables: Sequence[str]) -> None:
        self._system = system
        self.always, self.sometimes = _declarations(system, variables)
        """Names of variables: shown in every observation, and in some."""
        self._declared = frozenset((*self.always, *self.sometimes))
        self._checked: dict[int, object] = {}

    def admit(self, observed: object) -> Mapping[str, Value]:
        """The observation, if it shows what was declared. UserError that says what it lacks.

        What was admitted once is found again by identity, which is kept alive here: an
        `Observation`, and every value that has parts.
        """
        checked = self._checked
        if type(observed) is Observation and checked.get(id(observed)) is observed:
            return observed
        if not isinstance(observed, Mapping):
            raise self._error(
                f"returns {reprlib.repr(observed)}, which is no mapping of variables. {_FORM}"
            )
        if observed.keys() != self._declared:
            self._check_names(observed)
        for name, value in observed.items():
            kind = type(value)
            if kind in _ATOMS or (kind is str and cast("str", value).isascii()):
                continue
            # None is asked for first: an entry that is not there is None, too.
            if value is None or checked.get(id(value)) is not value:
                self._check_value(name, value)
        if type(observed) is Observation:
            self._remember(observed)
        return cast("Mapping[str, Value]", observed)

    def admit_offers(self, offered: object) -> frozenset[Action]:
        """The steps that the system would take, if they are actions that it declares.

        UserError that says what is wrong with them.
        """
        offers = Capabilities(self._system).offers
        assert offers is not None, "only such a system is asked"
        declared = offers.offerable
        if not isinstance(offered, frozenset | set):
            raise self._error(
                f"returns {reprlib.repr(offered)}. Return a frozenset of actions.", "offers"
            )
        for action in offered:
            if not isinstance(action, Action):
                raise self._error(
                    f"offers {reprlib.repr(action)}. Offer conformance.tla.Action(name, "
                    "arguments).",
                    "offers",
                )
            if action.name not in declared:
                raise self._error(
                    f"offers {action.name}, which `offerable` does not name. Add it there.",
                    "offers",
                )
            if why := objection(action.args, f"the arguments of {action.name}"):
                raise self._error(f"offers a step of which {why}", "offers")
        return frozenset(offered)

    def _check_names(self, observed: Mapping[object, object]) -> None:
        unknown = [str(name) for name in observed if name not in self._declared]
        if unknown:
            raise self._error(
                f"shows {_list(unknown)}, which `variables` does not name. Add it there, or leave "
                "it out."
            )
        missing = [name for name in self.always if name not in observed]
        if missing:
            raise self._error(f"does not show {_list(missing)}. {_FORM}")

    def _check_value(self, name: str, value: object) -> None:
        if value is None:
            if name in self.sometimes:
                return
            raise self._error(f"shows None in `{name}`, which is no TLA+ value. {_FORM}")
        if why := objection(value, name):
            raise self._error(f"shows no TLA+ value: {why}")
        self._remember(value)

    def _remember(self, value: object) -> None:
        if len(self._checked) >= _REMEMBERED:
            self._checked.clear()
        self._checked[id(value)] = value

    def _error(self, what: str, method: str = "observe") -> UserError:
        return UserError(f"The adapter's {method} ({defined_at(self._system, method)}) {what}")


_FORM = (
    "Return the value of every variable that `variables` names, each time; a variable that cannot "
    "be seen in some states belongs into `sometimes`, too."
)


def _declarations(
    system: SystemUnderTest, variables: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    where = defined_at(system, "variables")
    try:
        declared: object = system.variables
        lacking = Capabilities(system).may_lack
    except raised_by_systems() as error:
        raise UserError(
            f"The adapter's `variables` ({where}) or `sometimes` raised {type(error).__name__}: "
            f"{error}. They name variables, in a tuple, before anything runs."
        ) from error
    if isinstance(declared, str) or not isinstance(declared, Sequence) or not declared:
        what = "is no tuple" if declared else "names no variable, so nothing would be compared"
        raise UserError(
            f"The adapter's `variables` ({where}) is {reprlib.repr(declared)}: it {what}. Name "
            "there, in a tuple, the variables of the specification that `observe` shows: "
            f"{', '.join(variables)}."
        )
    unknown = [str(name) for name in declared if name not in variables]
    if unknown:
        raise UserError(
            f"The system observes {', '.join(unknown)}, which the spec does not declare: its "
            f"variables are {', '.join(variables)}. Correct `variables` of the adapter ({where})."
        )
    undeclared = sorted(lacking - {*declared})
    if undeclared:
        raise UserError(
            f"The adapter's `sometimes` names {undeclared[0]}, which `variables` ({where}) does "
            "not name. Declare in `variables` all that is ever observed."
        )
    names = tuple(dict.fromkeys(declared))
    return (
        tuple(name for name in names if name not in lacking),
        tuple(name for name in names if name in lacking),
    )


def defined_at(system: object, member: str) -> str:
    """Where the adapter defines it, as `file:line` seen from the current folder."""
    system = Capabilities(system).innermost
    result: object = getattr(type(system), member, None)
    function = result.fget if isinstance(result, property) else result
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return f"{type(system).__module__}.{type(system).__qualname__}"
    seen = os.path.relpath(code.co_filename)
    return f"{code.co_filename if seen.startswith('..') else seen}:{code.co_firstlineno}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
