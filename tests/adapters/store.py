"""The tutorial's store as an adapter in another process, and all that an adapter can do wrong.

Without an argument it is right. `FAULT` or `FAULT@N` does something wrong when it applies its
N-th action (the first, without N). It uses nothing of kconform, as nobody's adapter would.
"""

from __future__ import annotations

import json
import os
import socketserver
import sys
import time
from pathlib import Path
from typing import Any

VARIABLES = ["value", "version", "answer"]


class Refused(Exception):
    """The store cannot do it."""


class Shared(dict[str, tuple[str, int]]):
    """Entries that every process sees: in files of the folder that the test says."""

    def __init__(self, keys: list[str]) -> None:
        super().__init__()
        self.folder = Path(os.environ["KCONFORM_TEST_SHARED"])
        for key in keys:
            self[key] = ("absent", 0)

    def __setitem__(self, key: str, entry: tuple[str, int]) -> None:
        (self.folder / key).write_text(json.dumps(entry))

    def get(self, key: str, default: Any = None) -> Any:
        return json.loads((self.folder / key).read_text())


class Store:
    def __init__(self, keys: list[str], fault: str, number: int) -> None:
        self.keys, self.fault, self.when = keys, fault, number
        self.applied = 0
        self.reset({})

    def reset(self, _initial: dict[str, Any]) -> None:
        self.entries: dict[str, tuple[str, int]] = {}
        self.answer = "none"
        if self.fault == "shares":
            self.entries = Shared(self.keys)

    def apply(self, action: str, arguments: list[Any]) -> None:
        self.applied += 1
        self.misbehave()
        self.answer = "none"
        key = arguments[0]
        version = self.entries.get(key, ("absent", 0))[1]
        if action == "Put":
            self.entries[key] = (arguments[1], version + 1)
        elif action == "Remove":
            self.entries[key] = (
                "absent",
                version + (self.fault not in ("forgets", "departs-and-forgets")),
            )
        elif version == arguments[1]:
            self.answer, self.entries[key] = "written", (arguments[2], version + 1)
        else:
            self.answer = "conflict"

    def misbehave(self) -> None:
        if self.applied < self.when:
            return
        if self.fault == "dies":
            print("about to die", file=sys.stderr)
            os._exit(7)
        if self.fault == "hangs":
            print("about to hang", file=sys.stderr)
            time.sleep(600)
        if self.fault == "raises":
            raise ZeroDivisionError("division by zero in the store")
        if self.fault == "refuses":
            raise Refused("the store is closed")
        if self.fault == "rubbish":
            send("log: applying")
        if self.fault == "floods":
            sys.stderr.write("noise\n" * 200_000)

    def observe(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "value": {key: self.entries.get(key, ("absent", 0))[0] for key in self.keys},
            "version": {key: self.entries.get(key, ("absent", 0))[1] for key in self.keys},
            "answer": self.answer,
        }
        if self.fault.startswith("departs") and self.answer == "none":
            shown["answer"] = "nothing"
        if self.fault == "fickle":
            self.entries["a"] = ("x", self.entries.get("a", ("", 0))[1] + 1)
        if self.applied >= self.when:
            if self.fault == "leaves-out":
                del shown["version"]
            if self.fault == "invents":
                shown["colour"] = "red"
            if self.fault == "half":
                shown["answer"] = 0.5
        return shown


class Adapter:
    """One conversation."""

    def __init__(self, fault: str, number: int) -> None:
        self.fault, self.number = fault, number
        self.store: Store | None = None

    def line(self, text: str) -> str:
        try:
            asked = json.loads(text)
        except ValueError as error:
            return json.dumps({"id": 0, "answers": [{"protocol_error": f"no JSON: {error}"}]})
        answers: list[dict[str, Any]] = []
        for command in asked["commands"]:
            answers.append(self.answer(command))
            if "ok" not in answers[-1]:
                break
        return json.dumps({"id": asked["id"], "answers": answers})

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"ok": self.do(command)}
        except Refused as error:
            return {"refused": str(error)}
        except LookupError as error:
            return {"protocol_error": f"{command.get('command')} needs {error}"}
        except Exception as error:  # noqa: BLE001
            return {"exception": f"{type(error).__name__}: {error}\n  in the store"}

    def do(self, command: dict[str, Any]) -> object:
        name = command["command"]
        if name == "hello":
            return self.hello(command["constants"])
        if self.store is None:
            raise LookupError("a hello before it")
        if name == "reset":
            return None if self.fault == "keeps" else self.store.reset(command["initial"])
        if name == "apply":
            if self.fault == "accepts" and command["action"] == "NoSuchAction":
                return None
            return self.store.apply(command["action"], command["arguments"])
        if name == "observe":
            return self.store.observe()
        if name == "snapshot":
            return [dict(self.store.entries), self.store.answer]
        if name == "restore":
            entries, self.store.answer = command["snapshot"]
            if self.fault == "forgetful":
                return None
            self.store.entries = {key: tuple(entry) for key, entry in entries.items()}
            return None
        if self.fault == "obeys":
            return None
        raise LookupError("a name that is known")

    def hello(self, constants: dict[str, Any]) -> dict[str, Any]:
        if not constants.get("Keys", {}).get("#set"):
            raise Refused("it needs the constant Keys, and it is not empty")
        self.store = Store(constants["Keys"]["#set"], self.fault, self.number)
        hello: dict[str, Any] = {
            "protocol": 2 if self.fault == "newer" else 1,
            "name": "store in Python",
            "specification": "Store",
            "variables": [*VARIABLES, *(["colour"] if self.fault == "lies" else [])],
            "capabilities": ["snapshot"],
            "call_seconds": 1.0 if self.fault == "hangs" else 10.0,
        }
        if self.fault == "hides":
            hello["sometimes"] = ["version"]
            self.store.fault = "leaves-out"
        return hello


def send(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def over_streams(fault: str, number: int) -> None:
    if fault == "stillborn":
        sys.exit("no licence found")
    adapter = Adapter(fault, number)
    for text in sys.stdin:
        reply = adapter.line(text)
        send(reply)
        applied = adapter.store is not None and adapter.store.applied >= number
        if fault == "twice" and applied:
            send(reply)
        if fault == "twice-later" and applied:
            time.sleep(0.05)
            send(reply)
    while fault == "deaf":
        time.sleep(1)


def over_tcp(fault: str, number: int) -> None:
    """Listens on a free port, which it prints; a thread for each connection."""

    class Conversation(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self) -> None:
            adapter = Adapter(fault, number)
            for text in self.rfile:
                self.wfile.write((adapter.line(text.decode()) + "\n").encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Conversation) as server:
        server.daemon_threads = True
        send(str(server.server_address[1]))
        server.serve_forever()


if __name__ == "__main__":
    transport, _, argument = (sys.argv[1] if len(sys.argv) > 1 else "exec").partition("=")
    chosen, _, count = argument.partition("@")
    (over_tcp if transport == "tcp" else over_streams)(chosen, int(count or 1))
