"""Finds a system's factory by its name: in a model, with a scheme, or as `module:function`."""

from __future__ import annotations

import importlib
import reprlib
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

from conformance.errors import UserError
from conformance.systems.protocol import (
    SystemFactory,
    SystemFailed,
    SystemUnderTest,
    raised_by_systems,
)
from conformance.tla import Value

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "acknowledgement": "conformance.systems.acknowledgement:create",
        "compaction": "conformance.systems.compaction:create",
        "consumer": "conformance.systems.consumer:create",
        "controller": "conformance.systems.controller:create",
        "data": "conformance.systems.data:create",
        "delayed": "conformance.systems.delayed:create",
        "directories": "conformance.systems.directories:create",
        "fetchers": "conformance.systems.fetchers:create",
        "group": "conformance.systems.group:create",
        "offsets": "conformance.systems.offsets:create",
        "positions": "conformance.systems.positions:create",
        "produce": "conformance.systems.produce:create",
        "reassignment": "conformance.systems.reassignment:create",
        "replication": "conformance.systems.replication:create",
        "runtime": "conformance.systems.runtime:create",
        "sessions": "conformance.systems.sessions:create",
        "persister": "conformance.systems.persister:create",
        "share": "conformance.systems.share:create",
        "storage": "conformance.systems.storage:create",
        "transaction": "conformance.systems.transaction:create",
    }
)
"""System names that the shipped models use, and the factories that they stand for."""

SPECIFICATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "acknowledgement": ("Acknowledgement",),
        "compaction": ("LogCompaction",),
        "consumer": ("ConsumerGroup",),
        "controller": ("ControllerRequests",),
        "data": ("DataPathAtPort",),
        "delayed": ("DelayedOperations",),
        "directories": ("DirectoryAssignment", "DirectoryMove"),
        "fetchers": ("FetcherThreads",),
        "group": ("GroupMembership",),
        "offsets": ("GroupOffsets", "MemberOffsets"),
        "positions": ("ConsumerCommits", "ConsumerPositions", "ConsumerTopics"),
        "produce": ("IdempotentProduce",),
        "reassignment": ("Reassignment",),
        "replication": ("Replication", "ReplicationFailingDisk"),
        "runtime": (
            "CoordinatorGroupTimers",
            "CoordinatorGroups",
            "CoordinatorStore",
            "CoordinatorTasks",
            "CoordinatorTransactions",
        ),
        "sessions": ("FetchSessionCache", "FetchSessions"),
        "persister": ("ShareCoordinator",),
        "share": ("SharePartition",),
        "storage": ("LogStorage",),
        "transaction": (
            "TransactionErrors",
            "TransactionExpiry",
            "TransactionProducerIds",
            "TransactionalLog",
            "TransactionalLogExpiry",
            "TransactionalLogRestarts",
            "Transactions",
        ),
    }
)
"""Which of the shipped specifications each of them is driven by."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """A kind of names: `exec:COMMAND`. `maker` gets what follows, and gives a factory."""

    maker: str
    """`module:function`, imported when a name of this kind is used."""
    form: str
    """How such a name is written."""
    separator: str = ":"


SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        "broker": Scheme("conformance.systems.wire:of_release", "broker-VERSION", separator="-"),
        "exec": Scheme("conformance.systems.external:of_command", "exec:COMMAND"),
        "kafka": Scheme("conformance.systems.kafka:of_version", "kafka-VERSION", separator="-"),
        "tcp": Scheme("conformance.systems.external:of_address", "tcp:HOST:PORT"),
        "wire": Scheme("conformance.systems.wire:of_address", "wire:HOST:PORT"),
    }
)
"""Names that say what to run. They win over a module of the same name."""


def factory_path(name: str, configured: Mapping[str, str] = BUILT_IN) -> str:
    """What a system's name stands for: `module:function`, or a name with a scheme.

    Both are their own names, and find the same factory in every process. UserError for a name
    that nothing is known of.
    """
    path = configured.get(name) or BUILT_IN.get(name) or name
    if ":" in path or _scheme(path) is not None:
        return path
    known = ", ".join(sorted({*configured, *BUILT_IN}))
    forms = ", ".join(f"`{scheme.form}`" for scheme in SCHEMES.values())
    raise UserError(
        f"No system is called {name!r}. Known: {known}. Name a factory as `module:function`, give "
        f"one of {forms}, or add it under [tool.kconform.systems] in pyproject.toml (or [systems] "
        "in kconform.toml)."
    )


def system_name(path: str) -> str:
    """What a user types for what `factory_path` gives: the reverse of it for a shipped system."""
    return next((name for name, built_in in BUILT_IN.items() if built_in == path), path)


def is_of_somebody_else(path: str) -> bool:
    """Whether the name says what to run: a build of Kafka, a command, an address."""
    return _scheme(path) is not None


def load_factory(path: str) -> SystemFactory:
    """The factory at `module:function`, or what the scheme of the name makes of the rest.

    For a user's system the current folder counts as importable. Raises UserError when the module
    or the function does not exist, the import fails, or the scheme's maker rejects the name.
    """
    result = _scheme(path)
    if result is None:
        return cast("SystemFactory", _load(path, own=path in BUILT_IN.values()))
    scheme, rest = result
    maker = cast("Callable[[str], SystemFactory]", _load(scheme.maker, own=True))
    return maker(rest)


def make_system(path: str, constants: Mapping[str, Value]) -> SystemUnderTest:
    """A system of the factory at `path`, for the values of the model's constants.

    UserError if a constant is missing, if a user's own factory raises, or if what it makes is no
    system; what a factory of ours raises otherwise is our bug.
    """
    factory = load_factory(path)
    try:
        system: object = factory(_Constants(path, constants))
        lacking = [] if hasattr(system, "variables") else ["variables"]
        lacking += [name for name in _METHODS if not callable(getattr(system, name, None))]
    except (UserError, SystemFailed):
        raise
    except raised_by_systems() as error:
        if path in BUILT_IN.values() or _scheme(path) is not None:
            raise
        raise UserError(
            f"The factory {path} raised {type(error).__name__}: {error}{_raised_at(error)}. Mend "
            "it: it is called with the model's constants, by name, and returns the adapter."
        ) from error
    if lacking:
        raise UserError(
            f"The factory {path} returned {reprlib.repr(system)}, which lacks "
            f"{', '.join(lacking)}: an adapter has variables, {', '.join(_METHODS)} "
            "(conformance.systems.protocol.SystemUnderTest)."
        )
    return cast("SystemUnderTest", system)


_METHODS = ("reset", "apply", "observe")


class _MissingConstant(UserError, KeyError):
    """Also a KeyError: so a factory may ask for a constant that not every model has."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Constants(Mapping[str, Value]):
    """A model's constants for a factory, which is told in words if there is none of a name."""

    def __init__(self, path: str, constants: Mapping[str, Value]) -> None:
        self._path, self._constants = path, constants

    def __getitem__(self, name: str) -> Value:
        try:
            return self._constants[name]
        except KeyError:
            raise _MissingConstant(
                f"The system {self._path} needs a constant {name}, which the model has not: its "
                f"constants are {', '.join(self._constants) or 'none'}. Name a model of the "
                "specification that the system is an adapter of."
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._constants)

    def __len__(self) -> int:
        return len(self._constants)


