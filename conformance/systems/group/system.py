"""The system under test: a coordinator and its members, driven by GroupMembership.tla's actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from greenlet import getcurrent, greenlet

from conformance.systems.group.coordinator import Coordinators
from conformance.systems.group.member import Process
from conformance.systems.group.member_threads import interrupt_member
from conformance.systems.group.view import group_view, process_view
from conformance.systems.protocol import ActionRefused, CannotSnapshot, Observation
from conformance.systems.rewinding import Rewinder, Snapshot
from conformance.systems.shared.group.exchange import Exchange
from conformance.systems.shared.group.observation import VARIABLES, GroupObserver
from conformance.systems.shared.group.settings import GroupSettings, settings_of
from conformance.systems.shared.group.steps import (
    OF_A_PROCESS,
    REQUESTS_OF_CHANNEL,
    REQUESTS_OF_HEARTBEAT,
)
from conformance.systems.shared.group.threads import (
    REQUESTS,
    SESSIONS,
    TIMERS,
    concurrent,
    in_parts,
    of_member,
)
from conformance.systems.shared.group.views import GroupView, ProcessView
from conformance.systems.threads import InterruptibleThreads, StartedThreads
from conformance.tla import Action, Value
from impl.group.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)


class GroupSystem:
    """Consumers and the coordinators of one group; the environment does what the actions say."""

    variables = VARIABLES
    repeatable = True

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._real_ids = settings.real_ids()
        self._observer = GroupObserver(settings)
        self._processes: dict[str, Process] = {}
        self._ids_given: dict[str, int] = {}
        self._joining: dict[greenlet, str] = {}
        """Whose join a thread handles."""
        self._interruptible = False
        self._concurrency: StartedThreads | InterruptibleThreads = StartedThreads()
        self._views: dict[str, ProcessView] = {}
        self._group_view: GroupView | None = None
        self._others: dict[str, Callable[[], None]] = {
            "ExpireInitialDelay": lambda: self._coordinators.fire("initial join"),
            "ExpireRebalance": lambda: self._coordinators.fire("join"),
            "ExpireSync": lambda: self._coordinators.fire("sync"),
            "FailOver": lambda: self._coordinators.fail_over(),
            "DeleteGroup": lambda: self._coordinators.delete_group(),
        }
        self._rewinder = Rewinder(self, apart=(self._observer, self._settings, self._others))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """New brokers without a group, new processes; there is but one initial state."""
        self._rewinder.forget()
        self._end_processes()
        if self._interruptible:
            self._concurrency = InterruptibleThreads()
        self._joining = {}
        self._coordinators = Coordinators(self._settings, self._new_member_id, self._concurrency)
        self._processes = {
            name: Process(name, self._settings, self._concurrency)
            for name in self._settings.members
        }
        self._ids_given = dict.fromkeys(self._settings.members, 0)
        self._views = {}
        self._group_view = None

    def _end_processes(self) -> None:
        for process in self._processes.values():
            process.end()

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        name, args = action
        if name in OF_A_PROCESS:
            self._views.pop(str(args[0]), None)
            OF_A_PROCESS[name](self._processes[str(args[0])], args)
            return
        self._views.clear()
        self._group_view = None
        if name in REQUESTS_OF_CHANNEL:
            self._handle(self._processes[str(args[0])])
        elif name in REQUESTS_OF_HEARTBEAT:
            self._handle_heartbeat(self._processes[str(args[0])])
        elif name == "FailToStoreAssignment":
            self._fail_to_store(self._processes[str(args[0])])
        elif name in self._others:
            self._others[name]()
        elif name in SESSIONS:
            self._coordinators.fire("heartbeat", self._real_ids[str(args[0])])
        else:
            raise ActionRefused(f"the adapter knows no action {name}")

    def observe(self) -> Observation:
        """The observed variables as the objects have them now.

        A step of one process leaves the others and the coordinator as they were: they share no
        object, so none of their code has run. After any other step all is read again.
        """
        self._concurrency.demand_started()
        views = self._views
        for name, process in self._processes.items():
            if name not in views:
                views[name] = process_view(process)
        if self._group_view is None:
            if not self._interruptible:  # of an interrupted step the state is judged
                self._coordinators.check_timers()
                self._coordinators.check_former_group()
            self._group_view = group_view(self._coordinators)
        return self._observer.observe(
            self._group_view, tuple([views[name] for name in self._processes])
        )

    # ---- Snapshots -------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Consumers, coordinators and what is under way between them."""
        if any(process.application.waits for process in self._processes.values()):
            raise CannotSnapshot("an application stands still in the middle of a call")
        return self._rewinder.take()

    def restore(self, snapshot: Snapshot) -> None:
        """All of it as it was."""
        self._end_processes()
        self._rewinder.restore(snapshot)

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What members start by themselves: joins, their completion, heartbeats."""
        return frozenset(("SendJoinGroup", "CompleteJoin", "SendHeartbeat"))

    def offers(self) -> frozenset[Action]:
        """The steps that the members would take by themselves now."""
        return frozenset(
            [
                Action(step, (name,))
                for name, process in self._processes.items()
                for step in process.next_steps()
            ]
        )

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on, steps can be stopped at locks of the coordinator and members."""
        self._interruptible = True
        return True

    @property
    def voluntary(self) -> frozenset[str]:
        """A timer that fires as it is cancelled does nothing."""
        return TIMERS

    @property
    def unconditional(self) -> frozenset[str]:
        """A coordinator answers every request."""
        return REQUESTS

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of the coordinator take these, or the two of a member."""
        return concurrent(running, between)

    def in_parts(self, running: Action, between: Action) -> bool:
        """A join is prepared, and sent."""
        return in_parts(running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread stand still while another one takes its action."""
        threads = self._concurrency
        if not isinstance(threads, InterruptibleThreads):
            raise ActionRefused("the steps of this system cannot be interrupted")
        if of_member(running, between):
            name = str(running.args[0])
            self._views.pop(name, None)
            return interrupt_member(threads, self._processes[name], running, point, between)
        return threads.interrupt(lambda: self.apply(running), point, lambda: self.apply(between))

    # ---- the coordinator handles a request -------------------------------------------------

    def _new_member_id(self) -> str:
        """What is unique in the next member id of the process that joins now."""
        name = self._joining[getcurrent()]
        given = self._ids_given[name]
        self._ids_given[name] = given + 1
        ids = self._settings.member_ids[name]
        return ids[given] if given < len(ids) else f"{name}-{given + 1}"

    def _handle(self, process: Process) -> None:
        exchange = process.channel
        if exchange is None or not exchange.is_under_way:
            raise ActionRefused(f"no request of {process.name} is under way")
        self._joining[getcurrent()] = process.name
        answer = exchange.answer
        coordinator = self._coordinators.current
        match exchange.message:
            case JoinGroupRequest() as request:
                coordinator.handle_join_group(request, answer)
            case SyncGroupRequest() as request:
                coordinator.handle_sync_group(request, answer)
            case LeaveGroupRequest() as request:
                coordinator.handle_leave_group(request, answer)
            case request:
                raise ActionRefused(f"{request} has another slot")
        if exchange.abandoned:
            process.channel = None
        elif exchange.response is None:
            exchange.parked_under = self._parked_under(exchange)

    def _parked_under(self, exchange: Exchange) -> str:
        """Under which member id the coordinator keeps the request; "" if it lost it."""
        group = self._coordinators.group()
        for id, member in ({} if group is None else group.members).items():
            if exchange.answer in (member.awaiting_join_callback, member.awaiting_sync_callback):
                return id
        return ""

    def _fail_to_store(self, process: Process) -> None:
        topic = self._coordinators.topic
        topic.refuses = True
        try:
            self._handle(process)
        finally:
            topic.refuses = False

    def _handle_heartbeat(self, process: Process) -> None:
        exchange = process.heartbeat
        if exchange is None or not exchange.is_under_way:
            raise ActionRefused(f"no heartbeat of {process.name} is under way")
        match exchange.message:
            case HeartbeatRequest() as request:
                self._coordinators.current.handle_heartbeat(request, exchange.answer)
            case OffsetCommitRequest() as request:
                self._coordinators.current.handle_commit_offsets(request, exchange.answer)
            case request:
                raise ActionRefused(f"{request} has another slot")


def create(constants: Mapping[str, Value]) -> GroupSystem:
    """The system for a model's constants."""
    return GroupSystem(settings_of(constants))
