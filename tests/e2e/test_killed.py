"""What kconform has started ends with it, also if kconform is killed.

Each case starts a process in the way of one part of kconform and waits. It prints the process's
number once kconform has the process: a kill between a start and `end_with_us` leaves it. The
test kills it (SIGKILL), so that nothing of it can clean up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

SLEEP = ["sleep", "600"]
TELLS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
STARTED_BY = {
    "client": f"""
import asyncio
from pathlib import Path
from conformance.client.process import ClientProcess
async def run():
    client = await ClientProcess.start({SLEEP}, {{}}, Path(os.devnull))
    print(client._process.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(run())
""",
    "client behind a script": """
import asyncio, tempfile
from pathlib import Path
from conformance.client.process import ClientProcess
async def run():
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        await ClientProcess.start(["sh", "-c", "sleep 600 & echo $!; wait"], {}, output)
        while not output.read_text().strip():
            await asyncio.sleep(0.01)
        print(output.read_text().strip(), flush=True)
    await asyncio.sleep(600)
asyncio.run(run())
""",
    "adapter": f"""
from conformance.systems.external.transport import _start
print(_start("{" ".join(SLEEP)}").pid, flush=True)
time.sleep(600)
""",
    "tlc": f"""
from pathlib import Path
from conformance.modelcheck.tlc import Processes
print(Processes().start({SLEEP}, Path("/")).pid, flush=True)
time.sleep(600)
""",
    "broker": f"""
import tempfile
from pathlib import Path
from conformance.kafka.cluster import KafkaNode
broker = KafkaNode(1, Path(tempfile.gettempdir()), {SLEEP})
broker.start()
print(broker._process.pid, flush=True)
time.sleep(600)
""",
    "client of a recorded cluster": f"""
from pathlib import Path
from conformance.kafka.recording import RecordedClientProcess
client = RecordedClientProcess({SLEEP}, Path(os.devnull))
client.start()
print(client._process.pid, flush=True)
time.sleep(600)
""",
    "command of a cluster": f"""
import shlex, sys
from conformance.cli.cluster import _verdict_of
told, tell = os.pipe()
os.dup2(tell, 2)
def meanwhile(runs):
    print(os.read(told, 20).decode(), flush=True)
    time.sleep(600)
_verdict_of(shlex.join([sys.executable, "-c", {TELLS!r}]), "", meanwhile)
""",
    "worker of the bug bench": f"""
import sys
from pathlib import Path
from conformance.bugs.bench import running
with running([sys.executable, "-c", {TELLS!r}], None, Path("/")) as process:
    print(process.stdout.readline().decode(), flush=True)
    time.sleep(600)
""",
    "fork of the bug bench": """
from pathlib import Path
from conformance.bugs.forks import ForkTask, forks
def work():
    os.write(told, f"{os.getpid()}\\n".encode())
    time.sleep(600)
told = os.dup(1)
with forks("impl", 1) as children:
    list(children.run(iter([ForkTask("it", work, lambda _: None, 60.0)])))
""",
    "process of the gate": """
from conformance.replay.parallel import Crew
with Crew(1) as crew:
    print(crew._pool.submit(os.getpid).result(), flush=True)
    time.sleep(600)
""",
    "forked worker": """
from conformance.workers.processes import ForkedProcesses
told = os.dup(1)
def work(item):
    os.write(told, f"{os.getpid()}\\n".encode())
    time.sleep(600)
list(ForkedProcesses(2).map(work, [1]))
""",
}


def is_there(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for has ended too."""
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(shown.stdout.strip()) and not shown.stdout.startswith("Z")


@pytest.mark.parametrize("part", STARTED_BY)
def test_a_child_ends_with_kconform_that_is_killed(part: str) -> None:
    code = "import os, time\n" + STARTED_BY[part]
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            assert is_there(child)
            parent.send_signal(signal.SIGKILL)
            parent.wait()
            until = time.monotonic() + 60.0
            while is_there(child) and time.monotonic() < until:
                time.sleep(0.1)
            assert not is_there(child), f"{part} outlives kconform"
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            parent.kill()
