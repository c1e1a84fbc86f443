"""No test here is about time: the first use of Arrow alone takes seconds."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
