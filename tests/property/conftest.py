"""No property is about time: a machine may be busy, and the first use of Arrow takes seconds."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
