"""Makes systems for a broker at a port, and says which models its port allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from conformance.deviations.declared import table_of
from conformance.deviations.table import DeclaredTable, Deviation
from conformance.deviations.tolerance import Tolerance, set_aside
from conformance.systems.shared.group.settings import settings_of
from conformance.systems.shared.mixed.settings import settings_of as mixed_settings_of
from conformance.systems.shared.produce.window import SIGN as _OF_PRODUCE
from conformance.systems.shared.produce.window import SPECIFICATION as PRODUCE
from conformance.systems.wire.address import parse_address
from conformance.systems.wire.consumer.inner_steps import beyond_reach as beyond_consumers
from conformance.systems.wire.consumer.inner_steps import resolves_next
from conformance.systems.wire.consumer.reach import SIGN as _OF_CONSUMERS
from conformance.systems.wire.consumer.reach import SPECIFICATION as CONSUMER_GROUPS
from conformance.systems.wire.consumer.reach import beyond as beyond_for_consumers
from conformance.systems.wire.consumer.reach import lacking
from conformance.systems.wire.consumer.reach import passes as consumer_group_passes
from conformance.systems.wire.consumer.reach import settings_of as consumer_settings_of
from conformance.systems.wire.consumer.system import WireConsumerSystem
from conformance.systems.wire.data.driven import SIGN as _OF_DATA_PATH
from conformance.systems.wire.data.driven import SPECIFICATION as DATA_PATH
from conformance.systems.wire.data.reach import BEYOND_REACH as BEYOND_DATA_PATH
from conformance.systems.wire.data.reach import (
    changes_leaders,
    lacking_for_sessions,
    lacking_slots,
)
from conformance.systems.wire.data.reach import lacking as lacking_for_data_path
from conformance.systems.wire.data.session_cache import SIGN as _OF_CACHE
from conformance.systems.wire.data.session_cache import SPECIFICATION as SESSION_CACHE
from conformance.systems.wire.data.sessions import SIGN as _OF_SESSIONS
from conformance.systems.wire.data.sessions import SPECIFICATION as SESSIONS
from conformance.systems.wire.data.system import WireDataSystem
from conformance.systems.wire.mixed.reach import SIGN as _OF_MIXED_GROUPS
from conformance.systems.wire.mixed.reach import SPECIFICATION as MIXED_GROUPS
from conformance.systems.wire.mixed.reach import beyond as beyond_for_mixed
from conformance.systems.wire.mixed.reach import lacking as lacking_for_mixed
from conformance.systems.wire.mixed.reach import passes as mixed_group_passes
from conformance.systems.wire.mixed.system import WireMixedSystem
from conformance.systems.wire.port import Port
from conformance.systems.wire.produce.reach import BEYOND_REACH, beyond_a_port
from conformance.systems.wire.produce.reach import lacking as lacking_for_produce
from conformance.systems.wire.produce.system import WireProduceSystem
from conformance.systems.wire.security import security_of
from conformance.systems.wire.system import SPECIFICATION as GROUPS
from conformance.systems.wire.system import Demands, WireSystem
from conformance.systems.wire.timers import beyond_reach
from conformance.systems.wire.transaction.reach import SIGN as _OF_TRANSACTIONS
from conformance.systems.wire.transaction.reach import SPECIFICATION as TRANSACTIONS
from conformance.systems.wire.transaction.reach import beyond_a_port as beyond_for_transactions
from conformance.systems.wire.transaction.reach import lacking as lacking_for_transactions
from conformance.systems.wire.transaction.system import WireTransactionSystem
from conformance.tla import Value

_OF_GROUPS = "MemberIds"
"""A constant that models of GroupMembership have, and others do not."""
_SHOWN = (GROUPS, CONSUMER_GROUPS, MIXED_GROUPS, PRODUCE, TRANSACTIONS, DATA_PATH, SESSIONS)
_LAST_ONCE = 3
"""The newest JoinGroup with which a dynamic member joins at once, without MEMBER_ID_REQUIRED."""


PortSystem: TypeAlias = (
    WireSystem
    | WireConsumerSystem
    | WireMixedSystem
    | WireProduceSystem
    | WireTransactionSystem
    | WireDataSystem
)
"""A system that drives a broker at a port."""


class WireFactory:
    """Makes systems for a broker, and says which models its port allows."""

    def __init__(self, text: str) -> None:
        """`text` is what follows `wire:`. UserError if it is no address."""
        self._address = address = parse_address(text)
        self._name = f"wire:{text}"
        self._security = security_of(address.config, address.tls_ca)
        self._known = table_of(address.deviations)

    def __call__(self, constants: Mapping[str, Value]) -> PortSystem:
        """A system for a model's constants. Raises UserError where no broker answers."""
        address, security = self._address, self._security
        if _OF_PRODUCE in constants:
            return WireProduceSystem(constants, address, security, self._tolerance())
        if {_OF_DATA_PATH, _OF_SESSIONS, _OF_CACHE} & constants.keys():
            return WireDataSystem(constants, address, security, self._tolerance())
        if _OF_TRANSACTIONS in constants:
            return WireTransactionSystem(constants, address, security, self._tolerance())
        if _OF_MIXED_GROUPS in constants:
            return WireMixedSystem(
                mixed_settings_of(constants), address, security, self._tolerance()
            )
        if _OF_GROUPS not in constants:
            return WireConsumerSystem(
                consumer_settings_of(constants), address, security, self._tolerance()
            )
        demands = self._demands(constants)
        return WireSystem(settings_of(constants), address, security, demands, self._tolerance())

    def _demands(self, constants: Mapping[str, Value]) -> Demands:
        address = self._address
        return Demands(
            commits=constants["Commits"] is True,
            fail_overs=constants["FailOvers"] is True and bool(address.fail_over),
            store_failures=constants["StoreFailures"] is True and bool(address.store_failures),
        )

    # ---- Deviating -------------------------------------------------------------------------

    def _tolerance(self) -> Tolerance:
        return Tolerance() if self._known is None else set_aside(self.deviations())

    def version_of(self, part: str) -> str:
        """Of the system whose deviations this broker is said to have; empty if none is named."""
        return "" if self._known is None else self._known.version_of(part)

    def deviations(self) -> tuple[Deviation, ...]:
        """That system's departures from what a port can show."""
        if self._known is None:
            return ()
        if isinstance(self._known, DeclaredTable):
            return self._known.deviations()
        return tuple(
            deviation
            for deviation in self._known.deviations()
            if deviation.specification
            in (GROUPS, CONSUMER_GROUPS, MIXED_GROUPS, DATA_PATH, SESSIONS, SESSION_CACHE)
        )

    def file(self, name: str) -> Path:
        """Where a saved path of the table lies."""
        assert self._known is not None, "a path is one of a table"
        return self._known.file(name)

    # ---- Distant ---------------------------------------------------------------------------

    def beyond_reach(self) -> Mapping[str, str]:
        """What no path can bring about with the settings that were given."""
        return {
            **beyond_reach(self._address),
            **BEYOND_REACH,
            **BEYOND_DATA_PATH,
            **beyond_consumers(self._address.regex_refresh),
        }

    def passes(self, constants: Mapping[str, Value], state: Mapping[str, Value]) -> str:
        """A rebalance timeout is the longest of the members': without a member it is 0 ms."""
        if _OF_MIXED_GROUPS in constants:
            return mixed_group_passes(constants, state)
        if state.keys() & {"answers", "answer", "transactionLog"}:
            return ""
        if "groupState" not in state:
            return consumer_group_passes(constants, state)
        if state["groupState"] == "PreparingRebalance" and not state["members"]:
            return "a rebalance of a group without members is over at once"
        return ""

    # ---- Restless --------------------------------------------------------------------------

    def goes_on(
        self, _constants: Mapping[str, Value], state: Mapping[str, Value]
    ) -> frozenset[str]:
        """A broker resolves regular expressions of a group of KIP-848 as soon as it can."""
        return resolves_next(state)

    # ---- Shareable -------------------------------------------------------------------------

    def shared_name(self, constants: Mapping[str, Value]) -> str:
        """The address itself, unless leaders move, appends to the offsets topic fail, all sessions
        of the broker count, or every topic that is made is news to regular expressions."""
        if _OF_CACHE in constants or changes_leaders(constants):
            return ""
        if _OF_CONSUMERS in constants and consumer_settings_of(constants).regexes:
            return ""
        if _OF_GROUPS in constants:
            demands = self._demands(constants)
            if demands.fail_overs or demands.store_failures:
                return ""
        return self._name

    # ---- Selective -------------------------------------------------------------------------

    def cannot_take(self, specification: str, constants: Mapping[str, Value]) -> str:
        """Why a model cannot be driven; empty if it can."""
        if specification == CONSUMER_GROUPS:
            return beyond_for_consumers(constants, self._address) or self._reason_of_port(
                lambda port: lacking(port, consumer_settings_of(constants))
            )
        if specification == MIXED_GROUPS:
            without = beyond_for_mixed(constants, self._address)
            return without or self._reason_of_port(lacking_for_mixed)
        if specification == PRODUCE:
            return beyond_a_port(constants) or self._reason_of_port(lacking_for_produce)
        if specification == TRANSACTIONS:
            return beyond_for_transactions(constants) or self._reason_of_port(
                lambda port: lacking_for_transactions(port, constants)
            )
        if specification == DATA_PATH:
            if changes_leaders(constants) and not self._address.fail_over:
                return "its partition changes its leader: say --fail-over"
            return self._reason_of_port(lambda port: lacking_for_data_path(port, constants))
        if specification == SESSION_CACHE:
            without = lacking_slots(self._address, constants)
            return without or self._reason_of_port(
                lambda port: lacking_for_sessions(port, constants)
            )
        if specification == SESSIONS:
            return self._reason_of_port(lambda port: lacking_for_sessions(port, constants))
        if specification != GROUPS:
            return f"a port shows {', '.join(_SHOWN)} and {SESSION_CACHE} only"
        settings = settings_of(constants)
        size = self._address.max_size
        if len(settings.members) > settings.maximum_size != size:
            return (
                f"it needs group.max.size={settings.maximum_size}: if your broker is set so, say "
                f"max-size={settings.maximum_size}"
            )
        forced = self._address.versions.get("join_group")
        if forced is not None and forced > _LAST_ONCE and not settings.joins_twice:
            return f"its members join at once, which JoinGroup {forced} does not do"
        return ""

    def _reason_of_port(self, reason: Callable[[Port], str]) -> str:
        port = Port(self._address, self._security)
        try:
            return reason(port)
        finally:
            port.close()


def of_address(text: str) -> WireFactory:
    """The factory for what follows `wire:`."""
    return WireFactory(text)
