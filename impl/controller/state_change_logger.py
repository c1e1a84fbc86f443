"""The controller's lines of state-change.log (StateChangeLogger)."""

from __future__ import annotations

import logging

TRACE = 5
"""Below DEBUG; Kafka's default configuration does not print these lines."""
_log = logging.getLogger("impl.state_change")
logging.addLevelName(TRACE, "TRACE")


class StateChangeLogger:
    """Prefixes each line with the controller and its epoch."""

    def __init__(self, controller_id: int) -> None:
        self._controller_id = controller_id

    def trace(self, controller_epoch: int, message: str, *args: object) -> None:
        """One partition's change."""
        self._write(TRACE, controller_epoch, message, args)

    def info(self, controller_epoch: int, message: str, *args: object) -> None:
        """A summary of one request."""
        self._write(logging.INFO, controller_epoch, message, args)

    def error(self, controller_epoch: int, message: str, *args: object) -> None:
        """What could not be sent."""
        self._write(logging.ERROR, controller_epoch, message, args)

    def _write(self, level: int, epoch: int, message: str, args: tuple[object, ...]) -> None:
        _log.log(level, f"[Controller id=%s epoch=%s] {message}", self._controller_id, epoch, *args)
