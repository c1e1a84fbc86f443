"""One module per stage of a run: it calls an engine, sets the verdict and emits events.

A command calls one stage; the gate calls them in turn. A stage emits `StageStarted`, its findings
and `StageFinished` (conformance.events) and returns its result. It never prints.
"""
