"""A finding on transactions, as requests of one transactional id and what is read and described."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from conformance.systems.shared.departing import Unsayable, fn
from conformance.systems.shared.group import words
from conformance.systems.wire.script.base import PortScript
from conformance.tla import Fn, Value

_OF_CLIENTS = ("Begins", "Sends", "Ends", "Takes")
_OF_THE_BROKER = "Broker"
"""How the steps begin in which nobody asks for anything."""
_PRODUCER: Mapping[str, str] = MappingProxyType(
    {
        "epoch": "producer_epoch",
        "sequence": "last_sequence",
        "start": "current_txn_start_offset",
    }
)
"""Of the specification's `producers`, what DescribeProducers calls it. Brokers begin with other
epochs of the coordinator than the specification."""


class TransactionScript(PortScript):
    """Of one transactional id."""

    template = "transaction.py.txt"
    names_answer = False

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to the model: partitions, and versions of requests."""
        names = [each for each in self._names("Partitions") if each not in self._offsets]
        offsets = [f"offsets={self._offsets}"] if self._offsets else []
        is_version_2 = self.constants.get("Version2") == "TRUE"
        return {
            "partitions": ", ".join([*map(words.text, names), *offsets]),
            "commit": "5" if is_version_2 else "3",
            "produce": "12" if is_version_2 else "7",
            "end": "5" if is_version_2 else "3",
        }

    def _names(self, constant: str) -> list[str]:
        return sorted(re.findall(r'"(\w+)"', self.constants.get(constant, "")))

    @property
    def _offsets(self) -> list[str]:
        """What stands for the positions of a group."""
        return self._names("OffsetsPartitions")

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> Iterator[str]:
        action = self.scene.action(number)
        if action.name.startswith(_OF_CLIENTS) or action.name.startswith(_OF_THE_BROKER):
            return
        say = _SAID.get(action.name)
        if say is None:
            raise Unsayable(f"it has no words for the step {action}")
        yield say(self, number, *action.args)

    def _sent(self, number: int, **fields: Value) -> Fn:
        """The request of a client with these fields."""
        requests = self.scene.value(number - 1, "requests")
        assert isinstance(requests, frozenset)
        for request in map(fn, requests):
            if all(request.get(name) == value for name, value in fields.items()):
                return request
        raise Unsayable(f"nobody has sent the request of its step {number}")

    def _init(self, _number: int, *_: Value) -> str:
        return "transactions.init_producer_id()"

    def _fence(self, _number: int, *_: Value) -> str:
        return "transactions.fence()"

    def _add(self, number: int, _coordinator: Value, client: Value, partition: Value) -> str:
        epoch = fn(self.scene.of(number - 1, "clients", client))["epoch"]
        return words.call("transactions.add_partition", words.text(partition), epoch)

    def _end(self, number: int, _coordinator: Value, txn: Value, commits: Value) -> str:
        sent = self._sent(number, type="EndTxn", txn=txn, commits=commits)
        return words.call("transactions.end", sent["epoch"], commits)

    def _produce(self, number: int, partition: Value, txn: Value, sequence: Value) -> str:
        sent = self._sent(number, type="Produce", partition=partition, txn=txn, sequence=sequence)
        return words.call(
            "transactions.produce", words.text(partition), sent["epoch"], sequence, txn
        )

    def _mark(self, number: int, partition: Value, txn: Value, _epoch: Value) -> str:
        log = self.scene.of(number - 1, "log", partition)
        assert isinstance(log, tuple)
        markers = [fn(each) for each in log if fn(each)["kind"] != "data"]
        marker = next(each for each in markers if each["txn"] == txn)
        commits = marker["kind"] == "Committed"
        return words.call(
            "transactions.write_marker", words.text(partition), marker["epoch"], commits
        )

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name == "coordinators":
                yield from self._state(fn(expected), fn(actual))
            for partition, wanted, seen in self._of_partitions(name, expected, actual):
                asserted = _positions if partition in self._offsets else _ASSERTED[name]
                yield from asserted(words.text(partition), wanted, seen)

    @staticmethod
    def _of_partitions(
        name: str, expected: Value, actual: Value
    ) -> Iterator[tuple[Value, Value, Value]]:
        if name in _ASSERTED:
            for partition, wanted in fn(expected).items():
                if wanted != fn(actual)[partition]:
                    yield partition, wanted, fn(actual)[partition]

    @staticmethod
    def _state(expected: Fn, actual: Fn) -> Iterator[str]:
        for coordinator, wanted in expected.items():
            state, seen = (fn(fn(each)["now"])["state"] for each in (wanted, actual[coordinator]))
            if state != seen:
                asked = "transactions.state()"
                yield f"assert {asked} == {words.text(state)}, {asked}"


