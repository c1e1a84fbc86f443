"""The two threads of a member, each with an action of the spec, one stopped in the other's middle.

Answers are called back in the thread that polls: the application's without a lock, the heartbeat
thread's within a turn of its own loop.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.systems.group.member import Process
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.exchange import Exchange
from conformance.systems.shared.group.steps import OF_A_PROCESS
from conformance.systems.shared.group.threads import (
    APPLICATION,
    CALLED_BACK,
    CALLED_BACK_TO_HEARTBEAT,
    in_heartbeat_thread,
)
from conformance.systems.threads import InterruptibleThreads
from conformance.tla import Action
from impl.errors import Errors
from impl.group.client.heartbeat_thread import HeartbeatThread
from impl.group.messages import HeartbeatResponse

_JOIN = "SendJoinGroup"
_LOSSES = frozenset({"LoseMessage", "LoseHeartbeat"})
_TURNS = 3
"""Turns of the heartbeat thread at most until its request is out."""


def interrupt_member(
    threads: InterruptibleThreads, process: Process, running: Action, point: int, between: Action
) -> str:
    """As Interruptible.interrupt says. What follows of both waits until both are through."""
    if _ends_heartbeat_thread(process, running, between):
        _take_in_turn(process, running, between)
        return ""
    process.delay_heartbeat()
    first = _call(threads, process, running, between, interrupts=False)
    second = _call(threads, process, between, running, interrupts=True)
    stood_at = threads.interrupt(first, point, second)
    process.settle()
    if _JOIN in (running.name, between.name):
        process.join_if_delayed()
    return stood_at


def _ends_heartbeat_thread(process: Process, running: Action, between: Action) -> bool:
    """Whether the application is in a step of its own when the heartbeat thread is fenced.

    It learns of that when it polls next, and goes on until then. In the spec it learns at once,
    so these steps are not interrupted.
    """
    names = {running.name, between.name}
    response = None if process.heartbeat is None else process.heartbeat.response
    return (
        "ProcessHeartbeat" in names
        and not names.isdisjoint(APPLICATION)
        and isinstance(response, HeartbeatResponse)
        and response.error_code is Errors.FENCED_INSTANCE_ID
    )


def _take_in_turn(process: Process, *actions: Action) -> None:
    """A process that has failed takes no step any more."""
    for action in actions:
        if not process.failed:
            OF_A_PROCESS[action.name](process, action.args)


def _call(
    threads: InterruptibleThreads,
    process: Process,
    action: Action,
    other: Action,
    *,
    interrupts: bool,
) -> Callable[[], None]:
    if not in_heartbeat_thread(action, other, interrupts=interrupts):
        return lambda: _in_application(process, action)
    if action.name == "SendHeartbeat":
        thread, answered = process.await_heartbeat(), _exchange(process, other)
        return lambda: _beat(threads, process, thread, answered)
    return lambda: _call_back(process, action)


def _in_application(process: Process, action: Action) -> None:
    if action.name in CALLED_BACK | CALLED_BACK_TO_HEARTBEAT:
        _hand_in(process, action)
        process.network.poll_no_wakeup()
    else:
        OF_A_PROCESS[action.name](process, action.args)


def _beat(
    threads: InterruptibleThreads,
    process: Process,
    thread: HeartbeatThread,
    answered: Exchange | None,
) -> None:
    """Turns of the thread until its request is out; what arrives, the application calls back.

    Were it called back at the beginning of a turn, and ended the generation, a heartbeat of nobody
    would follow if one is due: HeartbeatThread.run does not look again. The spec has none.
    """

    def is_taken() -> bool:
        return answered is None or answered is process.channel or answered.request.future.is_done

    threads.stand_until("the answer to be taken", is_taken)
    for _ in range(_TURNS):
        if process.heartbeat is None and thread.enabled:
            thread.run_once()
    if process.heartbeat is None:
        raise ActionRefused(f"{process.name} sent no heartbeat")


def _call_back(process: Process, action: Action) -> None:
    """One turn of the thread, if it is enabled: else it waits, and the application polls."""
    _hand_in(process, action)
    thread = process.consumer.heartbeat_thread
    if thread is not None and thread.enabled:
        thread.run_once()


def _hand_in(process: Process, action: Action) -> None:
    exchange = _exchange(process, action)
    if action.name in _LOSSES:
        process.disconnect(exchange)
    else:
        process.hand_in(exchange)


def _exchange(process: Process, action: Action) -> Exchange | None:
    """What an answer, or a loss, is to; None for other steps."""
    if action.name in CALLED_BACK:
        return process.channel
    return process.heartbeat if action.name in CALLED_BACK_TO_HEARTBEAT else None
