"""Judges the public trace of etcd's raft library: `python -m experiments.raft_trace CHECKOUT`.

CHECKOUT is a checkout of github.com/etcd-io/raft; its folder `tla` holds the specification and the
trace of five nodes (`example.ndjson`). Nothing of it is here: this file makes of the trace the
events that the judge reads, and of the specification a module whose next-state relation names what
a line of the trace names. A message is seen in part, of a log its length; a message may have steps
that nobody sees before it is dealt with (`Prepare`), directly before that. Prints the verdict and
the seconds of the processor for each number of lines.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.judge.budget import JudgeLimits
from conformance.judge.events import Event, Recording, read_event
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping as Declared
from conformance.tla import ActionPattern, Spec, bind, load_module, parse_config

Line = Mapping[str, Any]
"""The `event` of a line of the trace."""

MODULE = r"""---- MODULE RaftEvents ----
EXTENDS etcdraft
BEGIN
ServersBegin == currentTerm = Term0 /\ state = Role0 /\ votedFor = Vote0
FirstEntry(i) == [term |-> 1, type |-> ConfigEntry,
                  value |-> [newconf |-> Members0[i], learners |-> {}]]
LogsBegin == /\ log = [i \in Server |-> [k \in 1..Log0[i] |-> FirstEntry(i)]]
             /\ commitIndex = Commit0
ConfigBegins == /\ config = [i \in Server |->
                                [jointConfig |-> <<Members0[i], {}>>, learners |-> {}]]
                /\ reconfigCount = 0

Handle(m) == Receive(m) /\ messages' # messages
Prepare(i) == \E m \in DOMAIN messages : m.mdest = i /\ Receive(m) /\ UNCHANGED messages
SendEntries(i, j, b, e) == TRUE /\ AppendEntries(i, j, <<b, e>>)
SendBeat(i, j) == TRUE /\ Heartbeat(i, j)
SendSnap(i, j, index) == TRUE /\ SendSnapshot(i, j, index)
RaftNext ==
  \/ \E i, j \in Server : \/ RequestVote(i, j) \/ SendBeat(i, j)
                          \/ AddNewServer(i, j) \/ AddLearner(i, j) \/ DeleteServer(i, j)
  \/ \E i \in Server : \/ BecomeLeader(i) \/ ClientRequest(i, 0) \/ AdvanceCommitIndex(i)
                       \/ AppendEntriesToSelf(i) \/ Timeout(i) \/ Ready(i)
                       \/ StepDownToFollower(i) \/ Restart(i) \/ ApplySimpleConfChange(i)
                       \/ Prepare(i)
  \/ \E i, j \in Server : \E b, e \in 0..5000 : SendEntries(i, j, b, e)
  \/ \E i, j \in Server : \E index \in 0..5000 : SendSnap(i, j, index)
  \/ \E m \in DOMAIN messages : Handle(m)
===="""

CONFIG = """INIT Init
NEXT RaftNext
CONSTANTS
  Nil = "0"
  ValueEntry = "ValueEntry"
  ConfigEntry = "ConfigEntry"
  Follower = "StateFollower"
  Candidate = "StateCandidate"
  Leader = "StateLeader"
  RequestVoteRequest = "RequestVoteRequest"
  RequestVoteResponse = "RequestVoteResponse"
  AppendEntriesRequest = "AppendEntriesRequest"
  AppendEntriesResponse = "AppendEntriesResponse"
  InitServerVars <- ServersBegin
  InitLogVars <- LogsBegin
  InitConfigVars <- ConfigBegins
