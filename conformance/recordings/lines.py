"""What a recording's lines hold: every field that the readers of recordings use, with its type.

The agent (conformance/kafka/agent), the tap (docs/tap.md) and `kconform cluster record` write them.
A line that lacks a field, as after an edit or of another agent, is refused where it is read.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from conformance.conversion import convert
from conformance.errors import DataError
from conformance.tla import Json, load_json

JsonObject = dict[str, Any]

_Time = Annotated[int, Meta(ge=0, le=2**62)]
"""Nanoseconds of one clock."""
_Node = Annotated[str, Meta(pattern=r"^\d{1,9}$")]
_Offset = Annotated[int, Meta(ge=-1, le=2**62)]
_MOST_RECORDS = 1_000_000
"""Each record is an element of a sequence in the trace."""


class _LineForm(Struct, rename="camel"):
    node: _Node
    time: _Time


# --- groups ---------------------------------------------------------------------------------------


class _MemberForm(Struct, rename="camel"):
    client_id: str
    group_instance_id: str | None
    is_new: bool
    awaiting_join: bool
    awaiting_sync: bool
    protocols: list[str]


class _GroupForm(Struct, rename="camel"):
    state: str
    generation: int
    protocol: str | None
    leader: str | None
    pending_members: list[str]
    pending_sync_members: list[str]
    static_members: dict[str, str]
    members: dict[str, _MemberForm]


class _GroupLineForm(_LineForm):
    group: str
    entered: _Time
    operation: str
    state: _GroupForm | None

    def __post_init__(self) -> None:
        arguments = self.operation.partition(" ")[2]
        if arguments and not isinstance(_value(arguments), list):
            raise ValueError("`operation` is not followed by a list of its arguments")


def _value(text: str) -> Json:
    try:
        return load_json(text)
    except DataError as error:
        raise ValueError(f"`operation` has no readable arguments: {error}") from None


# --- partitions -----------------------------------------------------------------------------------


class _LogForm(Struct, rename="camel"):
    log_start_offset: _Offset
    log_end_offset: _Offset
    high_watermark: _Offset
    epochs: list[tuple[int, int]]

    def __post_init__(self) -> None:
        records = self.log_end_offset - self.log_start_offset
        if records > _MOST_RECORDS:
            raise ValueError(f"a log of {records:,} records is too long for a trace")
        if records > 0 and not self.epochs:
            raise ValueError("a log with records has no leader epoch")


class _FollowerForm(Struct, rename="camel"):
    log_end_offset: _Offset


class _PartitionForm(Struct, rename="camel"):
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    sent_isr: list[int]
    log: _LogForm | None
    followers: dict[int, _FollowerForm]


class _RequestForm(Struct, rename="camel"):
    fetch_offset: _Offset
    current_leader_epoch: int | None = None


class _FetchForm(_RequestForm, kw_only=True):
    replica: int
    error: str | None


class _SectionLineForm(_LineForm):
    partition: str
    entered: _Time
    section: str
    state: _PartitionForm
    fetch: _FetchForm | UnsetType = UNSET
    overlaps: list[str] = []
    thread: str = ""


class _RequestLineForm(_LineForm):
    partition: str
    request: _RequestForm


class _RegisteredForm(Struct, rename="camel"):
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    isr: list[int]
    elr: list[int] | None = None
    last_known_elr: list[int] | None = None


class _RegistrationLineForm(_LineForm):
    registration: str
    state: _RegisteredForm


# --- the tap --------------------------------------------------------------------------------------


class _ProtocolForm(Struct, rename="camel"):
    name: str


class _ErrorForm(Struct, rename="camel"):
    error_code: int


class _TopicForm(Struct, rename="camel"):
    partitions: list[_ErrorForm]


class _BodyForm(Struct, rename="camel"):
    """Of a request or of an answer about a group."""

    group_id: str = ""
    member_id: str | None = None
    protocols: list[_ProtocolForm] = []
    error_code: int = 0


class _AnswerForm(Struct, rename="camel"):
    error_code: int = 0
    topics: list[_TopicForm] = []


class _ExchangedForm(Struct, rename="camel", tag_field="direction"):
    time: _Time
    connection: int
    link: str
    api: str
    correlation: int
    client: str | None


class _RequestSeenForm(_ExchangedForm, tag="request"):
    body: _BodyForm


class _ResponseSeenForm(_ExchangedForm, tag="response"):
    body: _AnswerForm


# --- recording.json -------------------------------------------------------------------------------


class _SettingsForm(Struct):
    largest: int = field(default=0, name="replica.fetch.max.bytes")
    threads: int = field(default=0, name="num.io.threads")


class _FaultForm(Struct, rename="camel"):
    action: str
    time: _Time
    node: int | None = None
    client: str | None = None
    problem: str | None = None


class _ManifestForm(Struct, rename="camel"):
    kafka: Annotated[str, Meta(pattern=r"^\d{1,9}(\.|$)")] = "0"
    settings: _SettingsForm | None = None
    brokers: list[object] = []
    ended: _Time | None = None
    faults: list[_FaultForm] = []
    spoiled: str = ""


# --- checks ---------------------------------------------------------------------------------------


def check_agents_line(place: str, line: JsonObject) -> None:
    """DataError that names the line's place and the field which it lacks."""
    form: Any = _LineForm
    if "group" in line:
        form = _GroupLineForm
    elif "registration" in line:
        form = _RegistrationLineForm
    elif "partition" in line:
        form = _RequestLineForm if "request" in line else _SectionLineForm
    _check(place, line, form, "a line of an agent")


def check_taps_line(place: str, line: JsonObject) -> None:
    """The same of a request or an answer about a group."""
    _check(place, line, _RequestSeenForm | _ResponseSeenForm, "a line of a tap")


def check_manifest(place: str, document: JsonObject) -> None:
    """The same of recording.json."""
    _check(place, document, _ManifestForm, "what `kconform cluster record` writes", strict=False)


def _check(place: str, line: JsonObject, form: Any, what: str, *, strict: bool = True) -> None:
    try:
        convert(line, form, strict=strict, str_keys=True)
    except msgspec.ValidationError as error:
        raise DataError(
            f"{place} is not {what}: {error}. Record again, or remove what was edited."
        ) from None