def _raised_at(error: BaseException) -> str:
    """The last line of the user's code that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _scheme(name: str) -> tuple[Scheme, str] | None:
    """The scheme of a name and what follows it; the scheme's name alone where that is a name, or
    has something added to it (`kafka+client`)."""
    for word, scheme in SCHEMES.items():
        if name.startswith(word + scheme.separator):
            return scheme, name.removeprefix(word + scheme.separator)
        if scheme.separator != ":" and name.partition("+")[0] == word:
            return scheme, name.removeprefix(word)
    return None


def _load(path: str, *, own: bool) -> Callable[..., object]:
    """The function at `module:function`; a failing import of our `own` is our bug."""
    module_name, _, function = path.partition(":")
    if not module_name or not function:
        raise UserError(f"{path!r} is no factory: write it as `package.module:function`.")
    if function.isdecimal():
        raise UserError(
            f"{path!r} looks like an address. Write `wire:{path}` for a broker, or `tcp:{path}` "
            "for an adapter that listens there."
        )
    if not own:
        _import_from_here()
    try:
        module = importlib.import_module(module_name)
    except raised_by_systems() as error:
        if own:
            raise
        raise UserError(_cannot_import(path, module_name, error)) from error
    result = getattr(module, function, None)
    if not callable(result):
        raise UserError(
            f"The module {module_name!r} has no function {function!r} to make a system."
        )
    return cast("Callable[..., object]", result)


def _import_from_here() -> None:
    """Let a user's modules be found; a worker of Spark may stand in a folder that is gone."""
    try:
        here = str(Path.cwd())
    except FileNotFoundError:
        return
    if here not in sys.path:
        sys.path.insert(0, here)


def _cannot_import(path: str, module_name: str, error: BaseException) -> str:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None and (module_name + ".").startswith(missing + "."):
        return (
            f"The system {path!r} cannot be loaded: there is no module {module_name!r}. Start "
            "kconform in the folder that holds it, or install it into this environment."
        )
    return (
        f"The system {path!r} cannot be loaded: the import of {module_name!r} fails with "
        f"{type(error).__name__}: {error}{_raised_at(error)}. Mend that, or install what is "
        "missing into this environment."
    )
