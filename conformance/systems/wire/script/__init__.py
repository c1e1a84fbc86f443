"""A divergence of a broker at its port as a script of raw requests, for those who maintain it.

The script stands alone: it needs kio and nothing of ours. It fails where the finding is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.shared.departing import Unsayable
from conformance.systems.wire.script.base import PortScript
from conformance.systems.wire.script.consumer import ConsumerGroupScript
from conformance.systems.wire.script.data import DataScript
from conformance.systems.wire.script.group import GroupScript
from conformance.systems.wire.script.produce import ProduceScript
from conformance.systems.wire.script.sessions import SessionScript
from conformance.systems.wire.script.transaction import TransactionScript

_KINDS: Mapping[str, type[PortScript]] = MappingProxyType(
    {
        "groupRecord": GroupScript,
        "assignmentEpoch": ConsumerGroupScript,
        "lowest": TransactionScript,
        "snapshots": ProduceScript,
        "visible": DataScript,
        "session": SessionScript,
    }
)
"""By a variable that only one protocol's specification has."""
_HERE = Path(__file__).parent


def script(behaviour: Behaviour, constants: Mapping[str, str], title: str) -> str:
    """The Python source of a script. Unsayable if none can be written of this behaviour."""
    kinds = [kind for sign, kind in _KINDS.items() if sign in behaviour.variables]
    if not kinds:
        raise Unsayable(
            "scripts are written for groups of both protocols, for idempotent produce, and for "
            "transactions, the data path and fetch sessions at a port only"
        )
    written = kinds[0].of(behaviour, constants)
    return Template(_text(written.template)).substitute(
        title=title,
        connection=_text("connection.py.txt"),
        leader=_text("leader.py.txt"),
        script="\n".join(written.lines()),
        **written.placeholders,
    )


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
