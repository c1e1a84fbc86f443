"""One group of one test: its members, what they have sent, and what its coordinator shows."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.kafka.entities import make, newest
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.exchange import Exchange, kind_of
from conformance.systems.shared.group.observation import GroupObserver
from conformance.systems.shared.group.port_member import PortMember
from conformance.systems.shared.group.settings import GroupSettings
from conformance.systems.wire.admin import refusing_appends
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.described_group import DescribedGroup
from conformance.systems.wire.member_requests import MemberRequests
from conformance.systems.wire.pace import Pace
from conformance.systems.wire.running_timers import RunningTimers
from conformance.systems.wire.timers import PathTimers
from conformance.tla import Value


class DrivenGroup:
    """A group id that nobody has used, and new processes."""

    def __init__(
        self,
        settings: GroupSettings,
        broker: WireBroker,
        pace: Pace,
        path: PathTimers,
        *,
        group_id: str,
        topic: str,
    ) -> None:
        self._settings = settings
        self._broker = broker
        self._requests = MemberRequests(settings, broker, group_id, topic)
        self.processes = {name: PortMember(name, settings) for name in settings.members}
        self.description = DescribedGroup(broker, self._requests, pace, group_id)
        self.timers = RunningTimers(settings, path, broker, pace, self.description)

    def send_channel(self, process: str) -> None:
        """The request in a member's channel goes to the coordinator."""
        member = self.processes[process]
        self._submit(member, member.channel)

    def send_heartbeat(self, process: str) -> None:
        """The same of a member's heartbeat or commit."""
        member = self.processes[process]
        self._submit(member, member.heartbeat)

    def send_while_appends_fail(self, process: str) -> None:
        """The coordinator cannot store what comes of the request."""
        coordinator = self._broker.coordinator
        with refusing_appends(coordinator, f"kconform-{self._broker.run}-probe"):
            self.send_channel(process)
            coordinator.await_all()

    def _submit(self, process: PortMember, exchange: Exchange | None) -> None:
        if exchange is None or not exchange.is_under_way:
            raise ActionRefused(f"no request of {process.name} is under way")
        message = exchange.message
        if kind_of(message) == "JoinGroupRequest":
            id = self._requests.ids.of_the_spec(message.member_id, process.name)
            message = self.timers.joining(message, id)
        self.description.forget()
        self._requests.submit(process, exchange, message)

    def receive(self) -> None:
        """Take in the answers that have arrived."""
        for process, answer in self._requests.receive():
            ours = self._requests.ids.ours(answer.member_id)
            id = self._requests.ids.of_the_spec(ours, process)
            self.timers.begin_session(answer, id, self._settings.instances[process])

    def values(self, observer: GroupObserver) -> Mapping[str, Value]:
        """What can be seen of the group and its members."""
        self._requests.park()
        views = tuple([process.view() for process in self.processes.values()])
        return {**self.description.values(observer), **observer.of_processes(views)}

    def leave_behind(self) -> None:
        """Let all members leave, so that the group can be deleted."""
        coordinator, group_id = self._broker.coordinator, self.description.id
        coordinator.abandon()
        members = self.description.member_ids()
        if members is None:
            return
        if members:
            module = newest("leave_group", "request")
            leaving = tuple(
                make(module.MemberIdentity, member_id=self._requests.ids.theirs(member))
                for member in members
            )
            coordinator.ask(make(module.LeaveGroupRequest, group_id=group_id, members=leaving))
        self._broker.delete_group(group_id)
