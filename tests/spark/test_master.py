"""A master of Spark's own is taken for one before Spark is started."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyspark
import pytest

from conformance.spark.session import _check_reachable
from conformance.tla import find_tools

_OPENED = "java.lang java.nio sun.nio.ch java.util java.net java.lang.invoke java.util.concurrent"


@pytest.fixture(scope="module")
def master() -> Iterator[str]:
    """The URL of a master on loopback, in a JVM of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = [str(find_tools().java), "-Xmx512m", "-cp", str(jars)]
    command += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()]
    command += ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--webui-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            assert process.poll() is None
            time.sleep(0.2)
        yield f"spark://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_a_master_is_one_alone_and_among_others(master: str) -> None:
    _check_reachable(master)
    _check_reachable(f"spark://127.0.0.1:1,{master.removeprefix('spark://')}")