def _log(partition: str, wanted: Value, _seen: Value) -> Iterator[str]:
    assert isinstance(wanted, tuple)
    written = [_named(each) if each["kind"] == "data" else each["kind"] for each in map(fn, wanted)]
    asked = f"transactions.log({partition})"
    yield f"assert {asked} == [{', '.join(map(words.text, written))}], {asked}"


def _named(record: Fn) -> str:
    return f"{record['txn']} {record['sequence']}"


def _positions(partition: str, wanted: Value, seen: Value) -> Iterator[str]:
    yield from _records(partition, wanted, seen)
    if fn(wanted)["stable"] != fn(seen)["stable"]:
        yield f"assert transactions.is_stable() is {bool(fn(wanted)['stable'])}"


def _reads(partition: str, wanted: Value, seen: Value) -> Iterator[str]:
    yield from _records(partition, wanted, seen)
    if fn(wanted)["stable"] != fn(seen)["stable"]:
        asked = f"transactions.fetched({partition}, committed=True)"
        yield f"assert {asked}.last_stable_offset == {fn(wanted)['stable']}, {asked}"


def _records(partition: str, wanted: Value, seen: Value) -> Iterator[str]:
    if fn(wanted)["records"] != fn(seen)["records"]:
        records = fn(wanted)["records"]
        assert isinstance(records, frozenset)
        names = sorted(" ".join(map(str, each)) for each in records if isinstance(each, tuple))
        kept = "{" + ", ".join(map(words.text, names)) + "}" if names else "set()"
        yield f"assert transactions.committed({partition}) == {kept}"


def _watermark(partition: str, wanted: Value, _seen: Value) -> Iterator[str]:
    asked = f"transactions.fetched({partition})"
    yield f"assert {asked}.high_watermark == {wanted}, {asked}"


def _producers(partition: str, wanted: Value, seen: Value) -> Iterator[str]:
    asked = f"transactions.producer({partition})"
    if -1 in (fn(wanted)["epoch"], fn(seen)["epoch"]):
        known = "is not" if fn(seen)["epoch"] == -1 else "is"
        yield f"assert {asked} {known} None, {asked}"
        return
    for field, name in _PRODUCER.items():
        if fn(wanted)[field] != fn(seen)[field]:
            yield f"assert {asked}.{name} == {fn(wanted)[field]}, {asked}"


_ASSERTED: Mapping[str, Callable[[str, Value, Value], Iterator[str]]] = MappingProxyType(
    {"log": _log, "reads": _reads, "highWatermark": _watermark, "producers": _producers}
)
"""By variable, what is asserted of a partition."""
_SAID: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "RequestProducerId": TransactionScript._init,
        "RequestFence": TransactionScript._fence,
        **dict.fromkeys(("RequestPartition", "RefuseAddPartition"), TransactionScript._add),
        **dict.fromkeys(("RequestEnd", "RepeatEnd", "RefuseEnd"), TransactionScript._end),
        **dict.fromkeys(
            ("ProduceFirst", "Produce", "RepeatBatch", "RefuseBatch", "ProduceBlocked"),
            TransactionScript._produce,
        ),
        **dict.fromkeys(("RepeatMarker", "RefuseMarker"), TransactionScript._mark),
    }
)
"""By action, the template's method that is called."""
