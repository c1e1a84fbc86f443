"""Cleans one log after the other (LogCleaner, CleanerThread)."""

from __future__ import annotations

from ..clock import Clock
from .cleaner import Cleaner, LogCleaningAbortedException
from .log_cleaner_manager import LogCleanerManager


class LogCleaner:
    """The work of one cleaner thread; who calls it decides when."""

    def __init__(
        self, manager: LogCleanerManager, clock: Clock, *, retains_last_batch: bool = True
    ) -> None:
        self.manager = manager
        self._cleaner = Cleaner(
            clock, manager.check_cleaning_aborted, retains_last_batch=retains_last_batch
        )

    def clean_filthiest_log(self) -> bool:
        """Clean the log that needs it most; whether there was one."""
        cleanable = self.manager.grab_filthiest_compacted_log()
        if cleanable is None:
            return False
        end_offset: int | None = None
        try:
            end_offset = self._cleaner.clean(cleanable)
        except LogCleaningAbortedException:
            pass  # somebody waits for it
        finally:
            self.manager.done_cleaning(cleanable.log, end_offset)
        return True