"""

BOOTSTRAP = frozenset({"InitState", "BecomeFollower", "ApplyConfChange"})
RECEIVES = frozenset(
    f"Receive{name}"
    for name in (
        "AppendEntriesRequest",
        "AppendEntriesResponse",
        "RequestVoteRequest",
        "RequestVoteResponse",
        "Snapshot",
    )
)
KINDS = {
    "MsgApp": ("AppendEntriesRequest", "app"),
    "MsgAppResp": ("AppendEntriesResponse", "app"),
    "MsgHeartbeat": ("AppendEntriesRequest", "heartbeat"),
    "MsgHeartbeatResp": ("AppendEntriesResponse", "heartbeat"),
    "MsgSnap": ("AppendEntriesRequest", "snapshot"),
    "MsgVote": ("RequestVoteRequest", ""),
    "MsgVoteResp": ("RequestVoteResponse", ""),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--lines", type=int, nargs="*", default=[200, 1000, 2000, 4888])
    options = parser.parse_args()
    folder = options.checkout / "tla"
    trace = [json.loads(text)["event"] for text in (folder / "example.ndjson").open()]
    print("lines  events        verdict  unseen    tried  s of the processor")
    for count in options.lines:
        with tempfile.TemporaryDirectory() as work:
            shutil.copytree(folder, work, dirs_exist_ok=True)
            print(judged(Path(work), trace[:count]), flush=True)


def judged(folder: Path, trace: Sequence[Line]) -> str:
    """The verdict on these lines, as a row of the table."""
    spec = bound_to(folder, trace)
    began = time.process_time()
    recording = Recording("raft", tuple(events(trace)), "example.ndjson")
    mapping = Declared(
        declared=True, directly=(ActionPattern("Prepare"),), limits=JudgeLimits(3, seconds=600)
    )
    judgement = Judge(spec, mapping).judge(recording)
    row = (
        f"{len(trace):>5,} {judgement.events:>7,} {judgement.verdict.name.lower():>14} "
        f"{judgement.silent:>7,} "
        f"{judgement.tried:>8,} {time.process_time() - began:>8.1f}"
    )
    if judgement.failure is None:
        return row
    why = [line for blocker in judgement.failure.blockers for line in blocker.lines]
    return "\n".join([row, judgement.reason, *why[:20]])


def bound_to(folder: Path, trace: Sequence[Line]) -> Spec:
    """The specification, with the nodes and the begin that the trace shows."""
    first = dict(begins(trace))
    members = _configuration(first[str(trace[0]["nid"])])
    servers = sorted({*members, *first, *_changed(trace)})

    def each(value: Callable[[Line], object]) -> str:
        pairs = ((s, value(first.get(s, IDLE))) for s in servers)
        return " @@ ".join(f"{json.dumps(s)} :> {json.dumps(shown)}" for s, shown in pairs)

    begin = {
        "Term0": each(lambda line: line["state"]["term"]),
        "Vote0": each(lambda line: line["state"]["vote"]),
        "Commit0": each(lambda line: line["state"]["commit"]),
        "Log0": each(lambda line: line["log"]),
        "Role0": each(lambda line: line["role"]),
    }
    begin["Members0"] = " @@ ".join(
        f"{json.dumps(s)} :> {_set(_configuration(first.get(s, IDLE)))}" for s in servers
    )
    defined = "\n".join(f"{name} == {value}" for name, value in begin.items())
    (folder / "RaftEvents.tla").write_text(MODULE.replace("BEGIN", defined))
    config = f"{CONFIG}  InitServer = {_set(members)}\n  Server = {_set(servers)}\n"
    return bind(load_module(folder / "RaftEvents.tla"), parse_config(config))


def _set(names: Sequence[str]) -> str:
    return "{" + ", ".join(json.dumps(name) for name in names) + "}"


IDLE: Line = {
    "state": {"term": 0, "vote": "0", "commit": 0},
    "role": "StateFollower",
    "log": 0,
    "conf": [[], []],
}
"""A node that the trace shows only as a member to be added."""


def begins(trace: Sequence[Line]) -> Iterator[tuple[str, Line]]:
    """Each node with the last line before its work begins."""
    for number in sorted(bootstrap(trace)):
        yield str(trace[number]["nid"]), trace[number]


def bootstrap(trace: Sequence[Line]) -> frozenset[int]:
    """The lines that tell how a node begins; no step of the specification belongs to them."""
    working: set[str] = set()
    result: set[int] = set()
    for number, line in enumerate(trace):
        if line["name"] in BOOTSTRAP and line["nid"] not in working:
            result.add(number)
        else:
            working.add(line["nid"])
    return frozenset(result)


def _configuration(line: Line) -> list[str]:
    changed = line.get("prop", {}).get("cc", {}).get("newconf")
    return sorted(changed if changed else line["conf"][0])


def _changed(trace: Sequence[Line]) -> Iterator[str]:
    for line in trace:
        if line["name"] == "ChangeConf":
            yield from (change["nid"] for change in line["prop"]["cc"].get("changes", ()))


# --- lines as events ------------------------------------------------------------------------------


def events(trace: Sequence[Line]) -> Iterator[Event]:
    """What the lines show; one that was received shows the state before it, too."""
    begin = bootstrap(trace)
    last: dict[str, Line] = {}
    for number, line in enumerate(trace):
        node = str(line["nid"])
        if number not in begin:
            for shown in _events(line, last.get(node)):
                yield read_event({"process": node, **shown}, f"example.ndjson:{number + 1}")
        last[node] = line


def _events(line: Line, before: Line | None) -> Iterator[dict[str, Any]]:
    name, node, after = line["name"], line["nid"], _state(line)
    message: Line = line.get("msg", {})
    if name in RECEIVES:
        yield {"state": after}
        yield {"action": {"name": "Handle", "args": [{"#fields": _fields(message)}]}}
    elif name in ("SendRequestVoteRequest", "SendRequestVoteResponse"):
        if name.endswith("Request") or message["from"] == message["to"]:
            yield _action("RequestVote", message["from"], message["to"], after)
    elif name == "SendAppendEntriesResponse":
        if message["from"] == message["to"]:
            yield _action("AppendEntriesToSelf", node, after)
    elif name == "SendAppendEntriesRequest":
        yield _sent(message, after)
    elif name == "ChangeConf":
        (change,) = line["prop"]["cc"]["changes"]
        change_of = {"RemoveServer": "DeleteServer"}
        action = change_of.get(change["action"], change["action"])
        yield {"action": {"name": action, "args": [node, change["nid"]]}}
    elif name == "BecomeFollower":
        if not _by_message(line, before):
            yield _action("StepDownToFollower", node, after)
    elif name in _OF_NODE:
        action, shows = _OF_NODE[name]
        arguments = [node, 0] if action == "ClientRequest" else [node]
        yield _action(action, *arguments, after if shows else {})


_OF_NODE = {
    "BecomeLeader": ("BecomeLeader", True),
    "Replicate": ("ClientRequest", False),
    "Commit": ("AdvanceCommitIndex", True),
    "BecomeCandidate": ("Timeout", False),
    "ApplyConfChange": ("ApplySimpleConfChange", False),
    "Ready": ("Ready", False),
    "InitState": ("Restart", True),
}


def _action(name: str, *rest: Any) -> dict[str, Any]:
    *args, after = rest
    return {"action": {"name": name, "args": args}, "state": after}


def _by_message(line: Line, before: Line | None) -> bool:
    """Whether a node became a follower in dealing with the message of its line before."""
    if before is None or before["name"] not in RECEIVES:
        return False
    return bool(before["msg"]["term"] == line["state"]["term"])


def _state(line: Line) -> dict[str, Any]:
    at = json.dumps(line["nid"])
    voters, outgoing = line["conf"]
    return {
        f"currentTerm[{at}]": line["state"]["term"],
        f"state[{at}]": line["role"],
        f"votedFor[{at}]": line["state"]["vote"],
        f"Len(log[{at}])": line["log"],
        f"commitIndex[{at}]": line["state"]["commit"],
        f"config[{at}].jointConfig": {"#tup": [{"#set": voters}, {"#set": outgoing}]},
    }


def _sent(message: Line, after: dict[str, Any]) -> dict[str, Any]:
    node, peer = message["from"], message["to"]
    if message["type"] == "MsgHeartbeat":
        return _action("SendBeat", node, peer, after)
    if message["type"] == "MsgSnap":
        return _action("SendSnap", node, peer, message["entries"], after)
    begin = message["index"] + 1
    return _action("SendEntries", node, peer, begin, begin + message["entries"], after)


def _fields(message: Line) -> dict[str, Any]:
    """What a line shows of a message."""
    kind, subtype = KINDS[message["type"]]
    shown = {
        "mtype": kind,
        "mdest": message["to"],
        "msource": message["from"],
        "mterm": message["term"],
    }
    if subtype:
        shown["msubtype"] = subtype
    if kind == "AppendEntriesRequest":
        shown["Len(mentries)"] = message["entries"]
        if subtype != "snapshot":
            shown["mcommitIndex"] = message["commit"]
        if subtype != "heartbeat":
            shown |= {"mprevLogTerm": message["logTerm"], "mprevLogIndex": message["index"]}
    elif kind == "AppendEntriesResponse":
        shown["msuccess"] = not message["reject"]
        if subtype != "heartbeat" and not message["reject"]:
            shown["mmatchIndex"] = message["index"]
    elif kind == "RequestVoteRequest":
        shown |= {"mlastLogIndex": message["index"], "mlastLogTerm": message["logTerm"]}
    else:
        shown["mvoteGranted"] = not message["reject"]
    return shown


if __name__ == "__main__":
    main()
