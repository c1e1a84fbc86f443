"""How often garbage is looked for: seldom in our own processes, as before in those of others."""

import gc
import subprocess
import sys
import textwrap

import pytest

from conformance.garbage import collecting_seldom

PYTHON_S_OWN = 700


def told_by(program: str) -> list[str]:
    """What a program of its own prints."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_a_borrowed_process_gets_its_own_thresholds_back() -> None:
    found, its_own = gc.get_threshold(), (PYTHON_S_OWN + 1, 11, 12)
    gc.set_threshold(*its_own)

    def work() -> None:
        with collecting_seldom():
            assert gc.get_threshold()[0] > its_own[0]
            raise ZeroDivisionError

    try:
        with pytest.raises(ZeroDivisionError):
            work()
        assert gc.get_threshold() == its_own
    finally:
        gc.set_threshold(*found)


def test_a_program_that_imports_the_package_keeps_its_thresholds() -> None:
    imports = "import gc, conformance, conformance.replay.suite, conformance.cli.main\n"

    assert told_by(imports + "print(gc.get_threshold()[0])") == [str(PYTHON_S_OWN)]


def test_the_command_and_its_workers_look_seldom() -> None:
    program = """
        import gc, os
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context
        from conformance.replay.parallel import _prepare
        spawning = get_context("spawn")
        given = spawning.Event(), spawning.Value("i", 0), os.getpid()
        with ProcessPoolExecutor(1, spawning, _prepare, given) as pool:
            print(pool.submit(gc.get_threshold).result()[0])
        import sys
        from conformance.cli.entry import run
        sys.argv = ["kconform", "--version"]
        try:
            run()
        except SystemExit:
            print(gc.get_threshold()[0])
    """

    worker, *_, command = told_by(program)

    assert int(worker) > PYTHON_S_OWN
    assert worker == command
